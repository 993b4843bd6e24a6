"""What every node shares, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

# Asked to end in the middle of a start that takes long, as of a node that loads a model.
SLOW_START = """
import os, signal, sys, time
import rclpy
from bid_ros.nodes.base import BidNode, run_node

def slow() -> BidNode:
    node = BidNode("slow", ())
    os.kill(os.getpid(), signal.SIGTERM)
    while rclpy.ok():
        time.sleep(0.01)
    return node

sys.exit(run_node(slow))
"""


def test_a_shutdown_during_a_slow_start_ends_a_node_without_a_word(ros_domain):
    done = subprocess.run([sys.executable, "-c", SLOW_START], capture_output=True, text=True, timeout=40)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
