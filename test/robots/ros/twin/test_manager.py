"""The simulated robot, seen from its topics."""

from itertools import pairwise

import numpy as np
import pytest
from memory_bus import MemoryBus, stamped

from bid_ros.core.errors import ArmError
from bid_ros.robots.ros.twin.controllers import ForwardController
from bid_ros.robots.ros.twin.description import NAMES, arm_urdf
from bid_ros.robots.ros.twin.manager import CYCLE_S, RobotUnderControl
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController
from bid_ros.robots.ur.twin.model import HOME_Q
from bid_ros.robots.ur.twin.plant import KinematicPlant

FORWARD = ForwardController.name


class Fingers:
    """Fingers that close in three looks, or not at all."""

    def __init__(self):
        self.opening, self.status, self._looks, self._wanted = 0.085, 3, 0, 0.085

    def command(self, opening, speed, force):
        self._wanted, self.status, self._looks = opening, 0, 3

    def look(self):
        self._looks -= 1
        if self._looks == 0:
            self.opening, self.status = self._wanted, 3


@pytest.fixture
def fingers():
    return Fingers()


@pytest.fixture
def bus():
    return MemoryBus()


@pytest.fixture
def robot(bus, fingers):
    made = RobotUnderControl(bus, KinematicPlant(HOME_Q), fingers)
    made.start()
    return made


def cycles(robot, count):
    for _ in range(count):
        robot.cycle()


def test_the_service_lists_the_controllers_as_the_topic_does(robot, bus):
    for name in (FORWARD, TrajectoryController.name, ""):
        robot.switch(name)
        request = bus.ask("controller_manager/list_controllers")
        cycles(robot, 2)
        assert {item.name: item.state for item in request.answer().controller} == labels(bus)
        assert labels(bus).get(name, "active") == "active"


def labels(bus):
    return {item["name"]: item["state"]["label"] for item in bus.sent["controller_manager/activity"][-1]["controllers"]}


def test_it_tells_urdf_joints_and_who_is_active(bus, robot):
    cycles(robot, 8)
    assert bus.sent["robot_description"] == [{"data": arm_urdf()}]
    state = bus.sent["joint_states"][-1]
    assert state["name"][:-1] == sorted(NAMES) != list(NAMES)
    assert dict(zip(state["name"], state["position"], strict=True))["elbow_joint"] == pytest.approx(HOME_Q[2])
    assert len(bus.sent["joint_states"]) == 2
    assert labels(bus)["joint_trajectory_controller"] == "active" and labels(bus)[FORWARD] == "inactive"


def test_positions_are_followed_with_a_lag_and_without_a_jump(bus, robot):
    robot.switch(FORWARD)
    bus.publish(f"{FORWARD}/commands", {"data": [*HOME_Q[:5], HOME_Q[5] + 0.1]})
    path = []
    for _ in range(150):
        robot.cycle()
        path.append(robot.servo.joints[5] - HOME_Q[5])
    assert path[-1] == pytest.approx(0.1, abs=1e-3) and path[int(0.03 / CYCLE_S)] < 0.08
    assert max(b - a for a, b in pairwise(path)) < 0.006


def test_a_controller_that_is_not_active_moves_nothing_and_takes_nothing_later(bus, robot):
    bus.publish(f"{FORWARD}/commands", {"data": [0.0] * 6})
    cycles(robot, 20)
    robot.switch(FORWARD)
    cycles(robot, 20)
    assert robot.servo.joints == pytest.approx(HOME_Q)


def test_deactivated_in_motion_the_last_command_is_reached_and_held(bus, robot):
    robot.switch(FORWARD)
    bus.publish(f"{FORWARD}/commands", {"data": [*HOME_Q[:5], HOME_Q[5] + 0.1]})
    cycles(robot, 5)
    robot.switch("")
    assert set(labels(bus).values()) == {"active", "inactive"} and labels(bus)[FORWARD] == "inactive"
    bus.publish(f"{FORWARD}/commands", {"data": [0.0] * 6})
    cycles(robot, 200)
    assert robot.servo.joints[5] == pytest.approx(HOME_Q[5] + 0.1, abs=1e-4)


def test_a_trajectory_that_is_not_valid_is_counted(bus, robot):
    topic = TrajectoryController.topic
    bus.publish(topic, {"header": stamped(0), "joint_names": ["x"], "points": []})
    cycles(robot, 4)
    assert robot.controllers[TrajectoryController.name].refused == 1
    assert np.allclose(robot.servo.joints, HOME_Q)


def test_a_goal_moves_the_arm_and_only_the_active_controller_takes_it(bus, robot):
    point = {"positions": [*HOME_Q[:5], HOME_Q[5] + 0.1], "velocities": [], "time_from_start": {"sec": 0, "nanosec": 0}}
    trajectory = {"header": stamped(0), "joint_names": list(NAMES), "points": [point]}
    told = {"path_tolerance": [], "goal_tolerance": [], "goal_time_tolerance": {"sec": 0, "nanosec": 0}}
    goal = bus.send_goal(TrajectoryController.action.name, {"trajectory": trajectory, **told})
    cycles(robot, 150)
    assert goal.done() and goal.status == "succeeded"
    assert robot.servo.joints[5] == pytest.approx(HOME_Q[5] + 0.1, abs=1e-3)
    assert bus.send_goal(TrajectoryController.action.name, {"trajectory": {**trajectory, "points": []}, **told}).refused
    robot.switch(FORWARD)
    refused = bus.send_goal(TrajectoryController.action.name, {"trajectory": trajectory, **told})
    with pytest.raises(ArmError, match="refused a goal"):
        refused.done()


def test_a_goal_of_the_gripper_that_is_cancelled_ends_and_the_fingers_stop(bus, robot, fingers):
    goal = bus.send_goal("gripper_controller/gripper_cmd", {"command": {"position": 0.8}})
    cycles(robot, 2)
    goal.cancel()
    cycles(robot, 2)
    assert goal.status == "canceled" and fingers._wanted == fingers.opening == 0.085


def test_the_newest_goal_of_the_gripper_replaces_one_that_runs(bus, robot, fingers):
    goals = [bus.send_goal("gripper_controller/gripper_cmd", {"command": {"position": p}}) for p in (0.4, 0.8)]
    cycles(robot, 2)
    assert goals[0].done() and not goals[0].result["reached_goal"] and not goals[1].done()
    for _ in range(3):
        fingers.look()
    cycles(robot, 2)
    assert goals[1].result == {"position": pytest.approx(0.8), "stalled": False, "reached_goal": True}


def test_a_controller_that_it_does_not_have_is_one_sentence(robot):
    with pytest.raises(ArmError, match="no controller 'velocity'; valid are joint_trajectory_controller, forward_"):
        robot.switch("velocity")
