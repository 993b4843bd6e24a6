"""People drive: real devices, the real teleop node, and what it publishes."""

from __future__ import annotations

import os
import pty
import socket
import time

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from qos import EVENT, EVERY_COMMAND, EVERY_STATE, STATE
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger
from tf2_msgs.msg import TFMessage

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.core.topics import TF_STATIC_QOS
from bid_ros.nodes.ros_messages import pose_message, transform_message
from bid_ros.nodes.topics import profile

LIMIT_S = 20.0
START, DOWN = [0.48, 0.0, 0.30], [1.0, 0.0, 0.0, 0.0]


class Driven:
    """The teleop node in an episode. The bench plays the arm and the episode runner."""

    def __init__(self, bench, root, device: str, settings: str = "") -> None:
        self.bench, self.chunks = bench, []
        node = bench.node
        arm = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self.events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        node.create_subscription(ChunkMessage, "/teleop/chunk", self.chunks.append, EVERY_COMMAND)
        safety = node.create_publisher(SafetyState, "/safety/state", STATE)
        node.create_timer(0.05, lambda: arm.publish(ArmStatus(tool=pose_message(START, DOWN))))
        node.create_timer(0.05, lambda: safety.publish(SafetyState(state=SafetyState.RUNNING)))
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


class Sharing:
    """The teleop node in an episode of a policy, over which a person with a gamepad may take over."""

    def __init__(self, bench, root) -> None:
        self.bench, self.chunks, self.switch = bench, [], []
        node = bench.node
        self.status = ArmStatus(tool=pose_message(START, DOWN), reference=pose_message([0.45, 0.1, 0.3], DOWN))
        self.status.reference_gripper = 0.03
        arm = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self.events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        self.pad = node.create_publisher(Joy, "/joy", STATE)
        node.create_subscription(ChunkMessage, "/teleop/chunk", self.chunks.append, EVERY_COMMAND)
        node.create_subscription(Bool, "/teleop/switch", lambda item: self.switch.append(item.data), EVERY_COMMAND)
        node.create_timer(0.05, lambda: arm.publish(self.status))
        bench.grant("policy")
        task = str(root / "config" / "franka_place" / "task.yaml")
        bench.start("teleop", {"task": task, "device": "joy", "takeover": True})
        ends = (self.events, arm, self.pad)
        assert bench.until(lambda: all(end.get_subscription_count() for end in ends), LIMIT_S)
        self.events.publish(EpisodeEvent(kind=EpisodeEvent.START))

    def hold(self, bumper, forward=0.0, **pressed):
        at = {"a": 0, "b": 1, "y": 3, "select": 6, "start": 7}
        buttons = [0] * 8
        buttons[4] = int(bumper)
        for name in pressed:
            buttons[at[name]] = 1
        self.pad.publish(Joy(axes=[0.0, forward, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0], buttons=buttons))

    def says(self, held, **kept):
        return self.bench.until(lambda: self.switch and self.switch[-1] == held, LIMIT_S, lambda: self.hold(**kept))


def test_a_person_takes_over_where_the_set_point_rests_with_the_gripper_as_it_was(bench, root):
    sharing = Sharing(bench, root)
    assert sharing.says(False, bumper=False) and not sharing.chunks
    assert sharing.says(True, bumper=True, forward=1.0)
    assert not sharing.chunks, "nobody grants it yet"
    bench.grant("teleop")
    assert bench.until(lambda: len(sharing.chunks) > 8, LIMIT_S, lambda: sharing.hold(True, 1.0))
    first, last = (
        np.array(chunk.actions).reshape(chunk.steps, chunk.dims) for chunk in sharing.chunks[:: len(sharing.chunks) - 1]
    )
    np.testing.assert_allclose(first[0, :3], [0.45, 0.1, 0.3], atol=1e-6)
    assert last[-1, 0] > 0.46
    assert np.isclose(last[:, -1], 0.03).all(), "what it holds is not dropped"
    bench.grant("policy")
    count = len(sharing.chunks)
    assert bench.until(lambda: sharing.switch.clear() or True, 1.0)
    assert sharing.says(True, bumper=True, forward=1.0)
    assert len(sharing.chunks) <= count + 2, "without a grant it says nothing"


def test_a_silent_gamepad_has_not_let_go_of_its_switch(bench, root):
    sharing = Sharing(bench, root)
    assert sharing.says(True, bumper=True)
    sharing.switch.clear()
    assert bench.until(lambda: len(sharing.switch) > 2, LIMIT_S)
    seen = []
    quiet = time.monotonic() + 1.0
    assert bench.until(lambda: time.monotonic() > quiet, LIMIT_S, lambda: seen.append(len(sharing.switch)))
    assert seen[-1] == len(sharing.switch) and all(sharing.switch), "it is silent, too"


def test_buttons_start_mark_and_take_back_episodes_and_leave_a_note(bench, root):
    calls, notes = [], []

    def serve(kind, name):
        def answer(request, response):
            calls.append(name + str(getattr(request, "data", "")))
            response.success = True
            return response

        return bench.node.create_service(kind, name, answer)

    services = [serve(Trigger, f"/episode/{name}") for name in ("start", "discard", "undo")]
    services.append(serve(SetBool, "/episode/outcome"))
    bench.node.create_subscription(String, "/episode/note", lambda item: notes.append(item.data), EVERY_STATE)
    sharing = Sharing(bench, root)
    assert sharing.says(False, bumper=False)

    def press(name, wanted):
        calls.clear()
        up = [0]

        def alternate():
            up[0] += 1
            sharing.hold(False, **({name: True} if up[0] % 20 > 10 else {}))

        return bench.until(lambda: calls, LIMIT_S, alternate) and set(calls) == {wanted}

    for name, wanted in {"start": "/episode/outcomeTrue", "b": "/episode/outcomeFalse"}.items():
        assert press(name, wanted), calls
    assert press("select", "/episode/discard")
    assert bench.until(
        lambda: notes,
        LIMIT_S,
        lambda: sharing.hold(False, **({"y": True} if len(calls) % 2 else {})) or calls.append(""),
    )
    sharing.events.publish(EpisodeEvent(kind=EpisodeEvent.END))
    waited = time.monotonic() + 1.3
    assert bench.until(lambda: time.monotonic() > waited, LIMIT_S, lambda: sharing.hold(False))
    assert press("start", "/episode/start") and press("select", "/episode/undo")
    assert press("b", "/episode/outcomeFalse")
    assert len(services) == 4


@pytest.mark.parametrize("silent", ["joints", "pedal"])
def test_a_leader_arm_leads_while_the_pedal_is_down_and_the_silence_of_one_topic_stops(bench, root, silent):
    arm = bench.node.create_publisher(JointState, "/leader/joint_states", STATE)
    pedal = bench.node.create_publisher(Joy, "/leader/hold", STATE)
    driven = Driven(bench, root, "leader")
    assert bench.until(lambda: arm.get_subscription_count() and pedal.get_subscription_count(), LIMIT_S)
    angles = [0.0, -0.28, 0.0, -2.40, 0.0, 2.12, 0.785]

    def lead(without: str = "") -> None:
        if without != "joints":
            arm.publish(JointState(name=[f"joint{number}" for number in range(7)], position=angles))
        if without != "pedal":
            pedal.publish(Joy(buttons=[1]))

    bench.until(lambda: len(driven.chunks) > 20, LIMIT_S, lead)
    assert driven.at_rest(), "it takes over where the arm is"
    angles[3] = -2.2  # the elbow opens: the tool goes away from the base
    before = driven.x()
    assert driven.goes(lead)
    assert driven.x() > before
    angles[3] = -1.6  # far, so that the tool is still on its way
    assert bench.until(lambda: not driven.at_rest(), LIMIT_S, lead)
    assert bench.until(driven.at_rest, LIMIT_S, lambda: lead(without=silent))


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.timeout(180)
def test_a_browser_drives_and_the_arm_stops_when_it_is_killed(bench, root, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    # A camera that looks straight down, with the robot's back at the upper edge of its picture.
    camera = transform_message(0, "base", "third_person_optical_frame", [0.5, 0.0, 1.0], [0.5**0.5, 0.5**0.5, 0, 0])
    cameras = bench.node.create_publisher(TFMessage, "/tf_static", profile(TF_STATIC_QOS))
    cameras.publish(TFMessage(transforms=[camera]))
    driven = Driven(bench, root, "page", f"port: {port}")
    browser = Browser(tmp_path / "profile", f"http://127.0.0.1:{port}/")
    try:
        shown = lambda: browser.value("document.getElementById('facts').textContent")  # noqa: E731
        assert bench.until(lambda: "0.480 0.000 0.300" in (shown() or ""), LIMIT_S)
        assert bench.until(lambda: browser.value("steersBy()") == "third_person", LIMIT_S)
        before = driven.x()
        browser.key("w", down=True)
        assert driven.goes() and driven.x() < before, "away is where the picture's upper edge is"
        browser.key("w", down=False)
        assert driven.stops()
        browser.value("choose('')")  # the robot's own axes
        browser.key("w", down=True)
        assert driven.goes()
        browser.key("w", down=False)
        assert driven.stops()
        browser.touch("#plane", right=0.0, up=-0.9)
        before = driven.x()
        assert driven.goes()
        assert driven.x() < before
        browser.touch("#plane", right=0.0, up=-0.9, kind="mouseReleased")
        assert driven.stops()
        _follows(driven, browser)
        browser.key("w", down=True)
        assert driven.goes()
        browser.kill()
        assert driven.stops(), "the connection is lost"
    finally:
        browser.kill()


def _follows(driven: Driven, browser: Browser) -> None:
    """The tool goes as far as a pad is dragged, turns as the phone turns, and nothing jumps at the next hold."""

    def lean(alpha: float) -> None:
        browser.call("DeviceOrientation.setDeviceOrientationOverride", alpha=alpha, beta=40.0, gamma=0.0)
        assert driven.bench.until(lambda: browser.value("lean[0]") == alpha, LIMIT_S), "the page has not heard of it"

    def near(x: float, yaw: float) -> bool:
        first = np.array(driven.chunks[-1].actions)[3:6]
        return abs(driven.x() - x) < 0.002 and abs(np.arctan2(first[1], first[0]) - yaw) < 0.02

    assert browser.value("isSecureContext"), "on this computer alone a page needs no certificate"
    browser.value("const m = document.getElementById('mode'); m.value = 'follow'; m.dispatchEvent(new Event('change'))")
    x = driven.x()
    lean(80.0)
    browser.touch("#plane", right=0.0, up=-0.2)
    assert driven.bench.until(lambda: browser.value("document.body.className") == "moving", LIMIT_S)
    browser.touch("#plane", right=0.0, up=0.2, kind="mouseMoved")
    assert driven.bench.until(lambda: near(x + 0.4 * 0.15, 0.0), LIMIT_S)
    lean(100.0)
    assert driven.bench.until(lambda: near(x + 0.4 * 0.15, np.radians(20.0)), LIMIT_S)
    browser.touch("#plane", right=0.0, up=0.2, kind="mouseReleased")
    assert driven.stops()
    lean(0.0)
    driven.chunks.clear()
    browser.touch("#plane", right=0.5, up=0.5)
    assert driven.bench.until(lambda: len(driven.chunks) > 10, LIMIT_S)
    assert near(x + 0.4 * 0.15, np.radians(20.0)), "it stays where it was let go"
    assert driven.at_rest()
    browser.touch("#plane", right=0.5, up=0.5, kind="mouseReleased")
    width = driven.chunks[-1].actions[9]
    browser.touch("#opening", right=0.2, up=0.8)
    browser.touch("#opening", right=0.2, up=0.8, kind="mouseReleased")
    driven.chunks.clear()
    assert driven.bench.until(lambda: len(driven.chunks) > 10, LIMIT_S)
    assert driven.chunks[-1].actions[9] == width, "a touch drops nothing"
    browser.touch("#opening", right=-0.5, up=0.8)  # the gripper measures 0: as far as it is dragged, not where
    browser.touch("#opening", right=0.5, up=0.8, kind="mouseMoved")
    assert driven.bench.until(lambda: abs(driven.chunks[-1].actions[9] - 0.04) < 1e-3, LIMIT_S)
    browser.touch("#opening", right=0.5, up=0.8, kind="mouseReleased")
    assert driven.bench.until(
        lambda: browser.value("document.querySelector('#opening i').style.width") == "0%", LIMIT_S
    )
