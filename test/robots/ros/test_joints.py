import math
import time

import pytest
from memory_bus import MemoryBus, joint_state, message, stamped

from bid_ros.core.errors import ArmError
from bid_ros.robots.bus import Heard
from bid_ros.robots.ros.joints import JointReader, JointReading, Timestamp


@pytest.fixture
def bus():
    return MemoryBus()


@pytest.fixture
def reader(bus):
    made = JointReader(bus, "joint_states")
    made.begin()
    return made


def test_joints_are_found_by_name_in_any_order_and_in_several_messages(bus, reader):
    now = time.time()
    bus.publish("joint_states", joint_state(now, {"c": 3.0, "a": 1.0}, {"c": 0.3, "a": 0.1}))
    bus.publish("joint_states", joint_state(now, {"finger": 0.04}))
    bus.publish("joint_states", joint_state(now, {"b": 2.0}, {"b": 0.2}))
    reader.look()
    reading = JointReading.of(reader.of(("a", "b", "c")))
    assert reading.joints.tolist() == [1.0, 2.0, 3.0] and reading.speeds.tolist() == [0.1, 0.2, 0.3]
    assert reader.of(["finger"])[0].position == 0.04


def test_a_joint_that_nobody_names_is_one_sentence(bus, reader):
    reader.look()
    with pytest.raises(ArmError, match="nothing came on /joint_states"):
        reader.of(("a",))
    bus.publish("joint_states", joint_state(time.time(), {"shoulder": 0.0, "elbow": 0.0}))
    reader.look()
    with pytest.raises(ArmError, match="/joint_states has no joint 'a'; it names shoulder, elbow"):
        reader.of(("shoulder", "a"))


def test_a_stamp_that_comes_again_is_no_new_measurement(bus, reader):
    now = time.time()
    bus.publish("joint_states", joint_state(now, {"a": 1.0}))
    reader.look()
    first = reader.of(["a"])[0]
    bus.publish("joint_states", joint_state(now, {"a": 1.0}))
    reader.look()
    assert reader.of(["a"])[0] == first
    bus.publish("joint_states", joint_state(now + 0.01, {"a": 1.1}))
    reader.look()
    assert reader.of(["a"])[0].timestamp.steady_ns > first.timestamp.steady_ns


def test_a_joint_of_two_arms_on_one_topic_is_one_sentence(bus, reader):
    now = time.time()
    for k in range(3):
        bus.publish("joint_states", joint_state(now + 0.01 * k, {"a": 0.1 * k, "finger": 0.1 * k}))
    reader.look()
    assert reader.jumped(["a"]) == ""
    bus.publish("joint_states", joint_state(now + 0.03, {"a": 0.3 + 2 * math.pi}))  # another turn is no jump
    reader.look()
    assert reader.jumped(["a"]) == ""
    bus.publish("joint_states", joint_state(now + 0.031, {"a": 1.3, "finger": 0.9}))
    reader.look()
    said = "joint 'a' jumped by 1.00 rad from one message on /joint_states to the next; "
    assert reader.jumped(["b", "a"]).startswith(said) and reader.jumped(["b"]) == ""
    reader.begin()
    assert reader.jumped(["a"]) == "", "a new connection begins anew"


def test_without_velocities_they_come_from_two_positions(bus, reader):
    now = time.time() - 0.05
    for k in range(2):
        bus.publish("joint_states", joint_state(now + 0.01 * k, {"a": 0.02 * k}))
        reader.look()
    assert reader.of(["a"])[0].velocity == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("ahead_s", [-3600.0, 3600.0])
def test_a_clock_that_differs_does_not_reach_the_state(bus, reader, ahead_s):
    bus.publish("joint_states", joint_state(time.time() + ahead_s, {"a": 1.0}))
    reader.look()
    assert abs(reader.of(["a"])[0].timestamp.stamp_ns - time.time_ns()) < 1e9


def moment(stamp_s, arrived_s):
    return Timestamp.of(Heard(None, round(arrived_s * 1e9)), message(stamped(stamp_s)).stamp)


@pytest.mark.parametrize(("late_s", "counts"), [(0.0, True), (0.09, True), (0.2, False), (-1.0, False)])
def test_a_stamp_counts_unless_the_clocks_differ(late_s, counts):
    now = time.time()
    found = moment(now - late_s, now)
    assert abs(found.stamp_ns - round((now - late_s if counts else now) * 1e9)) < 1000
    assert abs(found.source_ns - round((now - late_s) * 1e9)) < 1000


def test_its_age_counts_from_its_arrival():
    now = time.time()
    assert moment(now, now - 0.5).age_s() == pytest.approx(0.5, abs=0.2)
    assert moment(now, now + 5.0).age_s() < 0.2, "an arrival that is to come is one of now"


def test_the_same_stamp_again_is_a_repetition_but_two_messages_without_a_stamp_are_not():
    now = time.time()
    assert moment(now, now).repeats(moment(now, now - 0.1))
    assert not moment(now, now).repeats(moment(now - 0.01, now - 0.1))
    assert not moment(0.0, now).repeats(moment(0.0, now))


def test_an_older_stamp_is_no_news_unless_the_clock_was_set_back():
    now = time.time()
    assert moment(now - 5.0, now).repeats(moment(now - 0.01, now - 0.1))
    assert not moment(now - 5.0, now).repeats(moment(now - 0.01, now - 1.5)), "nothing newer came for longer than a s"
    assert not moment(0.0, now).repeats(moment(now, now)), "no stamp"
