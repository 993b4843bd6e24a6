"""``bid accept``: the folder that it writes, what it refuses, and the whole way in both twins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from forked_bid import bid
from recording.conftest import kit, make_run, set_pose, task  # noqa: F401

from bid_msgs.msg import ArmStatus
from bid_ros.cli import main
from bid_ros.commands.accept import accept
from bid_ros.commands.accept_stops import STOPS, node_process, stop_problems
from bid_ros.core.errors import BidError
from bid_ros.core.topics import ARM_STATUS
from bid_ros.recording.reader import BagReader
from bid_ros.system.run import RunArguments
from bid_ros.system.stages import STAGES, read_record

STOPPED = {"reason": "the cable", "noticed_s": 0.1, "speed": 0.05, "rest_s": 0.3, "way_mm": 4.0}


@pytest.fixture
def play(make_run):  # noqa: F811
    """A run of a stage, for which a recording stands: the gripper moves, the tool comes 60 ms late and 30 mm beside."""

    def start(_, arguments):
        recorded = make_run()
        for _, topic, message in recorded.items:
            if topic == ARM_STATUS:
                place = message.reference.position
                message.mode, message.command_age = ArmStatus.TRACKING, 0.05
                message.reference_stamp = message.header.stamp
                off, late = 0.0 if arguments.out.endswith("1") else 0.03, 0.006 if place.x > 0.406 else 0.0
                set_pose(message.tool, (place.x - late, place.y + off, place.z), 0.0)
        (out := Path(arguments.out)).mkdir(parents=True)
        recorded.write(out / "bag")
        told = {"decisions": 20, "missed": 1, "decision_ms": {"p50": 21.0, "p99": 30.0}, "safety_stop": ""}
        (out / "run.json").write_text(json.dumps(told))
        return 0

    return start


def test_a_run_that_is_cut_off_is_a_problem_of_its_stage(system, play, tmp_path):
    def cut_off(given, arguments):
        status = play(given, arguments)
        Path(arguments.out, "run.json").write_text('{"decisions": 2')
        return status

    accept(system, RunArguments(out=str(tmp_path / "acceptance")), cut_off)
    (stage,) = json.loads((tmp_path / "acceptance" / "report.json").read_text())["stages"]
    assert "there is no run.json" in stage["problems"][-1] and "decisions" not in stage


def test_what_was_measured_until_a_stage_is_not_passed_is_in_the_folder(system, play, tmp_path, capsys):
    out = tmp_path / "acceptance"
    accept(system, RunArguments(out=str(out)), play)
    report = json.loads((out / "report.json").read_text())
    assert [(item["stage"], item["passed"]) for item in report["stages"]] == [(1, True), (2, False)]
    assert report["problems"][0] == "stage 2: at rest the tool was 31 mm off its set-point; valid is up to 10 mm"
    assert not report["passed"] and report["stops"] == {}, "nothing is stopped that does not follow"
    camera = report["stages"][0]["cameras"]["/camera/wrist/image"]
    assert camera["rate_hz"] == pytest.approx(10.0) and 30.0 < camera["age_ms"]["p50"] < 50.0
    assert (report["robot"], report["robot_ip"], report["versions"]["firmware"]) == ("franka", "", "twin")
    assert report["versions"]["franky-control"] and report["config"]["twin"] and report["lookahead_s"] == 0.04
    assert {item["what"] for item in report["findings"]} >= {"task.yaml", "kernel", "clock", "twin"}
    page = (out / "report.html").read_text()
    assert "its twin, no hardware" in page and report["problems"][0] in page and "1 of 21" in page
    assert read_record(system, "").passed == 1
    assert main(["accept", str(system.folder), "--out", str(out)]) == 2
    assert "holds a report; valid is a new folder" in capsys.readouterr().err


def test_a_robot_that_does_not_answer_is_one_sentence_and_leaves_no_folder(system, tmp_path, capsys):
    out = tmp_path / "acceptance"
    assert main(["accept", str(system.folder), "--robot-ip", "127.78.3.1", "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("error: robot at 127.78.3.1") == 1 and not out.exists()


def test_two_folders_are_compared_and_nothing_moves(system, play, tmp_path, capsys):
    for name in ("robot", "twin"):
        accept(system, RunArguments(out=str(tmp_path / name)), play)
    capsys.readouterr()
    words = ["accept", str(system.folder), "--out", str(tmp_path / "robot"), "--compare", str(tmp_path / "twin")]
    assert main([*words, "--json"]) == 1, "as the report that was measured before"
    printed = capsys.readouterr()
    found = json.loads(printed.out)["comparison"]
    assert yaml.safe_load((tmp_path / "robot" / "twin.yaml").read_text()) == found["parameters"]
    assert "stage 2 lag, ms" in printed.err and "Beside the twin" in (tmp_path / "robot" / "report.html").read_text()
    assert main([*words[:-1], str(tmp_path)]) == 2
    assert "holds no report of bid accept" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"rest_s": None, "way_mm": None}, ""),
        ({"reason": ""}, "nothing stopped the arm"),
        ({"speed": 0.001}, "the arm rested when it was stopped, so this shows nothing: try it again"),
        ({"rest_s": 1.21}, "the tool rested after 1.21 s; valid is up to 1 s"),
    ],
)
def test_a_stop_is_judged(changed, problem):
    assert "".join(stop_problems({**STOPPED, **changed})) == problem


def test_a_node_is_known_by_its_parameter_file(tmp_path):
    with pytest.raises(BidError, match=r"the safety node of the run in .* does not run"):
        node_process(tmp_path, "safety")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "fields"), [("franka_place", "translational_stiffness"), ("ur5_pick", "lookahead_time_s")]
)
def test_the_whole_way_in_the_twin(root, tmp_path, ros_domain, name, fields):
    """The tool's round stands for the policy, whose episodes at 0.1 of its speed take minutes."""
    folder = shutil.copytree(root / "config" / name, tmp_path / "system")
    content = yaml.safe_load((folder / "system.yaml").read_text())
    (folder / "system.yaml").write_text(yaml.safe_dump({**content, "driver": "scripted"}))
    done = bid("accept", str(folder), "--out", str(tmp_path / "twin"), "--json", limit_s=800)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["passed"], f"{report['problems']}\n{done.stderr}"
    assert [item["stage"] for item in report["stages"]] == list(range(1, len(STAGES) + 1))
    assert list(report["stops"]) == list(STOPS) and all(item["reason"] for item in report["stops"].values())
    pressed, killed = report["stops"]["emergency_stop"], report["stops"]["kill"]
    assert pressed["noticed_s"] < 0.3 and killed["noticed_s"] < 0.5 and killed["rest_s"] < 1.0
    # A driver that the robot refuses gives no new states: then nobody sees the rest.
    assert pressed["rest_s"] is None or pressed["rest_s"] < 1.0
    assert report["stops"]["cable"]["rest_s"] is None, "who hears nothing knows nothing"
    for run in ("stage-6", "stop-cable", "stop-emergency_stop", "stop-kill"):
        with BagReader(tmp_path / "twin" / run / "bag") as reader:
            assert reader.counts["/arm/status"] > 50
    compare = bid("accept", str(folder), "--out", str(tmp_path / "twin"), "--compare", str(tmp_path / "twin"))
    assert compare.returncode == 0 and fields in (tmp_path / "twin" / "twin.yaml").read_text()
