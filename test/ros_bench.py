"""A test's own ROS node beside real node processes that end with the test."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
import yaml
from fork_server import ForkedProcess, fork_server
from qos import STATE
from rclpy.context import Context
from rclpy.node import Node

from bid_msgs.msg import Grant
from bid_ros.core.topics import GRANT
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.ros_messages import duration_message

TURN_S = 0.02  # between two looks at what a test waits for


class Bench:
    """A test's own node, spun until conditions hold, beside real node processes."""

    def __init__(self, folder: Path) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node("bench", context=self.context)
        self._executor = FastExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._folder, self._started = folder, 0
        self.processes: dict[str, ForkedProcess] = {}
        self._grants: Any = None
        self.granted: tuple[str, ...] | None = None
        self._robot = ""

    def until(
        self, condition: Callable[[], Any], timeout_s: float = 15.0, each: Callable[[], None] | None = None
    ) -> bool:
        """Spin until the condition holds; False when the time is over. ``each`` is called every ``TURN_S``."""
        end, again = time.monotonic() + timeout_s, 0.0
        while time.monotonic() < end:
            if condition():
                return True
            # Not after each message: the answer to what it sends would make it send again at once.
            if each is not None and time.monotonic() >= again:
                again = time.monotonic() + TURN_S
                each()
            self._executor.spin_once(timeout_sec=TURN_S)
        return bool(condition())

    def grant(self, *sources: str, robot: str = "") -> None:
        """Grant these sources, and no other, the arm of a robot, renewed while this bench spins; none ends it."""
        if self._grants is None:
            self._grants = self.node.create_publisher(Grant, GRANT, STATE)
            self.node.create_timer(0.05, self._renew)
        self.granted, self._robot = sources, robot
        self._renew()

    def stop_granting(self) -> None:
        """Renew no grant any more, as if whoever is in charge were dead."""
        self.granted = None

    def _renew(self) -> None:
        if self.granted is not None:
            duration = duration_message(500_000_000)
            self._grants.publish(Grant(robot=self._robot, granter="bench", sources=self.granted, duration=duration))

    def start(self, name: str, parameters: dict[str, Any], *ros_arguments: str) -> ForkedProcess:
        """Start a node process with these parameters and arguments, such as ``-r __ns:=/left``."""
        # A file of its own: the process before may not have read the one of the same name yet.
        self._started += 1
        file = self._folder / f"{name}_{self._started}.yaml"
        file.write_text(yaml.safe_dump({f"/**/{name}": {"ros__parameters": parameters}}))
        arguments = ["--ros-args", "-r", f"__node:={name}", *ros_arguments, "--params-file", str(file)]
        process = fork_server().start(f"bid_ros.nodes.{name}_node", arguments)
        self.processes[name] = process
        return process

    def finish(self, name: str, timeout_s: float = 20.0) -> tuple[int, str]:
        """Wait for a process to end by itself; return exit status and output."""
        process = self.processes.pop(name)
        output, _ = process.communicate(timeout=timeout_s)
        return process.returncode, output

    def close(self) -> None:
        """End everything; every node must end without a word of Python's own."""
        # Some nodes wait until nobody publishes any more what they outlive.
        self._executor.shutdown()
        self.node.destroy_node()
        for process in self.processes.values():
            process.terminate()
        outputs = {}
        for name, process in self.processes.items():
            try:
                outputs[name], _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                outputs[name], _ = process.communicate()
        rclpy.shutdown(context=self.context)
        for name, output in outputs.items():
            assert "Traceback" not in (output or ""), f"{name}: {output}"
