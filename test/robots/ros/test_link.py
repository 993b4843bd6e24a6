"""Whose controller is active."""

import pytest
from memory_bus import MemoryBus

from bid_ros.core.errors import ArmError
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.link import Activity


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


@pytest.mark.parametrize(
    ("interfaces", "said"),
    [
        (["a/position", "b/position"], ""),
        ([], ""),  # a release that does not tell it
        (
            ["b/position", "a/position"],
            "takes b/position, a/position; valid is the order of joint_names, a/position, b",
        ),
        (["a/velocity", "b/velocity"], "takes a/velocity, b/velocity; valid is the order of joint_names, a/position"),
    ],
)
def test_a_forward_controller_with_another_order_of_joints_is_not_driven(bus, interfaces, said):
    activity = Activity(
        bus, RosConfig("arm", ("a", "b"), command="forward_position", controller="arm", activity="activity")
    )
    activity.begin()
    bus.publish("activity", states(arm="active"))
    assert "did not answer: it tells in which order controller 'arm' takes joints" in activity.problem()
    bus.reply(LIST, {"controller": [{"name": "arm", "state": "active", "required_command_interfaces": interfaces}]})
    assert (said in activity.problem()) if said else activity.problem() == ""
    assert activity.problem() == activity.problem() and LIST not in bus.asked, "it is asked once"


def test_without_the_service_nobody_tells_the_order_and_the_arm_is_driven(bus, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("bid_ros.robots.ros.link.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(MemoryBus, "partners", lambda self, name: 0)
    activity = Activity(
        bus, RosConfig("arm", ("a",), command="forward_position", controller="arm", activity="activity")
    )
    activity.begin()
    bus.publish("activity", states(arm="active"))
    assert "did not answer" in activity.problem(), "it may be found a moment later"
    clock[0] += 2.1
    assert activity.problem() == ""
    monkeypatch.setattr(MemoryBus, "partners", lambda self, name: 1)
    assert activity.problem() == "" and LIST not in bus.asked, "a service that comes later stops no arm"
