"""The executor of a node: what rclpy's own does, at a lower price."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, QoSReliabilityPolicy
from real_time import HoldUps
from std_msgs.msg import String
from std_srvs.srv import Trigger

from bid_ros.nodes import executor
from bid_ros.nodes.executor import FastExecutor

LIMIT_S = 10.0


class Pair:
    """Two nodes of one context: one that is spun by the executor under test, and one that speaks to it."""

    def __init__(self) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node, self.other = Node("spun", context=self.context), Node("other", context=self.context)
        self.executor = FastExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.heard: list[str] = []

    def listen(self, topic: str, **options: object) -> object:
        return self.node.create_subscription(String, topic, lambda message: self.heard.append(message.data), 10)

    def until(self, condition: Callable[[], object], each: Callable[[], None] = lambda: None) -> bool:
        end = time.monotonic() + LIMIT_S
        while not condition() and time.monotonic() < end:
            each()
            self.executor.spin_once(timeout_sec=0.02)
        return bool(condition())


@pytest.fixture
def pair(ros_domain: int) -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.executor.shutdown()
    rclpy.shutdown(context=pair.context)


def test_messages_and_timers_are_called_back(pair):
    ticks = []
    pair.listen("words")
    pair.node.create_timer(0.01, lambda: ticks.append(time.monotonic()))
    speaker = pair.other.create_publisher(String, "words", 10)
    begun = time.monotonic()
    assert pair.until(lambda: len(pair.heard) > 5 and len(ticks) > 20, lambda: speaker.publish(String(data="word")))
    assert set(pair.heard) == {"word"}
    assert len(ticks) <= (ticks[-1] - begun) / 0.01 + 1


def test_the_base_class_is_asked_once_a_second_however_many_messages_come(pair, monkeypatch):
    asked = []
    collect = SingleThreadedExecutor._wait_for_ready_callbacks

    def collect_all(*arguments: object) -> object:
        asked.append(time.monotonic())
        return collect(*arguments)

    monkeypatch.setattr(SingleThreadedExecutor, "_wait_for_ready_callbacks", collect_all)
    pair.listen("words")
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: len(pair.heard) > 2000, lambda: speaker.publish(String(data="word")))
    assert all(after - before >= 0.99 for before, after in pairwise(asked))


def test_raw_messages_stay_raw(pair):
    raw = []
    pair.node.create_subscription(String, "words", raw.append, 10, raw=True)
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: raw, lambda: speaker.publish(String(data="word")))
    assert b"word" in raw[0]


def test_a_wait_without_a_message_ends_in_time(pair):
    pair.listen("words")
    pair.executor.spin_once(timeout_sec=0)
    begun = time.monotonic()
    with HoldUps() as since:
        pair.executor.spin_once(timeout_sec=0.05)
        assert since.seconds() < 1.0 and time.monotonic() - begun > 0.04


def test_a_failure_of_a_callback_reaches_whoever_spins(pair):
    def fail() -> None:
        raise RuntimeError("of the callback")

    timer = pair.node.create_timer(0.01, fail)
    with pytest.raises(RuntimeError, match="of the callback"):
        pair.until(lambda: False)
    timer.cancel()
    pair.listen("words")
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: pair.heard, lambda: speaker.publish(String(data="goes on")))


@pytest.mark.parametrize("way", ["ready", "patient", "rare"])
def test_every_way_to_a_callback_counts_the_message_and_knows_its_number(pair, monkeypatch, way):
    """Number and arrival are known while the callback runs and no longer, even where it fails."""
    monkeypatch.setattr(executor, "EVERYTHING_S", 0.0 if way == "rare" else 60.0)
    numbers, failed_ns = [], []
    subscription = pair.listen("words")
    subscription.patient = way == "patient"
    pair.node.create_timer(0.02, lambda: None)
    pair.executor.spin_once(timeout_sec=0)

    def fail(_: String) -> None:
        numbers.append(pair.executor.number)
        failed_ns.append(time.monotonic_ns())
        raise RuntimeError("of the callback")

    subscription.callback = fail
    speaker = pair.other.create_publisher(String, "words", 10)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="of the callback"):
            pair.until(lambda: False, lambda: speaker.publish(String(data="word")))
        assert pair.executor.number is None
        assert pair.executor.arrived_ns >= failed_ns[-1], "it is now again"
    assert len(numbers) == pair.executor.messages == 2 and numbers[0] < numbers[1]


def test_what_another_thread_adds_or_removes_meanwhile_counts_from_then_on(pair):
    first = pair.listen("first")
    speakers = [pair.other.create_publisher(String, name, 10) for name in ("first", "second")]

    def speak() -> None:
        for speaker in speakers:
            speaker.publish(String(data=speaker.topic_name))

    assert pair.until(lambda: pair.heard, speak)
    thread = threading.Thread(target=lambda: (pair.listen("second"), pair.node.destroy_subscription(first)))
    thread.start()
    assert pair.until(lambda: pair.heard[-3:] == ["/second"] * 3, speak)
    thread.join()


def test_a_guard_condition_ends_the_wait_at_once(pair):
    guard = pair.node.create_guard_condition(lambda: None)
    for _ in range(3):
        pair.executor.spin_once(timeout_sec=0)
    triggered = []
    threading.Timer(0.2, lambda: (triggered.append(time.monotonic()), guard.trigger())).start()
    with HoldUps() as since:
        pair.executor.spin_once(timeout_sec=20.0)
        assert triggered, "the wait ended before the guard condition"
        assert since.seconds() < 5.0, "the wait did not end with the guard condition"


def test_a_node_that_joins_later_is_served(pair):
    pair.listen("words")
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: pair.heard, lambda: speaker.publish(String(data="first")))
    joined = []
    pair.other.create_subscription(String, "words", joined.append, 10)
    pair.executor.add_node(pair.other)
    assert pair.until(lambda: joined, lambda: speaker.publish(String(data="both")))


def test_services_answer_and_clients_get_their_answers(pair):
    def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = True, "done"
        return response

    pair.node.create_service(Trigger, "asked", answer)
    client = pair.node.create_client(Trigger, "asked")
    assert pair.until(client.service_is_ready)
    future = client.call_async(Trigger.Request())
    assert pair.until(future.done) and future.result().message == "done"


def test_a_service_does_not_wait_until_no_message_is_left(pair):
    speaker = pair.node.create_publisher(String, "words", 10)
    pair.node.create_subscription(String, "words", speaker.publish, 10)  # each message makes the next one
    pair.node.create_service(Trigger, "asked", lambda _, response: response)
    client = pair.node.create_client(Trigger, "asked")
    assert pair.until(client.service_is_ready)
    speaker.publish(String(data="for ever"))
    future = client.call_async(Trigger.Request())
    assert pair.until(future.done)


def test_what_is_destroyed_before_it_is_collected_is_left_out(pair):
    pair.listen("words")
    gone = pair.listen("gone")
    gone.handle.destroy_when_not_in_use()
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: len(pair.heard) > 9, lambda: speaker.publish(String(data="word")))


def test_a_publisher_whose_quality_does_not_fit_is_still_told_of(pair, capfd):
    pair.listen("words")
    pair.other.create_publisher(String, "words", QoSProfile(depth=1, reliability=QoSReliabilityPolicy.BEST_EFFORT))
    said = []
    assert pair.until(lambda: said.append(capfd.readouterr().err) or "incompatible QoS" in "".join(said))


def test_patient_messages_wait_for_the_next_timer_and_come_before_it(pair, monkeypatch):
    monkeypatch.setattr(executor, "EVERYTHING_S", 60.0)  # then they are taken too
    seen, ages = [], []
    subscription = pair.listen("words")
    subscription.patient = True
    subscription.callback = lambda message: (
        pair.heard.append(message.data),
        ages.append(time.monotonic_ns() - pair.executor.arrived_ns),
    )
    pair.node.create_timer(0.4, lambda: seen.append(len(pair.heard)))
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: pair.heard, lambda: speaker.publish(String(data="first")))
    pair.until(lambda: len(seen) > 1)
    before, heard = len(seen), len(pair.heard)
    for _ in range(5):
        speaker.publish(String(data="more"))
    end = time.monotonic() + LIMIT_S
    while len(pair.heard) == heard and time.monotonic() < end:
        pair.executor.spin_once(timeout_sec=LIMIT_S)  # until something wakes it
    assert pair.heard[heard:] == ["more"] * 5, "they are taken together"
    assert len(seen) == before + 1 and seen[-1] == heard + 5, "before the timer"
    assert all(0.1e9 < age < 0.8e9 for age in ages[heard:]), "they know when they came"
    assert pair.executor.arrived_ns == pytest.approx(time.monotonic_ns(), abs=1e8)


def test_a_patient_message_came_after_the_last_look_whatever_the_wall_clock_says(pair, monkeypatch):
    ages = []
    subscription = pair.listen("words")
    subscription.patient = True
    subscription.callback = lambda _: ages.append(time.monotonic_ns() - pair.executor.arrived_ns)
    pair.node.create_timer(0.02, lambda: None)
    speaker = pair.other.create_publisher(String, "words", 10)
    assert pair.until(lambda: ages, lambda: speaker.publish(String(data="word")))
    wall = time.time_ns
    for jump_ns in (3600 * 10**9, -3600 * 10**9):
        monkeypatch.setattr(time, "time_ns", lambda jump_ns=jump_ns: wall() + jump_ns)
        known = len(ages)
        assert pair.until(lambda known=known: len(ages) > known, lambda: speaker.publish(String(data="word")))
    assert all(-1e6 < age < 1e9 for age in ages), ages


class SentAgain:
    """A patient subscription whose second message was lost and sent again: it came after the one behind it."""

    msg_type, raw, patient = String, False, True
    qos_profile = SimpleNamespace(depth=10)

    def __init__(self, ages_ns):
        self._left = [(String(data=str(number)), age) for number, age in enumerate(ages_ns)]
        self.handle = self

    def take_message(self, *_):
        if not self._left:
            return None
        message, age = self._left.pop(0)
        return message, {"received_timestamp": time.time_ns() - age, "publication_sequence_number": None}


def test_a_message_that_had_to_wait_for_the_one_before_it_has_not_arrived_earlier(pair):
    arrivals = []
    subscription = SentAgain([90_000_000, 10_000_000, 60_000_000, 55_000_000])
    subscription.callback = lambda message: arrivals.append((message.data, pair.executor.arrived_ns))
    pair.executor._patient = [subscription]
    pair.executor._serve_patient()
    assert [name for name, _ in arrivals] == ["0", "1", "2", "3"]
    times = [at for _, at in arrivals]
    assert all(after > before for before, after in pairwise(times)), "in the order in which they were sent"
    assert times[1] - times[0] == pytest.approx(80e6, abs=5e6) and times[3] - times[1] < 5e6


def test_a_hold_up_between_its_two_clocks_makes_no_message_older(pair, monkeypatch):
    ages, wall, held = [], time.time_ns, [0.3]
    subscription = SentAgain([1_000_000])
    subscription.callback = lambda _: ages.append(time.monotonic_ns() - pair.executor.arrived_ns)
    pair.executor._patient = [subscription]

    def slow_wall():
        if held:
            time.sleep(held.pop())
        return wall()

    monkeypatch.setattr(time, "time_ns", slow_wall)
    pair.executor._serve_patient()
    assert not held and 0 <= ages[0] < 50_000_000, "a heartbeat would have seemed a whole deadline old"
