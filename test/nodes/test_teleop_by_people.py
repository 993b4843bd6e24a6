"""People drive: real devices, the real teleop node, and what it publishes."""

from __future__ import annotations

import os
import pty
import socket
import time

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from qos import COMMAND, EVENT, STATE
from sensor_msgs.msg import Joy

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.nodes.convert import pose_message

LIMIT_S = 20.0
START, DOWN = [0.48, 0.0, 0.30], [1.0, 0.0, 0.0, 0.0]


class Driven:
    """The teleop node in an episode. The bench plays the arm and the episode runner."""

    def __init__(self, bench, root, device: str, settings: str = "") -> None:
        self.bench, self.chunks = bench, []
        node = bench.node
        arm = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self.events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        node.create_subscription(ChunkMessage, "/teleop/chunk", self.chunks.append, COMMAND)
        node.create_timer(0.05, lambda: arm.publish(ArmStatus(tool=pose_message(START, DOWN))))
        bench.grant("teleop")
        task = str(root / "config" / "franka_place" / "task.yaml")
        bench.start("teleop", {"task": task, "device": device, "device_settings": settings})
        assert bench.until(lambda: self.events.get_subscription_count() and arm.get_subscription_count(), LIMIT_S)
        end = time.monotonic() + LIMIT_S
        while not self.chunks and time.monotonic() < end:
            self.events.publish(EpisodeEvent(kind=EpisodeEvent.START))  # until the tool is known to the node
            bench.until(lambda: self.chunks, 1.0)
        assert self.chunks

    def x(self) -> float:
        """The commanded position along x now."""
        return float(self.chunks[-1].actions[0])

    def at_rest(self) -> bool:
        chunk = self.chunks[-1]
        rows = np.array(chunk.actions).reshape(chunk.steps, chunk.dims)[:, :3]
        return bool(np.ptp(rows, axis=0).max() < 1e-6)

    def goes(self, each=None) -> bool:
        """Whether the tool moves 2 cm along x."""
        before = self.x()
        return self.bench.until(lambda: abs(self.x() - before) > 0.02, LIMIT_S, each)

    def stops(self) -> bool:
        return self.bench.until(self.at_rest, LIMIT_S)


def test_keys_of_a_terminal_drive_and_a_closed_terminal_stops(bench, root):
    master, slave = pty.openpty()
    driven = Driven(bench, root, "keyboard", f"terminal: {os.ttyname(slave)}")
    os.close(slave)
    assert driven.at_rest()
    assert driven.goes(lambda: os.write(master, b"w"))
    assert driven.stops(), "no key comes any more"
    before = driven.x()
    assert driven.goes(lambda: os.write(master, b"s"))
    assert driven.x() < before
    os.write(master, b"s" * 20)
    os.close(master)
    assert driven.stops()
    driven.chunks.clear()
    assert bench.until(lambda: len(driven.chunks) > 5, LIMIT_S), "it holds the arm"
    assert driven.at_rest()


def test_a_gamepad_on_a_topic_drives_while_its_switch_is_held_and_its_silence_stops(bench, root):
    pad = bench.node.create_publisher(Joy, "/joy", STATE)
    driven = Driven(bench, root, "joy")
    assert bench.until(pad.get_subscription_count, LIMIT_S)
    forward = Joy(axes=[0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0], buttons=[0, 0, 0, 0, 1, 0, 0, 0])
    assert driven.goes(lambda: pad.publish(forward))
    assert driven.stops(), "no message comes any more"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.timeout(180)
def test_a_browser_drives_and_the_arm_stops_when_it_is_killed(bench, root, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    driven = Driven(bench, root, "page", f"port: {port}")
    browser = Browser(tmp_path / "profile", f"http://127.0.0.1:{port}/")
    try:
        shown = lambda: browser.value("document.getElementById('state').textContent")  # noqa: E731
        assert bench.until(lambda: "tool 0.480" in (shown() or ""), LIMIT_S)
        browser.key("w", down=True)
        assert driven.goes()
        browser.key("w", down=False)
        assert driven.stops()
        browser.touch("#plane", right=0.0, up=-0.9)
        before = driven.x()
        assert driven.goes()
        assert driven.x() < before
        browser.kill()
        assert driven.stops(), "the connection is lost"
    finally:
        browser.kill()
