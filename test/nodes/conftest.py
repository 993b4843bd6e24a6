"""A ROS context of its own for each test, and node processes that end with it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rclpy
import yaml
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

ROOT = Path(__file__).resolve().parent.parent.parent


class Bench:
    """A test's own node, spun until conditions hold, beside real node processes."""

    def __init__(self, folder: Path) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node("bench", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._folder = folder
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def until(
        self, condition: Callable[[], Any], timeout_s: float = 15.0, each: Callable[[], None] | None = None
    ) -> bool:
        """Spin until the condition holds; False when the time is over."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if condition():
                return True
            if each is not None:
                each()
            self._executor.spin_once(timeout_sec=0.02)
        return bool(condition())

    def start(self, name: str, parameters: dict[str, Any]) -> subprocess.Popen[str]:
        """Start a node process with these parameters."""
        file = self._folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump({name: {"ros__parameters": parameters}}))
        command = [sys.executable, "-m", f"bid_ros.nodes.{name}_node", "--ros-args", "-r", f"__node:={name}"]
        process = subprocess.Popen(
            [*command, "--params-file", str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )
        self.processes[name] = process
        return process

    def finish(self, name: str, timeout_s: float = 20.0) -> tuple[int, str]:
        """Wait for a process to end by itself; return exit status and output."""
        process = self.processes.pop(name)
        output, _ = process.communicate(timeout=timeout_s)
        return process.returncode, output

    def close(self) -> None:
        """End everything; every node must end without a word of Python's own."""
        for process in self.processes.values():
            process.terminate()
        outputs = {}
        for name, process in self.processes.items():
            try:
                outputs[name], _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                outputs[name], _ = process.communicate()
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)
        for name, output in outputs.items():
            assert "Traceback" not in (output or ""), f"{name}: {output}"


@pytest.fixture
def bench(ros_domain: int, tmp_path: Path) -> Iterator[Bench]:
    """A bench that cleans up after itself."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()
