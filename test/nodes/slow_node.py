"""A node that says when its constructor, its run and its close begin. Words make one of them misbehave."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time

from bid_ros.nodes import run as node_run
from bid_ros.nodes.base import BidNode
from bid_ros.system import ending
from bid_ros.system.priority import raise_priority

HUNG_S = 2.0  # for which a node that hangs may go on after it was asked to end, instead of ``ending.END_S``
LINGER_S = 1.0  # for which it waits for those that it outlives, instead of ``node_run.LINGER_S``


def say(text: object) -> None:
    print(text, flush=True)


class Slow(BidNode):
    outlives = ("/arm/status",) if "outlives" in sys.argv else ()

    def __init__(self) -> None:
        super().__init__("slow", ())
        self.ticks: list[str] = []
        say("made")
        if "slow-start" in sys.argv:
            time.sleep(600)

    def begin(self) -> None:
        self.create_timer(0.01, self.tick)
        if "child" in sys.argv:
            threading.Thread(target=lambda: say(subprocess.run(["sleep", "1.5"], check=False).returncode)).start()

    def tick(self) -> None:
        say("runs" if all(self.count_publishers(topic) for topic in self.outlives) else "waits")
        if "hangs" in sys.argv:
            time.sleep(600)
        if "ends" in sys.argv or ("counts" in sys.argv and len(self.ticks) == 20):
            self.end(7)
        self.ticks.append("tick")
        if "logs" in sys.argv:
            begun = time.thread_time()
            self.get_logger().info("a line")
            say(f"frozen {gc.get_freeze_count()}, first line {time.thread_time() - begun:.6f} s")

    def close(self) -> None:
        say("closes")
        time.sleep(1.0 if "slow-close" in sys.argv else 0.0)
        say("closed")


if __name__ == "__main__":
    os.setsid()  # the signals of a terminal reach a whole group
    # Linux divides a busy computer between sessions: a new one begins without the priority of the tests.
    raise_priority(0)
    if "hangs" in sys.argv:
        ending.END_S = HUNG_S
    node_run.LINGER_S = LINGER_S
    node_run.run_node(Slow)
