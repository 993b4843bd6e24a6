"""Where one frame is in another: trees, static transforms, repetitions, and what is missing as one sentence."""

import math
import time

import numpy as np
import pytest
from memory_bus import MemoryBus, transform

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.ros.tool import TransformReader

QUARTER = matrix_from_vector(np.array([0.0, 0.0, math.pi / 2]))


@pytest.fixture
def bus():
    return MemoryBus()


@pytest.fixture
def reader(bus):
    made = TransformReader(bus, "tf", "tf_static")
    made.begin()
    return made


def publish(bus, *transforms, topic="tf"):
    bus.publish(topic, {"transforms": list(transforms)})


def test_a_frame_is_found_over_several_transforms_and_messages(bus, reader):
    publish(bus, transform("wrist", "tool", (0.1, 0.0, 0.0)), topic="tf_static")
    publish(bus, transform("base", "arm", (1.0, 0.0, 0.0), QUARTER), transform("arm", "wrist", (0.5, 0.0, 0.0)))
    reader.look()
    found = reader.find("base", "tool")
    assert found.position == pytest.approx([1.0, 0.6, 0.0]) and found.rotation == pytest.approx(QUARTER)


def test_two_branches_meet_below_the_root(bus, reader):
    publish(bus, transform("world", "stand", (9.0, 9.0, 9.0)), topic="tf_static")
    publish(bus, transform("stand", "base", (0.0, 0.0, 0.5), QUARTER), transform("stand", "tool", (0.2, 0.0, 0.5)))
    reader.look()
    found = reader.find("base", "tool")
    assert found.position == pytest.approx([0.0, -0.2, 0.0]) and found.rotation == pytest.approx(QUARTER.T)


def test_the_oldest_moving_transform_between_them_tells_the_age(bus, reader):
    now = time.time()
    publish(bus, transform("world", "base", stamp_s=now - 0.09))
    publish(bus, transform("base", "arm", stamp_s=now - 0.05))
    reader.look()
    publish(bus, transform("arm", "tool", stamp_s=now))
    publish(bus, transform("tool", "finger", stamp_s=now - 0.08), topic="tf_static")
    reader.look()
    found = reader.find("base", "finger")
    assert found.frame == "arm" and found.oldest.stamp_ns == pytest.approx((now - 0.05) * 1e9, abs=1e4)


def test_a_stamp_that_comes_again_is_no_new_transform(bus, reader):
    now = time.time()
    publish(bus, transform("base", "tool", stamp_s=now))
    reader.look()
    first = reader.find("base", "tool").oldest
    publish(bus, transform("base", "tool", stamp_s=now))
    reader.look()
    assert reader.find("base", "tool").oldest == first
    publish(bus, transform("base", "tool", stamp_s=now + 0.001))
    reader.look()
    assert reader.find("base", "tool").oldest.steady_ns > first.steady_ns


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([], "no transform from frame 'base' to frame 'tool' came on /tf and /tf_static: no frame came at all"),
        ([("base", "arm")], "'tool' came on .*: frame 'tool' never came; the frames that came are arm, base"),
        ([("arm", "tool")], "frame 'base' never came; the frames that came are arm, tool"),
        ([("map", "base"), ("odom", "tool")], "not connected: one is below 'map', the other below 'odom'"),
        ([("base", f"f{number:02}") for number in range(30)], "are base, f00, .*, f18 and 11 more"),
    ],
)
def test_a_frame_that_is_missing_is_named_with_what_came(bus, reader, seen, said):
    publish(bus, *(transform(*names) for names in seen))
    reader.look()
    with pytest.raises(ArmError, match=said) as caught:
        reader.find("base", "tool")
    assert "\n" not in str(caught.value)


def test_a_tool_that_no_joint_moves_is_refused(bus, reader):
    publish(bus, transform("base", "tool"), topic="tf_static")
    reader.look()
    with pytest.raises(ArmError, match="from frame 'base' to frame 'tool' on /tf and /tf_static is static"):
        reader.find("base", "tool")


def test_a_loop_of_frames_ends_in_a_sentence(bus, reader):
    publish(bus, transform("a", "b"), transform("b", "a"))
    reader.look()
    with pytest.raises(ArmError, match="frame 'tool' never came"):
        reader.find("a", "tool")


def test_a_transform_that_is_no_pose_is_not_taken(bus, reader):
    publish(bus, transform("base", "tool", (0.1, 0.0, 0.0)))
    reader.look()
    bad = transform("base", "tool", (math.nan, 0.0, 0.0))
    publish(bus, bad)
    reader.look()
    assert r"[nan, 0.0, 0.0] m" in reader.problem("base", "tool")
    assert "of frame 'tool'; valid are finite numbers and a quaternion of length 1" in reader.problem("base", "tool")
    assert reader.find("base", "tool").position[0] == 0.1
    zero = transform("base", "tool")
    zero["transform"]["rotation"] = dict.fromkeys("xyzw", 0.0)
    publish(bus, zero)
    reader.look()
    assert "quaternion [0.0, 0.0, 0.0, 0.0]" in reader.problem("base", "tool")
    publish(bus, transform("base", "tool"))
    reader.look()
    assert reader.problem("base", "tool") == ""


def test_a_second_publisher_that_repeats_an_old_transform_does_not_move_the_tool(bus, reader):
    now = time.time()
    publish(bus, transform("base", "tool", (1.0, 0.0, 0.0), stamp_s=now))
    publish(bus, transform("base", "tool", (0.5, 0.0, 0.0), stamp_s=now - 5.0))
    reader.look()
    assert reader.find("base", "tool").position == pytest.approx([1.0, 0.0, 0.0])
