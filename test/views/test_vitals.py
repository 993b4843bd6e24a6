"""Rates, latencies and silences as they come from messages, and as text."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from bid_ros.core.topics import DECISION, DIAGNOSTICS, HEARTBEAT, SAFETY_STATE
from bid_ros.views.vitals import DECISIONS, WINDOW_S, Arrivals, Vitals, vitals_text

SECOND = 1_000_000_000


def decision(milliseconds: float = 20.0, total=(0.3, float("nan"), 0.1)):
    parts = dict.fromkeys(("observation_age", "encode_time", "sample_time", "choose_time"), 0.001)
    losses = {"total": list(total), "backward": [], "forward": []}
    counts = {"samples": 3, "weak_samples": 2, "selected_index": 2, "missed": 4}
    return SimpleNamespace(
        decoder="bid", kept=[True, False, True], decision_time=milliseconds / 1000, **parts, **losses, **counts
    )


def heartbeat(node: str):
    return SimpleNamespace(node=node, work_age=0.02)


def diagnostics(name: str, **values: str):
    pairs = [SimpleNamespace(key=key, value=value) for key, value in values.items()]
    return SimpleNamespace(status=[SimpleNamespace(name=name, level=b"\x00", message="recording", values=pairs)])


@pytest.mark.parametrize(("rate", "seconds"), [(10, 2), (10, 20), (100, 20), (1, 20)])
def test_a_rate_is_right_before_and_after_the_window_is_full(rate, seconds):
    arrivals = Arrivals()
    for number in range(rate * seconds):
        arrivals.add(number * SECOND // rate)
    assert arrivals.rate((rate * seconds - 1) * SECOND // rate) == pytest.approx(rate, rel=0.03, abs=0.21)


@pytest.mark.parametrize("later_s", [0.0, 0.2, 3.0])
def test_what_waited_for_a_late_listener_is_no_rate(later_s):
    arrivals = Arrivals()
    for number in range(20):
        arrivals.add(number * 3000)  # 20 messages in 60 us
    assert arrivals.rate(60_000 + round(later_s * SECOND)) < 20


def test_a_topic_that_goes_silent_has_no_rate_and_says_for_how_long():
    arrivals = Arrivals()
    assert arrivals.rate(0) == 0.0 and arrivals.silent_s(0) is None
    for number in range(50):
        arrivals.add(number * SECOND // 10)
    late = 5 * SECOND + round((WINDOW_S + 1) * SECOND)
    assert arrivals.rate(late) == 0.0
    assert arrivals.silent_s(late) == pytest.approx(WINDOW_S + 1.1)
    arrivals.add(late)
    assert arrivals.silent_s(late) == 0.0, "it is heard again when it comes back"


def test_nothing_heard_is_said_in_every_form():
    said = Vitals([DECISION]).snapshot(0)
    assert said["safety"] is None and said["decision"] is None and said["latencies"] == {}
    assert said["topics"] == {DECISION: {"rate_hz": 0.0, "silent_s": None}}
    assert "nothing was heard yet" in vitals_text(said) and "never heard" in vitals_text(said)


def test_latencies_are_those_of_the_last_decisions():
    vitals = Vitals([])
    for number in range(DECISIONS + 100):
        vitals.add(DECISION, number * SECOND // 10, decision(1000.0 if number < 100 else 10.0 + (number % 100)))
    found = vitals.snapshot(40 * SECOND)["latencies"]["decision_ms"]
    assert found["p50"] == pytest.approx(59.5, abs=1) and found["p99"] == pytest.approx(108, abs=1)
    assert found["max"] == 109.0, "decisions of long ago do not count"


def test_a_snapshot_is_json_and_says_the_losses():
    vitals = Vitals([])
    vitals.add(DECISION, SECOND, decision())
    found = json.loads(json.dumps(vitals.snapshot(2 * SECOND), allow_nan=False))["decision"]
    assert found["losses"]["total"] == [0.3, None, 0.1]
    assert (found["decoder"], found["samples"], found["kept"], found["weak"]) == ("bid", 3, 2, 2)
    assert "best 0.1000   median 0.3000   worst 0.3000   selected 0.1000" in vitals_text(vitals.snapshot(2 * SECOND))


def test_a_node_that_dies_stays_with_its_silence():
    vitals = Vitals([])
    for number in range(100):
        vitals.add(HEARTBEAT, number * SECOND // 20, heartbeat("arm"))
        if number < 40:
            vitals.add(HEARTBEAT, number * SECOND // 20, heartbeat("policy"))
    found = vitals.snapshot(5 * SECOND)["heartbeats"]
    assert found["arm"]["rate_hz"] == pytest.approx(20, abs=0.5) and found["arm"]["work_age_s"] == 0.02
    assert found["policy"]["silent_s"] == pytest.approx(3.05)


def test_counters_of_the_recorder_come_from_the_diagnostics():
    vitals = Vitals([])
    vitals.add(DIAGNOSTICS, 0, diagnostics("bid_ros: recorder", written="10", dropped="{}"))
    vitals.add(DIAGNOSTICS, SECOND, diagnostics("bid_ros: recorder", written="20", dropped="{}"))
    said = vitals.snapshot(3 * SECOND)
    assert said["diagnostics"]["bid_ros: recorder"] == {
        "level": "OK",
        "message": "recording",
        "values": {"written": "20", "dropped": "{}"},
        "silent_s": 2.0,
    }
    assert "written 20, dropped {}" in vitals_text(said)


def test_the_state_of_safety_has_its_reason():
    vitals = Vitals([])
    text = {"rule": "speed", "reason": "speed is 0.7 m/s; valid is up to 0.5", "source": "policy"}
    vitals.add(SAFETY_STATE, 0, SimpleNamespace(state=1, forwarded=7, refused=1, **text))
    said = vitals.snapshot(SECOND)
    assert said["safety"] == {"state": "STOPPED", **text, "forwarded": 7, "refused": 1, "silent_s": 1.0}
    assert "STOPPED: speed is 0.7 m/s; valid is up to 0.5   forwarded 7, refused 1" in vitals_text(said)


def test_images_need_not_be_decoded():
    vitals = Vitals([])
    vitals.add("camera/wrist/image", 0, b"raw")
    assert vitals.snapshot(0)["topics"]["camera/wrist/image"]["silent_s"] == 0.0
