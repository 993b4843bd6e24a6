"""A gamepad on a topic."""

from types import SimpleNamespace

import numpy as np

from bid_ros.teleop.joy import DEVICE, Joy, JoySettings

AXES = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]  # left stick forward; the triggers rest at 1
BUTTONS = [0, 0, 0, 0, 1, 0, 0, 0]


def heard(now_ns: int = 0, **fields: object) -> Joy:
    joy = Joy(JoySettings(deadzone=0.0))
    joy.hear("joy", SimpleNamespace(**{"axes": AXES, "buttons": BUTTONS, **fields}), now_ns)
    return joy


def test_the_left_stick_drives_while_the_bumper_is_held():
    command = heard().poll(1)
    assert command.live
    np.testing.assert_allclose(command.twist, [1, 0, 0, 0, 0, 0], atol=1e-12)


def test_silence_opens_the_dead_mans_switch():
    joy = heard(now_ns=1_000_000_000)
    assert joy.poll(1_249_000_000).live
    assert not joy.poll(1_251_000_000).live
    assert not Joy(JoySettings()).poll(0).live


def test_what_is_missing_or_no_number_counts_as_rest():
    assert not heard(buttons=[]).poll(1).live
    assert not heard(axes=[0.0, float("nan")]).poll(1).twist.any()


def test_the_node_is_told_which_topic_it_is():
    assert DEVICE.topics(None, DEVICE.read("topic: pad/joy")) == {"pad/joy": "sensor_msgs/msg/Joy"}
