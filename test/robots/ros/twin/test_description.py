"""The frames of the simulated robot, against its kinematics."""

import numpy as np
import pytest
from memory_bus import MemoryBus

from bid_ros.robots.ros.tool import TransformReader
from bid_ros.robots.ros.twin.description import BASE, FREQUENCY_HZ, TOOL, StatePublisher, arm_urdf
from bid_ros.robots.ros.urdf import read_chain, serial_chain

NOW = 1_700_000_000_000_000_000
JOINTS = np.array([0.3, -1.2, 1.7, -0.4, 1.1, 2.0])


@pytest.fixture
def bus():
    return MemoryBus()


@pytest.fixture
def publisher(bus):
    made = StatePublisher(bus, arm_urdf(), "tf", "tf_static")
    made.start()
    return made


def test_the_frames_lead_to_where_the_joints_have_the_tool(bus):
    reader = TransformReader(bus, "tf", "tf_static")
    reader.begin()
    made = StatePublisher(bus, arm_urdf(), "tf", "tf_static")
    made.start()
    made.publish(NOW, JOINTS)
    reader.look()
    found = reader.find(BASE, TOOL)
    position, rotation = serial_chain(read_chain(arm_urdf(), BASE, TOOL, "")).forward(JOINTS)
    assert found.position == pytest.approx(position) and found.rotation == pytest.approx(rotation)


def test_what_moves_has_the_stamp_of_the_joints_and_the_flange_is_fixed(bus, publisher):
    publisher.publish(NOW, JOINTS)
    (moving,), (fixed,) = bus.sent["tf"], bus.sent["tf_static"]
    assert [item["child_frame_id"] for item in fixed["transforms"]] == [TOOL]
    assert len(moving["transforms"]) == 6
    assert {item["header"]["stamp"]["sec"] for item in moving["transforms"]} == {NOW // 10**9}


def test_joint_states_that_come_too_soon_are_left_out(bus, publisher):
    for step in range(4):
        publisher.publish(NOW + round(step * 0.6e9 / FREQUENCY_HZ), JOINTS)
    assert len(bus.sent["tf"]) == 2
