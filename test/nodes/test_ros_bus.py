"""The bus over the real middleware: two of them in one process."""

import itertools
import time

import pytest
import rclpy
from rclpy.context import Context

from bid_ros.core.errors import ArmError, BidError
from bid_ros.nodes.fields import fill
from bid_ros.nodes.ros_bus import NodeBus, arrival_ns
from bid_ros.nodes.topics import message_type
from bid_ros.robots.bus import Channel, stamp

LIMIT_S = 10.0
TEXT = Channel("said", "std_msgs/msg/String")
LATCHED = Channel("always", "std_msgs/msg/String", latched=True)
GRIP = Channel("grip", "control_msgs/action/GripperCommand")
TRAJECTORY = Channel("way", "trajectory_msgs/msg/JointTrajectory")
NUMBERS = itertools.count(1)


@pytest.fixture
def context(ros_domain):
    made = Context()
    rclpy.init(context=made, domain_id=ros_domain)
    yield made
    rclpy.shutdown(context=made)


@pytest.fixture
def buses(context):
    made = [NodeBus(f"bus_{next(NUMBERS)}", "/here", context) for _ in range(2)]
    yield made
    for bus in made:
        bus.close()


def until(condition):
    end = time.monotonic() + LIMIT_S
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


def connected(ours, theirs, channel):
    ours.offer(channel)
    theirs.listen(channel)
    until(lambda: ours.partners(channel.name) and theirs.partners(channel.name))


def test_the_newest_message_is_there_when_it_is_asked_for(buses):
    ours, theirs = buses
    connected(ours, theirs, TEXT)
    assert theirs.latest("said") is None and not theirs.news("said")
    before = time.time_ns()
    ours.publish("said", {"data": "one"})
    first = until(lambda: theirs.latest("said"))
    assert first.message.data == "one" and abs(first.arrived_ns - before) < 1e9
    assert not theirs.news("said") and theirs.latest("said") is first, "it stays the newest"


def test_a_middleware_that_tells_no_arrival_is_taken_at_its_look():
    assert arrival_ns({"received_timestamp": 7}) == 7
    assert abs(arrival_ns({"received_timestamp": 0}) - time.time_ns()) < 1e9


def test_a_deeper_topic_keeps_what_came_in_order(buses):
    ours, theirs = buses
    deep = Channel("said", "std_msgs/msg/String", depth=3)
    connected(ours, theirs, deep)
    ours.listen(Channel("said", TEXT.type_name, depth=5))
    for word in "abcde":
        ours.publish("said", {"data": word})
    # What was published must have come, to see that the oldest have gone: a second listener, with room for all, tells.
    until(lambda: (newest := ours.latest("said")) and newest.message.data == "e")
    assert [heard.message.data for heard in theirs.news("said")] == ["c", "d", "e"]


def test_a_latched_topic_reaches_who_comes_later(buses):
    ours, theirs = buses
    ours.offer(LATCHED)
    ours.publish("always", {"data": "urdf"})
    theirs.listen(LATCHED)
    assert until(lambda: theirs.latest("always")).message.data == "urdf"


def test_nested_values_become_messages(buses):
    ours, theirs = buses
    connected(ours, theirs, TRAJECTORY)
    points = [{"positions": [0.5], "time_from_start": stamp(1_500_000_000)}, {"positions": [1.0]}]
    ours.publish("way", {"header": {"stamp": stamp(3)}, "joint_names": ["a"], "points": points})
    message = until(lambda: theirs.latest("way")).message
    assert message.header.stamp.nanosec == 3 and message.joint_names == ["a"]
    assert [list(point.positions) for point in message.points] == [[0.5], [1.0]]
    assert (message.points[0].time_from_start.sec, message.points[0].time_from_start.nanosec) == (1, 500_000_000)


def test_a_goal_is_done_when_the_server_ends_it(buses):
    ours, theirs = buses
    theirs.serve(GRIP)
    ours.offer(GRIP)
    until(lambda: ours.partners("grip"))
    goal = ours.send_goal("grip", {"command": {"position": 0.4, "max_effort": 20.0}})
    (taken,) = until(lambda: theirs.goals("grip"))
    assert taken.message.command.position == 0.4 and not goal.done()
    until(lambda: theirs.goals("grip") == [] and not goal.done())
    taken.finish({"position": 0.4, "reached_goal": True})
    until(lambda: theirs.goals("grip") == [] and goal.done())
    assert goal.done()


def test_a_real_action_client_and_the_server_understand_each_other(buses, context):
    from control_msgs.action import GripperCommand
    from rclpy.action import ActionClient
    from rclpy.executors import SingleThreadedExecutor

    _, theirs = buses
    theirs.serve(Channel("/here/grip", GRIP.type_name))
    node, executor = rclpy.create_node("client", context=context), SingleThreadedExecutor(context=context)
    executor.add_node(node)
    client = ActionClient(node, GripperCommand, "/here/grip")

    def spun(condition):
        executor.spin_once(timeout_sec=0.01)
        return condition()

    until(lambda: spun(lambda: theirs.goals("/here/grip") == [] and client.server_is_ready()))
    sent, taken = client.send_goal_async(GripperCommand.Goal()), []
    until(lambda: spun(lambda: taken.extend(theirs.goals("/here/grip")) or sent.done()))
    result = sent.result().get_result_async()
    taken[0].finish({"stalled": True})
    until(lambda: spun(lambda: theirs.goals("/here/grip") is not None and result.done()))
    assert sent.result().accepted and result.result().result.stalled and result.result().status == 4
    executor.shutdown()
    node.destroy_node()


def test_a_goal_is_cancelled_and_its_end_and_result_are_told(buses):
    ours, theirs = buses
    theirs.serve(GRIP, lambda goal: "too far" if goal.command.position > 1 else "")
    ours.offer(GRIP)
    until(lambda: ours.partners("grip"))
    refused = ours.send_goal("grip", {"command": {"position": 2.0}})
    with pytest.raises(ArmError, match="action grip refused a goal"):
        until(lambda: theirs.goals("grip") == [] and refused.done())
    with pytest.raises(ArmError, match="action grip refused a goal"):
        refused.done()  # and so whenever it is asked
    goal, taken = ours.send_goal("grip", {"command": {"position": 0.4}}), []
    until(lambda: taken.extend(theirs.goals("grip")) or taken)
    assert not taken[0].canceled and goal.ended() is None
    goal.cancel()
    until(lambda: theirs.goals("grip") == [] and not goal.done() and taken[0].canceled)
    taken[0].finish({"position": 0.2}, "canceled")
    until(lambda: theirs.goals("grip") == [] and goal.done())
    assert goal.ended().status == "canceled" and goal.ended().result.position == 0.2


def test_a_real_action_client_cancels_a_goal(buses, context):
    from control_msgs.action import GripperCommand
    from rclpy.action import ActionClient
    from rclpy.executors import SingleThreadedExecutor

    _, theirs = buses
    theirs.serve(Channel("/here/grip", GRIP.type_name))
    node, executor = rclpy.create_node("client", context=context), SingleThreadedExecutor(context=context)
    executor.add_node(node)
    client, taken = ActionClient(node, GripperCommand, "/here/grip"), []

    def spun(condition):
        taken.extend(theirs.goals("/here/grip"))
        executor.spin_once(timeout_sec=0.01)
        return condition()

    until(lambda: spun(client.server_is_ready))
    sent = client.send_goal_async(GripperCommand.Goal())
    until(lambda: spun(sent.done))
    canceled, result = sent.result().cancel_goal_async(), sent.result().get_result_async()
    until(lambda: spun(canceled.done))
    assert taken[0].canceled and len(canceled.result().goals_canceling) == 1
    taken[0].finish({"position": 0.1}, "canceled")
    until(lambda: spun(result.done))
    assert result.result().status == 5 and result.result().result.position == 0.1
    executor.shutdown()
    node.destroy_node()


def test_a_goal_is_carried_out_or_refused_by_a_real_action_server(buses, context):
    from control_msgs.action import GripperCommand
    from rclpy.action import ActionServer, GoalResponse
    from rclpy.executors import SingleThreadedExecutor

    ours, _ = buses
    node, executor = rclpy.create_node("server", context=context), SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def judge(goal):
        return GoalResponse.ACCEPT if goal.command.position < 1.0 else GoalResponse.REJECT

    def carry_out(handle):
        handle.succeed()
        return GripperCommand.Result(reached_goal=True)

    server = ActionServer(node, GripperCommand, "/here/grip", carry_out, goal_callback=judge)

    def spun(condition):
        executor.spin_once(timeout_sec=0.01)
        return condition()

    ours.offer(GRIP)
    until(lambda: spun(lambda: ours.partners("grip")))
    goal = ours.send_goal("grip", {"command": {"position": 0.4}})
    until(lambda: spun(goal.done))
    refused = ours.send_goal("grip", {"command": {"position": 2.0}})
    with pytest.raises(ArmError, match="action grip refused a goal: look at its controller"):
        until(lambda: spun(refused.done))
    server.destroy()
    executor.shutdown()
    node.destroy_node()


LIST = Channel("list", "controller_manager_msgs/srv/ListControllers")


def test_a_service_is_asked_and_answered_without_waiting(buses):
    ours, theirs = buses
    theirs.serve(LIST)
    theirs.serve(LIST)
    ours.offer(LIST)
    ours.offer(LIST)
    until(lambda: ours.partners("list"))
    request = ours.ask("list")
    assert request.answer() is None

    def answer():
        theirs.reply("list", {"controller": [{"name": "arm", "state": "active"}]})
        return request.answer()

    assert [(item.name, item.state) for item in until(answer).controller] == [("arm", "active")]


def test_a_service_that_is_not_there_is_one_sentence(buses):
    ours, _ = buses
    with pytest.raises(ArmError, match=r"service list: service type 'nothing/srv/List' does not import: .*; valid"):
        ours.offer(Channel("list", "nothing/srv/List"))
    with pytest.raises(ArmError, match="service list is not connected; valid is one that is offered"):
        ours.ask("list")
    ours.offer(LIST)
    assert ours.partners("list") == 0


def test_a_closed_bus_publishes_nothing_and_listens_anew(buses):
    ours, theirs = buses
    connected(ours, theirs, TEXT)
    theirs.close()
    theirs.close()
    assert theirs.latest("said") is None and theirs.partners("said") == 0
    theirs.publish("said", {"data": "x"})
    with pytest.raises(ArmError, match="action grip is not connected"):
        theirs.send_goal("grip", {})
    theirs.listen(TEXT)
    until(lambda: ours.partners("said"))
    ours.publish("said", {"data": "again"})
    assert until(lambda: theirs.latest("said")).message.data == "again"


@pytest.mark.parametrize(("name", "full"), [("said", "/here/said"), ("/there/said", "/there/said")])
def test_names_are_in_the_namespace_unless_they_begin_with_a_slash(buses, name, full):
    assert buses[0].full_name(name) == full


def test_a_type_that_is_not_installed_is_one_sentence(buses):
    with pytest.raises(
        ArmError, match=r"topic a: message type 'no_msgs/msg/Such' does not import: .*; valid is one of"
    ):
        buses[0].listen(Channel("a", "no_msgs/msg/Such"))
    with pytest.raises(ArmError, match=r"action a: action type 'no_msgs/action/Such' does not import"):
        buses[0].offer(Channel("a", "no_msgs/action/Such"))


def test_a_field_that_a_message_does_not_have_is_one_sentence():
    with pytest.raises(BidError, match="field 'dada' of String does not take 'x'"):
        fill(message_type("std_msgs/msg/String")(), {"dada": "x"})
