"""The parts of the driver that need no robot: whose controller is active, poses, twists, grippers."""

import math
import time

import numpy as np
import pytest
from memory_bus import MemoryBus, joint_state

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector, quaternion_from_matrix
from bid_ros.robots.bus import Channel
from bid_ros.robots.ros.config import RosConfig, RosGripperConfig
from bid_ros.robots.ros.gripper import RosGripper
from bid_ros.robots.ros.joints import JointReader
from bid_ros.robots.ros.link import Activity
from bid_ros.robots.ros.tool_stream import tool_follower

GRIPPER = RosGripperConfig("grip", "knuckle", open_position=0.0, closed_position=0.8, open_width=0.1, max_effort=20.0)


@pytest.fixture
def bus():
    return MemoryBus()


def states(**labels):
    return {"controllers": [{"name": name, "state": {"label": label}} for name, label in labels.items()]}


def test_a_controller_that_is_not_active_is_named_with_what_to_do(bus):
    activity = Activity(bus, RosConfig("arm", ("a",), controller="arm", activity="activity"))
    activity.begin()
    said = (
        "nothing came on /activity, and /controller_manager/list_controllers did not answer: one of them tells whether"
    )
    assert activity.problem() == f"{said} controller 'arm' is active"
    bus.publish("activity", states(joint_state_broadcaster="active"))
    assert "has no controller 'arm'; valid are joint_state_broadcaster" in activity.problem()
    bus.publish("activity", states(joint_state_broadcaster="active", arm="inactive", other="active"))
    advice = "activate it with: ros2 control switch_controllers --activate arm"
    assert activity.problem() == f"controller 'arm' is inactive, active are joint_state_broadcaster, other; {advice}"
    bus.publish("activity", states(arm="unconfigured"))
    assert activity.problem() == f"controller 'arm' is unconfigured, active are none; {advice}"
    bus.publish("activity", states(arm="active"))
    assert activity.problem() == ""


def test_nobody_is_asked_for_a_driver_without_controllers(bus):
    activity = Activity(bus, RosConfig("arm", ("a",), controller="", activity="activity"))
    activity.begin()
    assert activity.problem() == "" and not bus.listened and not bus.offered


LIST = "controller_manager/list_controllers"


def listed(**labels):
    return {"controller": [{"name": name, "state": label} for name, label in labels.items()]}


def asked(bus, monkeypatch, older=False):
    """What asks the service of a controller manager without the topic, or whose messages lack it, and a clock."""
    clock, listen = [100.0], MemoryBus.listen

    def fails(self, channel):
        raise ArmError("the type does not import")

    monkeypatch.setattr("bid_ros.robots.ros.link.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(MemoryBus, "listen", fails if older else listen)
    made = Activity(bus, RosConfig("arm", ("a",), controller="arm", activity="activity"))
    made.begin()
    assert bus.offered[LIST].type_name == "controller_manager_msgs/srv/ListControllers"
    return made, clock


@pytest.mark.parametrize("older", [False, True])
def test_the_service_says_the_same_where_there_is_no_topic(bus, monkeypatch, older):
    activity, clock = asked(bus, monkeypatch, older)
    assert "nothing came on /activity" in activity.problem() and len(bus.asked[LIST]) == 1
    clock[0] += 0.1
    activity.problem()
    assert len(bus.asked[LIST]) == 1, "it is not asked at every look"
    bus.reply(LIST, listed(joint_state_broadcaster="active", arm="inactive"))
    assert activity.problem().startswith(
        "controller 'arm' is inactive, active are joint_state_broadcaster; activate it"
    )
    clock[0] += 1.0
    activity.problem()
    bus.reply(LIST, listed(arm="active"))
    assert activity.problem() == ""
    clock[0] += 2.9
    assert activity.problem() == "" and len(bus.asked[LIST]) == 1, "asked anew, and the last answer still counts"
    clock[0] += 0.2
    assert "did not answer" in activity.problem(), "an old answer is none"


def test_the_topic_counts_where_it_comes_and_nobody_is_asked_any_more(bus, monkeypatch):
    activity, clock = asked(bus, monkeypatch)
    activity.problem()
    bus.reply(LIST, listed(arm="active"))
    bus.publish("activity", states(arm="inactive"))
    clock[0] += 1.0
    assert activity.problem().startswith("controller 'arm' is inactive") and LIST not in bus.asked


def test_what_the_service_said_before_does_not_count_after_a_new_beginning(bus, monkeypatch):
    activity, _ = asked(bus, monkeypatch)
    activity.problem()
    bus.reply(LIST, listed(arm="active"))
    assert activity.problem() == ""
    activity.begin()
    assert "nothing came on" in activity.problem()


def follower(bus, command):
    config = RosConfig("arm", ("a",), command=command, command_topic="goal", base_link="base", pose_gain=2.0)
    measured = np.array([0.1, 0.0, 0.3]), np.eye(3)
    return tool_follower(config, bus, lambda: measured)


def setpoint():
    turn = quaternion_from_matrix(matrix_from_vector(np.array([0.0, 0.0, 0.2])))
    return Setpoint(np.array([0.15, 0.0, 0.3]), turn, np.array([0.0, 0.1, 0.0]), np.array([0.0, 0.0, 0.5]))


def test_poses_are_passed_on_and_a_stop_asks_for_the_newest_one_again(bus):
    made = follower(bus, "pose")
    assert bus.offered["goal"].type_name == "geometry_msgs/msg/PoseStamped"
    made.command(setpoint())
    values = bus.sent["goal"][-1]
    assert values["header"]["frame_id"] == "base" and values["pose"]["position"] == {"x": 0.15, "y": 0.0, "z": 0.3}
    assert values["pose"]["orientation"]["z"] == pytest.approx(math.sin(0.1))
    assert made.brake() == 0.0
    assert len(bus.sent["goal"]) == 2 and bus.sent["goal"][-1]["pose"] == values["pose"]


def test_poses_begin_at_the_measured_one_and_never_at_one_that_is_not_finite(bus):
    config = RosConfig("arm", ("a",), command="pose", command_topic="goal")
    measured = np.array([0.1, 0.0, 0.3])
    made = tool_follower(config, bus, lambda: (measured, np.eye(3)))
    made.brake()
    assert "goal" not in bus.sent
    made.begin(np.zeros(1))
    measured[0] = math.nan
    made.brake()
    assert [sent["pose"]["position"]["x"] for sent in bus.sent["goal"]] == [0.1, 0.1]
    with pytest.raises(ArmError, match=r"the tool is measured at \[nan, 0.0, 0.3\] m; valid are finite numbers"):
        made.begin(np.zeros(1))


def test_twists_make_up_for_a_wrong_pose_and_a_stop_is_zero(bus):
    made = follower(bus, "twist")
    made.begin(np.zeros(1))
    assert set(bus.sent["goal"][-1]["twist"]["linear"].values()) == {0.0}
    made.command(setpoint())
    twist = bus.sent["goal"][-1]["twist"]
    assert list(twist["linear"].values()) == pytest.approx([0.1, 0.1, 0.0])
    assert list(twist["angular"].values()) == pytest.approx([0.0, 0.0, 0.9])
    made.brake()
    assert set(bus.sent["goal"][-1]["twist"]["angular"].values()) == {0.0}


def test_a_tool_that_is_late_by_its_lag_is_not_pushed(bus):
    """It moves with the set-points, 50 ms behind them."""
    speed, lag_s, begin = np.array([0.2, 0.0, 0.0]), 0.05, time.monotonic()
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal", pose_gain=10.0, twist_lag_s=lag_s)

    def places():
        return max(time.monotonic() - begin - lag_s, 0.0) * speed, np.eye(3)

    made = tool_follower(config, bus, places)
    made.begin(np.zeros(1))
    while (passed := time.monotonic() - begin) < 0.2:
        moving = speed if passed > 0 else np.zeros(3)
        made.command(Setpoint(passed * speed, np.array([0.0, 0.0, 0.0, 1.0]), moving, np.zeros(3)))
        time.sleep(0.005)
    asked = [sent["twist"]["linear"]["x"] for sent in bus.sent["goal"][1:]]
    assert np.median(asked) == pytest.approx(0.2, abs=0.02), "against the newest set-point it would be 0.3"


def test_after_a_pause_the_tool_is_not_taken_to_have_gone_on(bus):
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal", pose_gain=10.0, twist_lag_s=0.02)
    made = tool_follower(config, bus, lambda: (np.zeros(3), np.eye(3)))
    made.begin(np.zeros(1))
    fast = Setpoint(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.array([9.0, 0.0, 0.0]), np.zeros(3))
    made.command(fast)
    time.sleep(0.05)
    made.command(fast)
    assert bus.sent["goal"][-1]["twist"]["linear"]["x"] == pytest.approx(9.0)


def at(place, turn_z=0.0):
    """A set-point at rest."""
    turn = quaternion_from_matrix(matrix_from_vector(np.array([0.0, 0.0, turn_z])))
    return Setpoint(np.array([place, 0.0, 0.0]), turn, np.zeros(3), np.zeros(3))


def test_a_tool_that_does_not_come_is_not_asked_to_go_faster_and_faster(bus):
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal", pose_gain=4.0)
    made = tool_follower(config, bus, lambda: (np.zeros(3), np.eye(3)))
    made.begin(np.zeros(1))
    for place, turn in ((0.04, 0.0), (0.1, 0.0), (0.19, 0.4)):
        made.command(at(place, turn))
    twists = [sent["twist"] for sent in bus.sent["goal"][1:]]
    assert [twist["linear"]["x"] for twist in twists] == pytest.approx([0.16, 0.2, 0.2])
    assert twists[-1]["angular"]["z"] == pytest.approx(0.8)


@pytest.mark.parametrize(("place", "turn", "said"), [(0.21, 0.0, "210 mm and 0.00 rad"), (0.0, 0.6, "0 mm and 0.60")])
def test_a_tool_that_jumps_away_from_its_set_points_is_refused(bus, place, turn, said):
    config = RosConfig("arm", ("a",), command="twist", command_topic="goal")
    made = tool_follower(config, bus, lambda: (np.zeros(3), np.eye(3)))
    made.begin(np.zeros(1))
    with pytest.raises(ArmError, match=f"the tool is measured {said}.* from where it was sent; valid is up to 200 mm"):
        made.command(at(place, turn))
    assert len(bus.sent["goal"]) == 1


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"motion": "action", "command": "pose"},
            "motion is 'action' and command 'pose'; valid is motion: action with",
        ),
        ({"twist_lag_s": 0.1}, "twist_lag_s is 0.1 and command 'joint_trajectory'; valid is 0 but for command: twist"),
        (
            {"tf_tool": "tool0_controller"},
            "tf_tool are '' and 'tool0_controller'; valid with tool_pose: urdf are empty",
        ),
        (
            {"tool_pose": "tf", "tf_tool": "base_link"},
            "base and tool are both the frame 'base_link'; valid are tf_base",
        ),
        ({"tool_pose": "tf", "tf_tool": "/base_link"}, "base and tool are both the frame 'base_link'"),
    ],
)
def test_fields_that_would_have_no_effect_are_refused(parts, said):
    with pytest.raises(ArmError, match=f"ros: .*{said}") as caught:
        RosConfig("arm", ("a",), **parts)
    assert "\n" not in str(caught.value)


def gripper(bus, interface):
    reader = JointReader(bus, "joint_states")
    reader.begin()
    bus.publish("joint_states", joint_state(time.time(), {"knuckle": 0.2}))
    config = RosGripperConfig(**{**vars(GRIPPER), "interface": interface})
    made = RosGripper(config, bus, reader, "arm")
    made.begin()
    return made


@pytest.mark.parametrize(
    ("interface", "goal"),
    [
        ("action", {"command": {"position": 0.8, "max_effort": 20.0}}),
        ("parallel_action", {"command": {"name": ["knuckle"], "position": [0.8], "effort": [20.0]}}),
    ],
)
def test_a_gripper_behind_an_action_ends_with_its_goal(bus, interface, goal):
    made = gripper(bus, interface)
    assert made.width() == pytest.approx(0.075)
    bus.serve(Channel("grip", ""))
    running = made.begin_close()
    (taken,) = bus.goals("grip")
    assert not running()
    taken.finish({})
    assert running()
    made.begin_open()
    made.begin_close()
    assert [item.message.command.position for item in bus.goals("grip")] in ([0.0, 0.8], [[0.0], [0.8]])
    assert taken.message.command.position == goal["command"]["position"]


def test_a_gripper_behind_a_topic_ends_when_it_stands(bus):
    made = gripper(bus, "topic")
    running = made.begin_open()
    assert bus.sent["grip"] == [{"data": [0.0]}]
    assert not running()
    bus.publish("joint_states", joint_state(time.time(), {"knuckle": 0.0}))
    assert not running()
    assert made.width() == pytest.approx(0.1)
    end = time.monotonic() + 2.0
    while not running():
        assert time.monotonic() < end


def test_a_gripper_that_nobody_serves_is_one_sentence(bus):
    made = gripper(bus, "action")
    bus.offered.clear()
    with pytest.raises(ArmError, match="robot at arm: nobody takes commands on /grip: start its gripper"):
        made.begin_open()


def test_a_gripper_between_two_equal_positions_is_refused():
    with pytest.raises(ArmError, match=r"open_position and closed_position are both 0\.3"):
        RosGripperConfig("g", "j", open_position=0.3, closed_position=0.3, open_width=0.1)
