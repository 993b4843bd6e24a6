"""A bag of anybody's robot: from its own names to a trained policy by one mapping file, and every bad mapping."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import yaml
from foreign_arm import LAG_S, MOVES, SECOND, START, TASK, TOPICS, told_at, write_bag

from bid_ros.cli import main
from bid_ros.core.task import parse_task
from bid_ros.formats import load_dataset

TRAINING = ("--steps", "2", "--weak-steps", "1", "--batch", "4", "--device", "cpu")
NETWORK = ("--set", "network.widths=[8,16]", "network.condition=16")
JOINTS = {"name": "arm", "kind": "joints", "shape": [3], "names": ["base", "elbow", "wrist"]}


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    return write_bag(tmp_path_factory.mktemp("lab") / "monday")


def content(topics=None, unit=None, **changed) -> dict:
    """What the file of the task holds, with some of the mapping replaced; None removes."""
    mapping = deepcopy(TOPICS)
    for name, value in (topics or {}).items():
        if name in ("observation", "action"):
            mapping[name] = {**mapping[name], **value}
        else:
            mapping[name] = value
    mapping = {name: value for name, value in mapping.items() if value is not None}
    return {**TASK, **changed, "data": {"topics": mapping, "unit": unit or {}}}


def seconds(dataset) -> np.ndarray:
    return (dataset.stamps_ns - START) / SECOND


def test_from_a_foreign_bag_to_a_trained_policy(bag, tmp_path, capsys):
    """The commands of docs/how-to/foreign-bags.md."""
    file, made, out = str(tmp_path / "task.yaml"), str(tmp_path / "set"), tmp_path / "run"
    Path(file).write_text(yaml.safe_dump(content()))
    assert main(["data", "info", str(bag), "--task", file]) == 0
    shown = capsys.readouterr().out
    assert f"{bag}: bag, 2 episodes, rows unknown until they are read, 10 Hz, task foreign" in shown
    assert "latency: 'tool_position' follows its command by 120 ms (2 of 2 episodes, 120 to 120); it is not" in shown
    assert "read otherwise: 'wrist' is resized as a whole from 32x24 to 16x16 px" in shown
    assert "read otherwise: poses in frame 'my_base' are taken as in 'base'" in shown
    assert "not read: the task file names no /clicks, /judged, /my_arm/goal" in shown
    assert main(["data", "convert", str(bag), made, "--to", "lerobot_v30", "--images", "png", "--task", file]) == 0
    assert "lerobot_v30, 2 episodes, 73 rows" in capsys.readouterr().err
    assert main(["train", made, "--task", file, "--out", str(out), *TRAINING, *NETWORK]) == 0
    said = json.loads((out / "run.json").read_text())
    assert (out / "strong.pt").exists() and said["data_sha256"] == load_dataset(bag, parse_task(content())).sha256


def test_rows_are_what_the_arm_was_told_and_did(bag):
    found = load_dataset(bag, parse_task(content()))
    at = seconds(found)
    told = np.array([[*told_at(each)[0], told_at(each)[1]] for each in at])
    assert np.diff(found.stamps_ns)[:30] == pytest.approx(SECOND // 10)
    moving = (at > 1) & (at < 4)
    assert np.abs(found.actions[moving] - told[moving]).max() < 1e-4
    seen = np.array([told_at(each - LAG_S)[0] for each in at])
    assert np.abs(found.observations["tool_position"] - seen).max() < 0.002
    assert found.observations["gripper_width"][0, 0] == pytest.approx(0.08)
    shown = found.observations["wrist"][:, 0, 0, 0]
    assert np.abs(shown - 20 * at).max() < 2.0


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        (None, 1),
        ({"gap": 1.5}, 2),
        ({"gap": 5.0}, 1),
        ({"topic": "/phase", "begin": "start", "end": "stop"}, 2),
        ({"begin": "/my_arm/goal", "end": "/judged"}, 2),
        ({"table": "times.csv"}, 2),
        ({"table": "epoch.csv"}, 1),
    ],
    ids=str,
)
def test_episodes_come_from_a_topic_gaps_or_a_table(bag, rule, count):
    (bag / "times.csv").write_text("start,end\n0.5,4.5\n6.5,10.5\n")
    (bag.parent / "epoch.csv").write_text(
        f"bag,start,end\nmonday,{START / SECOND + 0.5:.1f},{START / SECOND + 4:.1f}\n"
    )
    found = load_dataset(bag, parse_task(content({"episodes": rule})))
    assert found.episodes == count
    assert seconds(found)[0] == pytest.approx(MOVES[0][0], abs=0.35), "still rows are left out"


@pytest.mark.parametrize(
    ("success", "files"),
    [
        ({"topic": "/judged"}, {}),
        ({"file": "ended.csv"}, {"ended.csv": "episode,success\n1,false\n0,true\n"}),
        ({"file": "ended.json"}, {"ended.json": '{"monday": [true, false]}'}),
        ({"file": "ended.yaml"}, {"ended.yaml": "0: true\n1: false\n"}),
    ],
    ids=str,
)
def test_success_comes_from_a_topic_or_a_file(bag, success, files):
    for name, text in files.items():
        (bag / name).write_text(text)
    found = load_dataset(bag, parse_task(content({"success": success})))
    assert found.episodes == 1 and seconds(found).max() < 5, "the second one failed"


@pytest.mark.parametrize(
    ("rule", "success", "counted"),
    [
        (None, None, (1, None)),
        ({"gap": 1.5}, None, (2, None)),
        ({"topic": "/rec"}, {"topic": "/judged"}, (2, 1)),
    ],
    ids=str,
)
def test_info_counts_the_episodes_that_the_mapping_yields(bag, rule, success, counted, tmp_path, capsys):
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(content({"episodes": rule, "success": success})))
    assert main(["data", "info", str(bag), "--task", str(file), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["episodes"], report["successes"]) == counted


def test_info_says_why_nothing_tells_the_episodes_of_a_bag_of_others_without_a_mapping(bag, tmp_path, capsys):
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(TASK))
    assert main(["data", "info", str(bag), "--task", str(file)]) == 0
    assert f"episodes unknown (bag {bag} has no topic episode/event, and data: topics: of" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["next", "/my_arm/target_twist"])
def test_what_is_commanded_as_a_twist_or_not_at_all_is_the_next_measured_pose(bag, way):
    found = load_dataset(bag, parse_task(content({"action": {"tool_position": way}})))
    seen = found.observations["tool_position"]
    gaps = np.diff(found.stamps_ns) < 1.5 * SECOND / 10
    assert np.abs(found.actions[:-1, :3] - seen[1:])[gaps].max() < 0.002


@pytest.mark.parametrize(("place", "unit"), [("/my_arm/goal", "rad"), ("/my_arm/joint_targets", "deg")])
def test_joints_are_taken_by_name_and_from_trajectories(bag, place, unit):
    topics = {
        "observation": {"wrist": "/cam_left/image_raw", "arm": "/my_arm/joint_states"},
        "action": {"goal": place},
        "episodes": {"topic": "/rec"},
    }
    seen_and_done = {"observation": [TASK["observation"][0], JOINTS], "action": [{**JOINTS, "name": "goal"}]}
    found = load_dataset(bag, parse_task({**TASK, **seen_and_done, "data": {"topics": topics, "unit": {"goal": unit}}}))
    at = seconds(found)
    moving = (at > 1.3) & (at < 3.8)
    seen = np.array([told_at(each - LAG_S)[2] for each in at])
    assert np.abs(found.observations["arm"] - seen)[moving].max() < 0.02
    wanted = np.array([told_at(each)[2] for each in at])
    assert np.abs(found.actions - wanted)[moving].max() < 0.02


def test_stamps_of_another_clock_give_way_to_times_of_receipt(tmp_path, capsys):
    bag = write_bag(tmp_path / "bag", off_s=-3600.0)
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(content()))
    assert main(["data", "info", str(bag), "--task", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "times are those of receipt: stamps on /cam_left/image_raw are -3600 s" in "".join(told["notes"])
    assert told["latency_ms"]["tool_position"] == pytest.approx(1000 * LAG_S + 2, abs=5)
    assert seconds(load_dataset(bag, parse_task(content()))).min() > 0


BAD = {
    "no topic": (
        {"observation": {"tool_position": "/arm/pose"}},
        "has no topic /arm/pose, which is to hold observation",
    ),
    "empty": ({"action": {"tool_position": "/my_arm/nothing"}}, "has no topic /my_arm/nothing"),
    "type": ({"observation": {"tool_position": "/rec"}}, "/rec is not understood for 'tool_position'; valid is a pose"),
    "no image": ({"observation": {"wrist": "/my_arm/ee_pose"}}, "'/my_arm/ee_pose' is no image"),
    "field": ({"observation": {"tool_position": "/my_arm/ee_pose:tool"}}, "there is no field 'tool'; valid are header"),
    "joint": (
        {"observation": {"gripper_width": "/my_arm/joint_states[thumb]"}},
        "lacks the joints thumb; the message has elbow, base",
    ),
    "value": ({"action": {"gripper_width": "/my_gripper/command[7]"}}, "names value 7; valid are 0 to 1"),
    "one column": (
        {"action": {"tool_position": "/my_gripper/command[0, 1, 0]"}},
        "action 'tool_position' and 'gripper_width' are both /my_gripper/command [0]; valid is a value of its own",
    ),
    "many": ({"observation": {"tool_position": "/my_gripper/command"}}, "has 2 values for 'tool_position'; valid for"),
    "unit": ({"unit": {"gripper_width": "inch"}}, "unit of 'gripper_width' is 'inch'; valid for gripper are m, cm"),
    "no form": ({"observation": {"tool_position": "ee_pose"}}, "place 'ee_pose' has another form; valid are /TOPIC"),
    "no feature": ({"observation": {"elbow": "/x"}}, "observation names 'elbow', which the task lacks; valid are"),
    "gap 0": ({"episodes": {"gap": 0}}, "episodes.gap is 0; valid is a number above 0"),
    "gap -1": ({"episodes": {"gap": -1.0}}, "episodes.gap is -1.0; valid is a number above 0"),
    "two ways": ({"episodes": {"gap": 1.0, "table": "t.csv"}}, "episodes come from several places; valid is one"),
    "no table": ({"episodes": {"table": "none.csv"}}, "table of times none.csv does not exist; valid is a file in"),
    "outside": ({"episodes": {"table": "outside.csv"}}, "episode 1 from 6.5 to 99 s is outside of bag"),
    "overlap": ({"episodes": {"table": "overlap.csv"}}, "episode 1 from 4 to 9 s overlaps the one before it"),
    "backwards": ({"episodes": {"table": "back.csv"}}, "episode 0 from 4 to 1 s has no length"),
    "no end": ({"episodes": {"table": "half.csv"}}, "half.csv lacks the column end; it has start"),
    "no episodes": ({"episodes": {"topic": "/start"}}, "has no topic /start, which is to hold the begin and end"),
    "count": ({"success": {"file": "three.csv"}}, "three.csv is of other episodes: it has 3 (0, 1, 2), bag"),
    "names": ({"success": {"file": "names.json"}}, "names.json is of other episodes: it has 2 (a, b), bag"),
    "other bag": ({"success": {"file": "bags.csv"}}, "bags.csv has no row of bag 'monday'; it is of bags tuesday"),
    "maybe": ({"success": {"file": "maybe.yaml"}}, "episode 1 has success 'maybe'; valid are true and false"),
}
FILES = {
    "outside.csv": "start,end\n0.5,4\n6.5,99\n",
    "overlap.csv": "start,end\n0.5,5\n4,9\n",
    "back.csv": "start,end\n4,1\n",
    "half.csv": "start\n4\n",
    "three.csv": "episode,success\n0,1\n1,1\n2,0\n",
    "names.json": '{"a": true, "b": false}',
    "bags.csv": "bag,episode,success\ntuesday,0,1\n",
    "maybe.yaml": "0: true\n1: maybe\n",
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_mapping_is_one_sentence_and_nothing_is_written(bag, case, tmp_path, capsys):
    topics, said = deepcopy(BAD[case])
    unit = topics.pop("unit", None)
    for name, text in FILES.items():
        (bag / name).write_text(text)
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(content(topics, unit)))
    out = tmp_path / "out"
    out.mkdir()
    assert main(["data", "convert", str(bag), str(out / "set.npz"), "--to", "npz", "--task", str(file)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.startswith("error: ") and error.count("\n") == 1
    assert not list(out.iterdir())
