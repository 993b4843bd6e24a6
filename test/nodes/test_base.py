"""What every node shares, in a process of its own: how it begins and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fork_server import fork_server
from nodes.slow_node import HUNG_S, LINGER_S
from qos import STATE
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter

from bid_msgs.msg import ArmStatus
from bid_ros.system import ending

LIMIT_S = 40.0
NODE = Path(__file__).with_name("slow_node.py")


def test_a_parameter_that_a_node_does_not_have_is_refused(bench, root):
    bench.start("safety", {"task": str(root / "config" / "franka_place" / "task.yaml"), "late_limt": 7})
    status, output = bench.finish("safety")
    assert status == 2 and output.count("error: ") == 1 and "Traceback" not in output
    assert "node 'safety' has no parameter 'late_limt'; valid are task, required" in output


class Process:
    """A node, whose words are waited for. It is forked, unless it has to import everything itself."""

    def __init__(self, *words: str, fork: bool = True, **env: str) -> None:
        (output, told), (errors, complained) = os.pipe(), os.pipe()
        self.stdout, self.stderr = os.fdopen(output), os.fdopen(errors)
        with pytest.MonkeyPatch.context() as patch, Path(os.devnull).open("rb") as nothing:
            for name, value in env.items():
                patch.setenv(name, value)
            streams = (nothing.fileno(), told, complained)
            self.process: Any = (
                fork_server().start(str(NODE), words, streams)
                if fork
                else subprocess.Popen([sys.executable, NODE, *words], stdin=nothing, stdout=told, stderr=complained)
            )
        os.close(told)
        os.close(complained)

    def until(self, word: str) -> None:
        for line in self.stdout:
            if line.strip() == word:
                return
        raise AssertionError(f"it ended before it said '{word}': {self.stderr.read()}")

    def interrupt(self, kind: int = signal.SIGINT) -> None:
        """Send a signal to the whole group, as a terminal does."""
        os.killpg(self.process.pid, kind)

    def finish(self) -> tuple[int, str, str]:
        try:
            status = self.process.wait(LIMIT_S)
        finally:
            self.process.kill()
        return status, self.stdout.read(), self.stderr.read()


@pytest.mark.parametrize(("kind", "fork"), [(signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGHUP, True)])
def test_a_signal_ends_a_node_in_order_and_without_a_word(ros_domain, kind, fork):
    node = Process(fork=fork)
    node.until("runs")
    node.interrupt(kind)
    status, output, errors = node.finish()
    assert (status, output.splitlines()[-2:], errors) == (0, ["closes", "closed"], "")


def test_a_signal_during_a_slow_start_ends_a_node_at_once_and_without_a_word(ros_domain):
    node = Process("slow-start")
    node.until("made")
    node.interrupt()
    assert node.finish() == (0, "", "")


def test_more_signals_do_not_disturb_the_end(ros_domain):
    node = Process("slow-close")
    node.until("runs")
    node.interrupt()
    node.until("closes")
    begun = time.monotonic()
    while time.monotonic() - begun < 0.8:
        node.interrupt()
        time.sleep(0.05)
    status, output, errors = node.finish()
    assert (status, output, errors) == (0, "closed\n", "")


def test_a_signal_of_a_terminal_does_not_reach_the_children_of_a_node(ros_domain):
    node = Process("child", "slow-close")
    node.until("runs")
    node.interrupt()
    status, output, errors = node.finish()
    assert status == 0 and errors == "" and "closed" in output
    assert "-2" not in output, "the child was interrupted"


def test_a_node_may_end_itself_with_a_status(ros_domain):
    status, output, errors = Process("ends").finish()
    assert status == 7 and output.endswith("closed\n") and errors == ""


def test_a_node_at_work_is_interrupted_neither_by_its_first_line_nor_by_its_garbage(ros_domain):
    node = Process("logs", "ends", fork=False)
    _, output, _ = node.finish()
    frozen, cpu_s = (float(word) for word in re.findall(r"[\d.]+", output.splitlines()[2]))
    assert frozen > 10_000, "objects that a full collection would go through"
    assert cpu_s < 0.015, "rclpy looked through all modules for who logs"


def test_a_node_ends_when_its_supervisor_is_killed_though_nobody_reads_its_words(ros_domain):
    supervisor = subprocess.Popen(["sleep", "600"])
    node = Process(BID_SUPERVISOR=str(supervisor.pid))
    node.until("runs")
    node.stdout.close()
    node.stderr.close()
    supervisor.kill()
    supervisor.wait()
    assert node.process.wait(LIMIT_S) == 1


def test_a_node_works_on_though_nobody_reads_its_words(ros_domain):
    """For a moment a node whose front end was killed does not know it, and its episode has to be ended."""
    node = Process("counts")
    node.until("runs")
    node.stdout.close()
    node.stderr.close()
    assert node.process.wait(LIMIT_S) == 7


def test_a_node_whose_supervisor_is_gone_does_not_begin(ros_domain):
    supervisor = subprocess.Popen(["true"])
    supervisor.wait()
    assert Process(BID_SUPERVISOR=str(supervisor.pid)).finish() == (1, "", "")


def test_a_node_with_a_hung_executor_ends_too(ros_domain):
    """Whether it is asked to end or its supervisor is gone; both at once. They set a smaller ``END_S``."""
    assert ending.END_S == 15.0
    supervisor = subprocess.Popen(["sleep", "600"])
    asked, left = Process("hangs"), Process("hangs", BID_SUPERVISOR=str(supervisor.pid))
    for node in (asked, left):
        node.until("runs")
    begun = time.monotonic()
    asked.interrupt(signal.SIGTERM)
    supervisor.kill()
    supervisor.wait()
    for node in (asked, left):
        status, _, errors = node.finish()
        assert status == 1 and HUNG_S - 0.1 < time.monotonic() - begun < HUNG_S + 5.0
        # Standard error goes nowhere once the front end, which read it, is gone.
        assert node is left or ("Timeout (0:00:02)" in errors and "in tick" in errors), errors


@pytest.mark.parametrize("live", [True, False])
def test_a_node_waits_for_those_that_it_outlives_but_not_for_ever(bench, live):
    publisher = bench.node.create_publisher(ArmStatus, "/arm/status", STATE)
    node = Process("outlives")
    node.until("runs")
    if not live:
        bench.node.destroy_publisher(publisher)
    begun = time.monotonic()
    node.interrupt()
    status, _, errors = node.finish()
    assert (status, errors) == (0, "")
    assert not live or LINGER_S < time.monotonic() - begun < LINGER_S + 5.0


def test_a_node_that_compares_stamps_with_the_wall_clock_refuses_simulated_time(bench, root):
    task = {"task": str(root / "config" / "franka_place" / "task.yaml"), "twin": True}
    bench.start("safety", {**task, "use_sim_time": True})
    status, output = bench.finish("safety")
    assert status == 2 and output.count("error: ") == 1 and "Traceback" not in output
    assert "use_sim_time is true; valid for node 'safety' is false" in output
    bench.start("safety", task)
    client = bench.node.create_client(SetParameters, "/safety/set_parameters")
    assert bench.until(client.service_is_ready)
    future = client.call_async(
        SetParameters.Request(parameters=[Parameter("use_sim_time", value=True).to_parameter_msg()])
    )
    assert bench.until(future.done)
    (result,) = future.result().results
    assert not result.successful and "compares stamps with this computer's clock" in result.reason
