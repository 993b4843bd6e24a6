"""What a shadow counts: the way, what would be slowed or refused, and how far from a person's motion."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from bid_ros.core.chunk import ActionChunk
from bid_ros.safety.gate import Gate
from bid_ros.safety.shadow import WANTED, Shadow, Way, shadow_table
from bid_ros.safety.verdict import refused

MS = 1_000_000
START = 1_000_000_000
DOWN = [1.0, 0.0, 0.0, 0.0, -1.0, 0.0]
TOOL = np.array([0.5, 0.0, 0.3])


def moving(stamp_ns, speed, begin=TOOL, steps=15):
    """A chunk along y with a speed in m/s."""
    rows = np.tile([*begin, *DOWN, 0.04], (steps, 1))
    rows[:, 1] += speed * 0.1 * np.arange(steps)
    return ActionChunk(stamp_ns, 100 * MS, rows)


def test_a_way_is_as_long_as_each_chunk_was_followed(task):
    way = Way(task, None)
    for stamp in range(4):
        way.go(
            moving(START + stamp * 100 * MS, 0.1, TOOL + np.array([0.0, 0.01 * stamp, 0.0])),
            START + (stamp * 100 + 50) * MS,
        )
    assert way.length_m == pytest.approx(0.03) and way.chunks == 4
    way.rest()
    way.go(moving(START, 0.1), START)
    assert way.length_m == pytest.approx(0.03), "the way from one episode to the next counted"


def test_a_shadow_of_hours_needs_no_more_memory_than_one_of_a_minute(task):
    """The tool is driven all the while, and each frame is new."""
    shadow = Shadow(task)

    def judge(count, since):
        for number in range(since, since + count):
            now = START + number * 100 * MS
            tool = TOOL + np.array([0.0, 0.02 * (number % 4), 0.0])
            assert shadow.judge(moving(now, 0.1), now + 45 * MS, tool).verdict.ok
            shadow.measured(now + 45 * MS, tool)

    tracemalloc.start()
    judge(1000, 0)  # NumPy keeps some arrays of its own
    gc.collect()  # what other tests left is not the shadow's
    before = tracemalloc.get_traced_memory()[0]
    judge(600, 1000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    report = shadow.report()
    assert report["frames"] == report["chunks"] == 1600
    assert report["moved"] > 1500 and report["apart_mm"]["max"] > 10
    assert grown < 15_000, f"600 chunks took {grown} bytes"


def test_wishes_whose_time_nobody_measures_are_forgotten(task):
    shadow = Shadow(task)
    for number in range(WANTED + 50):
        now = START + number * 100 * MS
        shadow.judge(moving(now, 0.1), now + 45 * MS, TOOL)
    shadow.measured(now + 10_000 * MS, TOOL + np.array([0.0, 0.1, 0.0]))
    assert shadow.report()["moved"] == WANTED


def test_a_frame_that_several_chunks_were_made_of_counts_once(task):
    shadow = Shadow(task)
    for number in range(6):
        now = START + number // 3 * 100 * MS
        shadow.judge(moving(now, 0.1), now + (10 + number) * MS, TOOL)
    assert (shadow.report()["frames"], shadow.report()["chunks"]) == (2, 6)


def test_an_arm_that_holds_is_judged_anew_by_each_chunk(task):
    """Though each begins 5 cm behind where the one before would have been."""
    shadow = Shadow(task)
    for stamp in range(5):
        now = START + stamp * 100 * MS
        assert shadow.judge(moving(now, 0.4, steps=5), now + 45 * MS, TOOL).verdict.ok
        shadow.measured(now + 45 * MS, TOOL)
    report = shadow.report()
    assert (report["chunks"], report["passed"], report["refused"], report["rules"]) == (5, 5, 0, [])
    assert report["travel_m"] == pytest.approx(4 * 0.04) and report["moved"] == 0
    assert report["from_tool_mm"]["max"] == pytest.approx(18.0) and report["age_ms"]["max"] == 45.0
    assert report["ahead_mm"]["max"] == pytest.approx(160.0)
    assert (report["frames"], report["longest_gap_ms"]) == (5, 100.0)
    assert (report["low_m"][1], report["high_m"][1]) == (0.0, pytest.approx(0.16))


def test_what_safety_would_do_is_counted_by_rule_and_stops_nothing(task):
    shadow = Shadow(task)
    for number, chunk in enumerate((moving(START, 0.6, steps=5), moving(START, 0.2, TOOL + np.array([0.3, 0.0, 0.0])))):
        shadow.judge(chunk, START + number, TOOL)
    shadow.refuse(refused("shape", "it has 14 rows"))
    assert shadow.judge(moving(START, 0.1), START, TOOL).verdict.ok
    report = shadow.report()
    assert (report["chunks"], report["passed"], report["slowed"], report["refused"]) == (4, 2, 1, 2)
    assert [(item["rule"], item["action"], item["chunks"]) for item in report["rules"]] == [
        ("speed", "scale", 1),
        ("workspace", "stop", 1),
        ("shape", "stop", 1),
    ]
    text = "\n".join(row for _, row in shadow_table(report))
    assert "2 of 4 would have passed, 1 of them slowed; 2 refused" in text and "scale 1 by rule speed" in text


def test_a_person_who_moves_the_arm_is_held_against_the_policy(task):
    """The policy wants 0.1 m/s along y, the person drives 0.2 m/s along it."""
    shadow = Shadow(task)
    for step in range(20):
        now, tool = START + step * 100 * MS, TOOL + np.array([0.0, 0.02 * step - 0.25, 0.0])
        shadow.measured(now, tool)
        shadow.judge(moving(now, 0.1, tool), now, tool)
    report = shadow.report()
    assert report["moved"] == 15 and report["apart_mm"]["p50"] == pytest.approx(50.0)
    assert ("as moved", "p50 50.0  p99 50.0  max 50.0 mm beside the policy's wish of 0.5 s before, 15 times") in [
        (name, text) for name, text in shadow_table(report)
    ]


def test_the_report_of_chunks_that_are_executed_is_what_was_executed_bit_for_bit(task):
    """A gate and a way stand for the run; the shadow judges the same chunks by itself."""
    rng, gate, way, shadow = np.random.default_rng(3), Gate(task), Way(task, None), Shadow(task)
    passed = 0
    for number in range(30):
        stamp, now = START + number * 100 * MS, START + (number * 100 + 50) * MS
        if number % 5 == 0:
            tool = TOOL + np.array([0.0, -0.25, 0.0])
            for one in (gate.forget, way.rest, shadow.rest):
                one()
        chunk = moving(stamp, float(rng.uniform(0.45, 0.55)), tool, steps=6)
        found, other = gate.admit(chunk, now, tool), shadow.judge(chunk, now, tool)
        assert other.verdict == found.verdict and other.chunk.actions.tobytes() == found.chunk.actions.tobytes()
        if found.verdict.ok:
            passed += 1
            for one in (gate.passed, shadow.executed):
                one(found.chunk)
            way.go(found.chunk, now)
            tool = found.chunk.actions[1, :3]
    report = shadow.report()
    assert report["passed"] == passed > 20 and 0 < report["slowed"] < passed
    assert (report["travel_m"], report["digest"]) == (way.length_m, way.digest) and way.length_m > 0.5
