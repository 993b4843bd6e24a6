"""A stage on the command line: it asks at a robot, judges the recording, and says what may follow."""

from __future__ import annotations

import json
import math

import pytest
from recording.conftest import kit, make_run, set_pose, task  # noqa: F401

from bid_msgs.msg import ArmStatus
from bid_ros.cli import main
from bid_ros.commands.stage import run_stage, stage_arguments
from bid_ros.core.topics import ARM_STATUS
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments
from bid_ros.system.stages import FILE, STAGES, note_stage, read_record

ROBOT = "172.16.0.2"


@pytest.fixture
def play(system, make_run, tmp_path, capsys):  # noqa: F811
    """Return a function that runs a stage of the twin, whose run a recording stands for; ``off`` m from its path."""

    def run(asked, off=0.0, status=0, address="", stopped=False, meanwhile=lambda: None, width=None, **given):
        out, recorded = tmp_path / f"out{asked}{off}{status}", make_run()
        for _, topic, message in recorded.items:
            if topic == ARM_STATUS:
                place = message.reference.position
                message.mode, message.command_age = ArmStatus.TRACKING, 0.05
                message.reference_twist[0] = 0.1 if place.x > 0.4 else 0.0
                message.reference_stamp = message.header.stamp
                set_pose(message.tool, (place.x, place.y + off, place.z), 0.0)
                message.source = given.get("source", message.source)
                message.gripper_width = message.gripper_width if width is None else width(message.gripper_width)

        def start(_, arguments):
            meanwhile()
            recorded.write(out / "bag")
            told = {"safety_stop": "speed is 0.7 m/s"} if status or stopped else given.get("run", {})
            (out / "run.json").write_text(json.dumps(told))
            return status

        found = run_stage(system, RunArguments(out=str(out), robot_ip=address), asked, False, start)
        return found, capsys.readouterr().out

    return run


def test_a_motion_that_was_followed_is_passed_and_the_next_may_follow(system, play):
    note_stage(system, "", 1, {"passed": True})
    status, text = play("2")
    assert status == 0 and "stage 2 is passed; stage 3 may follow: --stage next" in text, text
    assert "contact      none that stopped the arm" in text and "command age  p50 50" in text
    entry = json.loads((system.folder / FILE).read_text())["robots"]["twin"]["stages"][1]
    assert entry["moved_mm"] == pytest.approx(148, abs=5) and entry["resting_mm"]["max"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("given", "status", "word"),
    [
        ({"off": 0.02}, 1, "at rest the tool was 20 mm off its set-point; valid is up to 10 mm"),
        ({"status": 3}, 3, "the run ended with status 3: speed is 0.7 m/s"),
        ({"stopped": True}, 1, "the run ended with status 0: speed is 0.7 m/s"),
    ],
)
def test_a_motion_that_was_not_is_not_passed_and_is_told_why(system, play, given, status, word):
    note_stage(system, "", 1, {"passed": True})
    found, text = play("2", **given)
    assert found == status and word in text and "stage 2 is not passed" in text
    assert read_record(system, "").passed == 1


def test_a_gripper_that_hardly_moved_is_told(play):
    found, text = play("1")
    assert found == 0 and "gripper      moved 40 mm" in text, "half of its 80 mm"


@pytest.mark.parametrize("silent", [lambda _: math.nan, lambda width: width if width > 0.079 else math.nan])
def test_a_gripper_that_is_silent_or_silent_at_times_is_not_passed(system, play, silent):
    """A width that is no number is neither below the limit nor above it."""
    found, text = play("1", width=silent)
    assert found == 1 and "problem      the gripper moved 0 mm; at least 40 mm were asked for" in text
    assert read_record(system, "").passed == 0


def test_an_arm_whose_task_has_no_gripper_comes_through_the_stage_of_the_gripper(system, play):
    file = system.folder / "task.yaml"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if "kind: gripper" not in line))
    found, text = play("1", width=lambda _: math.nan)
    assert found == 0 and "gripper      none is measured" in text


def test_at_a_robot_a_person_is_asked_before_and_after(system, play, monkeypatch):
    answers = iter(["no"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert main(["up", str(system.folder), "--stage", "1", "--robot-ip", ROBOT]) == 2, "nobody can answer"
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main(["up", str(system.folder), "--stage", "1", "--robot-ip", ROBOT]) == 2
    assert read_record(system, ROBOT).passed == 0
    answers = iter(["yes", "it touched the table"])
    found, text = play("1", address=ROBOT)
    assert found == 1 and "a person does not say that it did that and nothing else" in text
    answers = iter(["yes", "yes"])
    assert play("1", off=0.001, address=ROBOT)[0] == 0 and read_record(system, ROBOT).passed == 1


@pytest.mark.parametrize("leaves", [EOFError, KeyboardInterrupt])
def test_who_leaves_the_question_afterwards_does_not_let_the_stage_pass(system, play, monkeypatch, leaves):
    """Ctrl-C there may be all that a person does who has seen something go wrong."""
    note_stage(system, ROBOT, 1, {"passed": True})
    asked = []

    def say(question):
        asked.append(question)
        if len(asked) == 2:
            raise leaves
        return "yes"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", say)
    assert play("1", address=ROBOT)[0] == 1 and read_record(system, ROBOT).passed == 0


def test_a_terminal_that_ends_before_the_motion_lets_nothing_move(system, monkeypatch, capsys):
    def gone(_):
        raise EOFError

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", gone)
    assert main(["up", str(system.folder), "--stage", "1", "--robot-ip", ROBOT]) == 2
    assert "error: not confirmed, so nothing moves" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["--slow", "0.1"], "slow is 0.1"),
        (["--shadow"], "shadow is True"),
        (["--takeover", "gamepad"], "takeover is 'gamepad'"),
        (["--no-record"], "record is False"),
    ],
)
def test_an_argument_that_a_stage_sets_itself_is_refused(system, capsys, given, word):
    """Else the arm would go at full speed though --slow was given, or move in shadow mode."""
    assert main(["up", str(system.folder), "--stage", "1", *given]) == 2
    printed = capsys.readouterr().err
    assert printed == f"error: {word}, but a stage says itself what moves, and how fast; leave it out\n"


def test_limits_that_change_while_a_stage_runs_do_not_inherit_it(system, play):
    note_stage(system, "", 1, {"passed": True})
    file = system.folder / "task.yaml"
    changed = file.read_text().replace("max_speed: 0.5 ", "max_speed: 0.7 ")
    found, text = play("2", meanwhile=lambda: file.write_text(changed))
    assert found == 1 and "the limits of task.yaml were changed meanwhile" in text
    assert read_record(system, "").passed == 0


def test_a_motion_whose_time_is_over_is_not_passed(system, play):
    for number in (1, 2):
        note_stage(system, "", number, {"passed": True})
    found, text = play("3", run={"results": [{"outcome": "not judged"}]})
    assert found == 1 and "problem      the motion did not come to its end within 180 s" in text


def test_the_way_to_a_start_is_no_motion_of_the_stage(system, play):
    for number in range(1, 4):
        note_stage(system, "", number, {"passed": True})
    found, text = play("4", source="episode")
    assert found == 1 and "the set-point moved 0 mm; the arm was hardly driven" in text
    assert play("4", source="policy", off=0.001)[0] == 0


def test_a_policy_that_is_named_drives_its_rounds(system):
    given = RunArguments(driver="exercise")
    assert stage_arguments(system, given, 6).driver == "stage"
    text = (system.folder / "system.yaml").read_text()
    (system.folder / "system.yaml").write_text(text.replace("driver: policy ", "driver: exercise "))
    alone = find_system(system.folder)
    assert stage_arguments(alone, RunArguments(), 6).driver == "stage"
    assert stage_arguments(alone, RunArguments(driver="policy"), 6).driver == "policy"


def test_a_stage_says_before_where_the_tool_will_go(system, play, capsys):
    for number in (1, 2):
        note_stage(system, "", number, {"passed": True})
    said = []
    with pytest.raises(ZeroDivisionError):
        run_stage(system, RunArguments(), "next", False, lambda *_: said.append(capsys.readouterr().err) or 1 / 0)
    assert "the gripper opens, the tool goes to the middle of the start box [0.475, 0.000, 0.320] m" in said[0]


def test_a_stage_that_is_skipped_is_one_sentence(system, capsys):
    assert main(["up", str(system.folder), "--stage", "4"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: stage 4 comes after stage 1, which the twin has not passed; nothing moves")
    assert printed.err.count("\n") == 1 and not printed.out


def test_an_episode_of_the_policy_is_as_slow_as_its_stage(system):
    given = RunArguments(robot_ip=ROBOT, takeover="gamepad", episodes=9)
    speeds = [stage_arguments(system, given, number).slow for number in range(1, len(STAGES) + 1)]
    assert speeds == [1.0, 1.0, 1.0, 0.1, 0.3, 1.0]
    first, last = stage_arguments(system, given, 1), stage_arguments(system, given, 6)
    assert (first.driver, first.device_settings) == ("stage", "{motion: gripper, speed: 0.1}")
    assert (last.driver, last.episodes, last.takeover, last.unstaged) == ("policy", 1, "", True)
