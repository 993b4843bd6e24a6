"""The arm node on a robot that is driven through ROS: the twin node is that robot, as another process."""

from __future__ import annotations

import time

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from qos import COMMAND, EVERY_STATE, STATE
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.nodes.robot_probe import probe_robot
from bid_ros.nodes.ros_messages import chunk_to_message
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.new import new_system
from bid_ros.tasks.twins import build_twin

START_S = 60.0


@pytest.fixture
def system(tmp_path):
    return new_system(tmp_path / "my_arm", "ros")


def test_the_arm_node_drives_the_twin_through_its_topics_alone(bench, system):
    address, files = "the twin", {"task": str(system.file("task.yaml"))}
    statuses, states, sent = [], [], []
    bench.node.create_subscription(ArmStatus, "/arm/status", statuses.append, EVERY_STATE)
    bench.node.create_subscription(JointState, "/joint_states", states.append, EVERY_STATE)
    topic = "/joint_trajectory_controller/joint_trajectory"
    bench.node.create_subscription(JointTrajectory, topic, sent.append, EVERY_STATE)
    bench.start("twin", {**files, "address": address})
    arm = {"arm": "ros", "arm_config": str(system.file("robot.yaml")), "robot_ip": address, "twin": True}
    bench.start("arm", {**files, **arm, "connect_wait_s": START_S})
    assert bench.until(lambda: len(statuses) > 20 and len(sent) > 20, START_S)
    assert statuses[-1].mode == ArmStatus.HOLDING and statuses[-1].reason == ""
    assert sent[-1].points[-1].velocities.tolist() == [0.0] * 6, "each trajectory ends at rest"
    assert bench.node.count_publishers("/joint_states") == 1, "the arm node leaves the robot's own topic alone"
    assert "elbow_joint" in states[-1].name and "robotiq_85_left_knuckle_joint" in states[-1].name


def test_a_gripper_that_is_not_there_stops_the_servo_and_the_arm_still_follows(bench, system):
    edited = yaml.safe_load(system.file("robot.yaml").read_text())
    system.file("robot.yaml").write_text(yaml.safe_dump({**edited, "gripper": None}))
    node, address, task, files = bench.node, "the twin", system.task, {"task": str(system.file("task.yaml"))}
    statuses, poses, sent = [], [], []
    node.create_subscription(ArmStatus, "/arm/status", statuses.append, EVERY_STATE)
    node.create_subscription(PoseStamped, "/arm/tool_pose", poses.append, EVERY_STATE)
    topic = "/joint_trajectory_controller/joint_trajectory"
    node.create_subscription(JointTrajectory, topic, sent.append, EVERY_STATE)
    chunks, beats = (
        node.create_publisher(ChunkMessage, "/safety/chunk", COMMAND),
        node.create_publisher(Heartbeat, "/heartbeat", STATE),
    )
    node.create_timer(0.05, lambda: [beats.publish(Heartbeat(node=name)) for name in ("policy", "safety")])
    bench.grant("policy")
    bench.start("twin", {**files, "address": address})
    arm = {"arm": "ros", "arm_config": str(system.file("robot.yaml")), "robot_ip": address, "twin": True}
    bench.start("arm", {**files, **arm, "connect_wait_s": START_S})
    assert bench.until(lambda: statuses and poses, START_S)
    position, quaternion = pose_arrays(poses[-1].pose)
    row = [*position, *matrix_to_6d(matrix_from_quaternion(quaternion)), 0.08]

    def send():
        chunk = ActionChunk(time.time_ns(), task.dt_ns, np.tile(row, (5, 1)), source="policy", sequence=0)
        chunks.publish(chunk_to_message(chunk, task, ""))

    assert bench.until(lambda: statuses[-1].mode == ArmStatus.STOPPED, START_S, each=send)
    assert "has no connected gripper" in statuses[-1].reason
    count = len(sent)
    assert bench.until(lambda: len(sent) > count + 20), "the arm holds by new trajectories"


def test_bid_check_connects_to_the_robot_and_moves_nothing(bench, system):
    bench.start("twin", {"task": str(system.file("task.yaml")), "address": "the twin"})
    config = load_arm_config(system.file("robot.yaml"), "arm", True, "ros")
    states = []
    bench.node.create_subscription(JointState, "/joint_states", states.append, EVERY_STATE)
    assert bench.until(lambda: states, START_S)
    assert probe_robot("ros", config).startswith("6 joints, state ")
    assert bench.until(lambda: len(states) > 100, START_S)
    assert states[-1].position.tolist() == pytest.approx(states[0].position.tolist(), abs=1e-3)


def test_a_twin_without_a_bus_is_one_sentence(system):
    with pytest.raises(ArmError, match="robot 'ros' is driven through ROS; valid is a run with its nodes"):
        build_twin(system.task, "x")
