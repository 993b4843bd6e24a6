"""Stages: their order, their record, and that a robot goes no faster than they allow, however it is started."""

from __future__ import annotations

import json

import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.system.description import describe
from bid_ros.system.new import new_system
from bid_ros.system.run import RunArguments
from bid_ros.system.stages import FILE, STAGES, check_stages, note_stage, read_record, stage_number

ROBOT = "172.16.0.2"
GOOD = {"passed": True, "problems": []}


def passed(system, count, address=ROBOT, driver="policy"):
    for number in range(1, count + 1):
        note_stage(system, address, number, GOOD, driver)


def test_each_stage_follows_the_one_before(system):
    for number in range(1, len(STAGES) + 1):
        assert stage_number(system, ROBOT, "next") == number
        assert stage_number(system, ROBOT, str(number)) == number
        if number < len(STAGES):
            with pytest.raises(BidError, match=rf"stage {number + 1} comes after stage {number}, .*nothing moves"):
                stage_number(system, ROBOT, str(number + 1))
        note_stage(system, ROBOT, number, GOOD)
    assert stage_number(system, ROBOT, "next") == len(STAGES)
    assert read_record(system, "").passed == 0, "its twin is another arm"


@pytest.mark.parametrize("asked", ["0", "7", "last", "-1"])
def test_a_stage_that_does_not_exist_is_refused(system, asked):
    with pytest.raises(BidError, match=f"--stage is '{asked}'; valid is next, or 1 to 6"):
        stage_number(system, ROBOT, asked)


@pytest.mark.parametrize(("count", "slow"), [(0, 0.1), (3, 0.1), (4, 0.1), (5, 0.3), (6, 1.0)])
def test_a_robot_is_as_fast_as_its_stages_allow(system, count, slow):
    passed(system, count)
    check_stages(system, RunArguments(robot_ip=ROBOT, slow=slow))
    if slow < 1:
        with pytest.raises(BidError, match=rf"may move at {slow} of its speed, as it has passed {count} of 6 stages"):
            check_stages(system, RunArguments(robot_ip=ROBOT, slow=slow + 0.1))
    check_stages(system, RunArguments(robot_ip=ROBOT, unstaged=True))
    check_stages(system, RunArguments())
    check_stages(system, RunArguments(robot_ip=ROBOT, shadow=True))


def test_a_person_who_drives_beside_a_shadow_moves_the_arm(system):
    with pytest.raises(BidError, match=r"may move at 0\.1 of its speed"):
        check_stages(system, RunArguments(robot_ip=ROBOT, shadow=True, takeover="gamepad"))


def test_launch_file_and_command_line_ask_for_the_stages_alike(system, folder, tmp_path):
    """Both start from ``describe``."""
    bundle = str(make_tiny_bundle(tmp_path / "bundle", load_task(folder / "task.yaml")))
    with pytest.raises(
        BidError, match=r"passed 0 of 6 stages with a policy; valid is the next stage .*, bid up --slow 0\.1, or --unst"
    ):
        describe(system, RunArguments(robot_ip=ROBOT, bundle=bundle))
    passed(system, len(STAGES))
    assert describe(system, RunArguments(robot_ip=ROBOT, bundle=bundle))


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("robot.yaml", "max_force: 40.0", "max_force: 60.0", True),
        ("task.yaml", "max_speed: 0.5 ", "max_speed: 0.7 ", True),
        ("task.yaml", "tool_min: [0.40", "tool_min: [0.41", True),
        ("task.yaml", "episode_timeout: 20.0", "episode_timeout: 30.0", False),
        ("robot.yaml", "# N per axis", "# newton per axis", False),
    ],
)
def test_a_file_that_changed_asks_for_the_stages_anew(system, folder, file, old, new, counts):
    passed(system, len(STAGES))
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    if not counts:
        check_stages(system, RunArguments(robot_ip=ROBOT))
        return
    with pytest.raises(BidError, match=r"robot\.yaml or the limits of task\.yaml have changed since its stages"):
        check_stages(system, RunArguments(robot_ip=ROBOT))
    assert stage_number(system, ROBOT, "next") == 1
    with pytest.raises(BidError, match=r"has not passed, as robot\.yaml or the limits of task\.yaml have changed"):
        stage_number(system, ROBOT, "5")
    note_stage(system, ROBOT, 1, GOOD)
    assert read_record(system, ROBOT).passed == 1


def test_a_stage_that_fails_takes_the_later_ones_with_it(system, folder):
    passed(system, len(STAGES))
    note_stage(system, ROBOT, 4, {"passed": False, "problems": ["the tool lags by 0.30 s"]})
    assert read_record(system, ROBOT).passed == 3 and stage_number(system, ROBOT, "next") == 4
    entry = json.loads((folder / FILE).read_text())["robots"][ROBOT]
    assert entry["failed"]["problems"] == ["the tool lags by 0.30 s"] and len(entry["hash"]) == 64
    assert [item["motion"] for item in entry["stages"]] == ["gripper", "axes", "home"]
    assert all(item["date"] for item in entry["stages"])


def test_a_stage_that_is_passed_again_leaves_the_later_ones(system):
    passed(system, len(STAGES))
    note_stage(system, ROBOT, 2, GOOD)
    assert read_record(system, ROBOT).passed == len(STAGES)


def test_rounds_without_a_policy_let_a_policy_go_no_faster(system):
    """A policy that was never tried slowly would go at full speed at once."""
    passed(system, len(STAGES), driver="exercise")
    check_stages(system, RunArguments(robot_ip=ROBOT, driver="page"))
    with pytest.raises(BidError, match=r"may move at 0\.1 of its speed, as it has passed 3 of 6 stages with a policy"):
        check_stages(system, RunArguments(robot_ip=ROBOT))
    assert stage_number(system, ROBOT, "next", "policy") == 4
    with pytest.raises(BidError, match="stage 6 comes after stage 4"):
        stage_number(system, ROBOT, "6", "policy")
    note_stage(system, ROBOT, 4, GOOD, "policy")
    note_stage(system, ROBOT, 5, GOOD, "policy")
    check_stages(system, RunArguments(robot_ip=ROBOT, slow=0.3))
    check_stages(system, RunArguments(robot_ip=ROBOT, driver="page"))


@pytest.mark.parametrize("text", ["{", "[]", '{"robots": {"a": {}}}'])
def test_a_damaged_record_is_said_and_allows_nothing(system, folder, text):
    (folder / FILE).write_text(text)
    with pytest.raises(BidError, match="is no record of stages; delete it"):
        check_stages(system, RunArguments(robot_ip=ROBOT))
    assert (folder / FILE).read_text() == text


def test_a_copy_of_a_system_has_passed_nothing(system, folder, tmp_path):
    passed(system, len(STAGES))
    copy = new_system(tmp_path / "copy", like=str(folder))
    assert read_record(copy, ROBOT).passed == 0 and not (copy.folder / FILE).exists()
