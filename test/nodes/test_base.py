"""What every node shares, in a process of its own: how it begins and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from real_time import OWN_SESSION

LIMIT_S = 40.0
# Says when its constructor, its run and its close begin; words on the command line make one of them misbehave.
NODE = f"""{OWN_SESSION}
import gc, os, signal, sys, threading, time
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.run import run_node

words = sys.argv[1:]

def say(text):
    print(text, flush=True)

class Slow(BidNode):
    def __init__(self):
        super().__init__("slow", ())
        self.ticks = []
        say("made")
        if "slow-start" in words:
            time.sleep(600)

    def begin(self):
        self.create_timer(0.01, self.tick)
        threading.Thread(target=lambda: subprocess_of_its_own() if "child" in words else None).start()

    def tick(self):
        say("runs")
        if "hangs" in words:
            time.sleep(600)
        if "ends" in words:
            self.end(7)
        if "counts" in words and len(self.ticks) == 20:
            self.end(7)
        self.ticks.append("tick")
        if "logs" in words:
            begun = time.thread_time()
            self.get_logger().info("a line")
            say(f"frozen {{gc.get_freeze_count()}}, first line {{time.thread_time() - begun:.6f}} s")

    def close(self):
        say("closes")
        time.sleep(1.0 if "slow-close" in words else 0.0)
        say("closed")

def subprocess_of_its_own():
    import subprocess
    say(subprocess.run(["sleep", "1.5"]).returncode)

run_node(Slow)
"""


def test_a_parameter_that_a_node_does_not_have_is_refused(bench, root):
    bench.start("safety", {"task": str(root / "config" / "franka_place" / "task.yaml"), "late_limt": 7})
    status, output = bench.finish("safety")
    assert status == 2 and output.count("error: ") == 1 and "Traceback" not in output
    assert "node 'safety' has no parameter 'late_limt'; valid are task, required" in output


class Process:
    """A node, whose words are waited for."""

    def __init__(self, *words: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", NODE, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **env},
        )

    def until(self, word: str) -> None:
        for line in self.process.stdout:
            if line.strip() == word:
                return
        raise AssertionError(f"it ended before it said '{word}': {self.process.stderr.read()}")

    def interrupt(self, kind: int = signal.SIGINT) -> None:
        """Send a signal to the whole group, as a terminal does."""
        os.killpg(self.process.pid, kind)

    def finish(self) -> tuple[int, str, str]:
        try:
            output, errors = self.process.communicate(timeout=LIMIT_S)
        finally:
            self.process.kill()
        return self.process.returncode, output, errors


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_node_in_order_and_without_a_word(ros_domain, kind):
    node = Process()
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
    node = Process("logs", "ends")
    _, output, _ = node.finish()
    frozen, cpu_s = (float(word) for word in re.findall(r"[\d.]+", output.splitlines()[2]))
    assert frozen > 10_000, "objects that a full collection would go through"
    assert cpu_s < 0.015, "rclpy looked through all modules for who logs"


def test_a_node_ends_when_its_supervisor_is_killed_though_nobody_reads_its_words(ros_domain):
    supervisor = subprocess.Popen(["sleep", "600"])
    node = Process(BID_SUPERVISOR=str(supervisor.pid))
    node.until("runs")
    node.process.stdout.close()
    node.process.stderr.close()
    supervisor.kill()
    supervisor.wait()
    assert node.process.wait(LIMIT_S) == 1


def test_a_node_works_on_though_nobody_reads_its_words(ros_domain):
    """For a moment a node whose front end was killed does not know it, and its episode has to be ended."""
    node = Process("counts")
    node.until("runs")
    node.process.stdout.close()
    node.process.stderr.close()
    assert node.process.wait(LIMIT_S) == 7


def test_a_node_whose_supervisor_is_gone_does_not_begin(ros_domain):
    supervisor = subprocess.Popen(["true"])
    supervisor.wait()
    assert Process(BID_SUPERVISOR=str(supervisor.pid)).finish() == (1, "", "")


def test_a_node_with_a_hung_executor_ends_too(ros_domain):
    """Whether it is asked to end or its supervisor is gone; both at once, as they wait long."""
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
        assert status == 1 and 14.0 < time.monotonic() - begun < 20.0
        # Standard error goes nowhere once the front end, which read it, is gone.
        assert node is left or ("Timeout (0:00:15)" in errors and "in tick" in errors), errors


def test_a_node_that_compares_stamps_with_the_wall_clock_refuses_simulated_time(bench, root):
    task = {"task": str(root / "config" / "franka_place" / "task.yaml")}
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
