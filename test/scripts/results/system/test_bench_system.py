"""What the nodes of a system cost: real processes, a real bag, and the table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import serialize_message
from results.system.budget import BUDGETS
from results.system.cost import Cost, costs, mean
from results.system.record import COUNTERS
from results.system.table import draw, markdown
from results.system.usage import usage_by_session
from results.system.watch import Course, Watch
from results_entry import results

from bid_msgs.msg import EpisodeEvent
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import DIAGNOSTICS, EPISODE_EVENT, TOPICS
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.writer import BagWriter

LIMIT_S = 20.0
S = 1_000_000_000
# Burns CPU in a child too, says so, and waits.
BURN = """
import subprocess, sys, time
burn = "import time; end = time.process_time() + 0.2\\nwhile time.process_time() < end: pass\\n"
child = subprocess.Popen([sys.executable, "-c", burn + "print('child', flush=True); time.sleep(60)"])
exec(burn)
print("parent", flush=True)
time.sleep(60)
"""
COST = Cost(10.0, 1.0, 50.0, 100.0, 20.0, 300.0, 30.0, 90.0)


@pytest.fixture
def burner():
    process = subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE, start_new_session=True)
    yield process
    os.killpg(process.pid, 9)
    process.communicate()


def write_bag(folder, events, counts):
    """Write episode events as (kind, s) and counters of /left/arm as (s, values) into a bag."""
    with BagWriter(folder) as writer:
        for topic in (EPISODE_EVENT, DIAGNOSTICS):
            writer.add_topic(f"/{topic.removeprefix('/')}", find_definition(TOPICS[topic].type_name))
        for kind, at in events:
            writer.write(f"/{EPISODE_EVENT}", round(at * S), serialize_message(EpisodeEvent(kind=kind)))
        for at, values in counts:
            pairs = [KeyValue(key=key, value=str(value)) for key, value in zip(COUNTERS, values, strict=True)]
            status = DiagnosticStatus(name="bid_ros: left/arm", values=pairs)
            writer.write(DIAGNOSTICS, round(at * S), serialize_message(DiagnosticArray(status=[status])))
    return folder


def test_a_session_counts_its_children_and_no_other_process(burner):
    assert {burner.stdout.readline().strip(), burner.stdout.readline().strip()} == {b"parent", b"child"}
    found = usage_by_session([burner.pid])
    assert list(found) == [burner.pid]
    used = found[burner.pid]
    assert 0.35 < used.cpu_s < 2.0 and used.middleware_s == 0.0
    assert used.waits + used.preemptions > 0 and 5 < used.memory_mb < 500


def test_a_watch_follows_what_it_is_told_of(burner):
    with Watch() as watch:
        watch.started("node", burner.pid)
        end = time.monotonic() + LIMIT_S
        while len(watch.courses["node"].stamps_ns) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    course = watch.courses["node"]
    assert course.at(course.stamps_ns[-1]) == course.values[-1]


def test_no_counter_falls_when_threads_end():
    course = Course()
    for stamp, values in enumerate([(1.0, 5.0), (2.0, 0.0), (3.0, 6.0)]):
        course.add(stamp, values)
    assert course.values == [(1.0, 5.0), (2.0, 5.0), (3.0, 6.0)]


def test_costs_are_those_between_the_first_preparation_and_the_last_end(tmp_path):
    events = [(EpisodeEvent.PREPARE, 10), (EpisodeEvent.START, 12), (EpisodeEvent.END, 14), (EpisodeEvent.PREPARE, 15)]
    events.append((EpisodeEvent.END, 20))
    bag = write_bag(tmp_path / "bag", events, [(0, (0, 0, 0.0)), (40, (4000, 400, 8.0))])
    fast = Course([0, 10 * S, 20 * S, 30 * S], [(0.0,) * 5, (9.0, 1, 5, 6, 50), (14.0, 2, 105, 26, 70), (99.0,) * 5])
    found = costs({"arm": fast, "twin": fast, "early": Course()}, bag)
    assert list(found) == ["arm", "twin"]
    assert found["arm"] == Cost(50.0, 10.0, pytest.approx(40.0), 100.0, 10.0, 10.0, 2.0, 70.0)
    assert found["twin"] == Cost(50.0, 10.0, None, None, None, 10.0, 2.0, 70.0)


def test_a_run_without_a_whole_episode_says_nothing(tmp_path):
    bag = write_bag(tmp_path / "bag", [(EpisodeEvent.PREPARE, 10), (EpisodeEvent.START, 12)], [])
    with pytest.raises(RecordingError, match="holds no complete episode"):
        costs({}, bag)


def test_the_mean_of_runs_leaves_out_what_one_did_not_count():
    rows = mean([{"arm": COST}, {"arm": replace(COST, cpu=20.0, executor=None)}])
    assert rows == {"arm": replace(COST, cpu=15.0, executor=None)}


def test_the_table_names_who_is_above_its_budget(tmp_path):
    budget = BUDGETS["camera"]
    much = replace(COST, cpu=budget.cpu + 1, messages_in=budget.messages_in + 10, messages_out=0.0)
    text = markdown({"camera": much, "arm": replace(COST, executor=None, messages_in=None)}, {"camera": COST})
    assert f"| camera | {much.cpu:.1f} (10.0) |" in text and "| arm | 10.0 | " in text and " | - | - | 20 |" in text
    assert f"camera uses {much.cpu:.0f} % of a core, above its {budget.cpu:g}." in text
    assert "messages in a second" in text and "arm uses" not in text
    assert f"together: {much.cpu + 10:.0f} % of a core, {(much.cpu + 10) / 10:.2f} of 10 % before" in text
    draw({"camera": much}, tmp_path / "one.png")
    draw({"camera": much, "new": COST}, tmp_path / "two.png", {"camera": COST})
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("one.png", "two.png"))
    assert "within its budget" in markdown({"camera": replace(COST, cpu=0.0, messages_in=0.0, messages_out=0.0)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--runs", "0"], "--runs is 0; valid is 1 or more"), (["--against", "/nowhere"], "valid is a checkout")],
)
def test_bad_input_is_one_sentence(arguments, message, capsys):
    assert results("system", "franka_place", *arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and message in error[0]


@pytest.mark.long
def test_a_system_is_started_and_measured(ros_domain, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(ros_domain))
    arguments = [
        "--episodes",
        "1",
        "--driver",
        "scripted",
        "--styles",
        "clean",
        "--moving",
        "0",
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    assert results("system", "franka_place", *arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["nodes"]) == {"twin", "camera", "safety", "arm", "teleop", "recorder", "episode"}
    for name, cost in found["nodes"].items():
        assert cost["cpu"] > 0 and cost["messages_out"] > 1, name
        assert 0 <= cost["executor"] <= 100 and cost["waits"] > 1, name
        assert cost["messages_in"] > 1 or name == "twin"
    assert (tmp_path / "out" / "system.png").exists()


def test_the_architecture_page_has_the_budget(root):
    page = (root / "docs" / "explanation" / "architecture.md").read_text()
    for node, budget in BUDGETS.items():
        limits = (f"{value:g}" for value in (budget.cpu, budget.messages_in, budget.messages_out))
        cells = r" \| [^|]+ \| ".join(map(re.escape, limits))
        assert re.search(rf"^\| {node} \| {cells} \|", page, re.M), node
