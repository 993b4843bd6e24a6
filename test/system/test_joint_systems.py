"""The shipped systems that command joints: their files, their nodes, and the task of their policy."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from bid_ros.cli import main
from bid_ros.core.errors import BidError
from bid_ros.system.description import describe
from bid_ros.system.folder import file_beside, find_system
from bid_ros.system.new import new_system
from bid_ros.system.run import RunArguments

ROBOTS = {"franka_place": 7, "ur5_pick": 6}
POSES = {"ur5_pick": "config/ur5_pick/task.yaml"}  # whose policy predicts poses


@pytest.fixture(params=ROBOTS)
def system(request, root):
    return find_system(root / "config" / "joints" / request.param)


def test_every_file_is_valid_and_the_joints_are_those_of_the_robot(system):
    system.check(twin=True)
    columns = system.task.columns("joints")
    assert columns.stop - columns.start == ROBOTS[system.folder.name]


def test_the_policy_is_of_joints_or_that_of_the_system_with_poses(system, root):
    own = find_system(root / "config" / system.folder.name)
    poses = system.folder.name in POSES
    assert system.policy_task.signature() == (own if poses else system).task.signature()
    assert own.policy_task is own.task


def test_who_needs_the_robot_s_joints_gets_its_configuration(system):
    nodes = {spec.name: spec.parameters for spec in describe(system, RunArguments(out="out"))}
    for name in ("safety", "arm", "policy", "episode"):
        assert nodes[name]["arm_config"] == str(system.file("robot.yaml")) and nodes[name]["twin"] is True, name
    assert nodes["policy"].get("bundle_task", "").endswith(POSES.get(system.folder.name, ""))
    assert "bundle_task" not in nodes["episode"]


def test_a_system_of_poses_gives_it_to_those_that_judge_the_joints_behind_them(root):
    system = find_system("franka_place")
    nodes = {spec.name: spec.parameters for spec in describe(system, RunArguments(out="out"))}
    for name in ("safety", "policy"):
        assert nodes[name]["arm_config"] == str(system.file("robot.yaml")) and nodes[name]["twin"] is True, name
    assert "arm_config" not in nodes["episode"] and "bundle_task" not in nodes["policy"]


def test_a_bundle_task_that_does_not_fit_is_one_sentence(system):
    policy = replace(system.settings.policy, bundle_task="task.yaml")
    wrong = replace(system, settings=replace(system.settings, policy=policy))
    with pytest.raises(BidError, match="valid is the tool's pose for a system that commands joints"):
        _ = wrong.policy_task
    policy = replace(policy, bundle_task="nowhere.yaml")
    with pytest.raises(BidError, match=r"has no file nowhere\.yaml"):
        _ = replace(system, settings=replace(system.settings, policy=policy)).policy_task


def test_what_a_folder_lacks_is_that_of_the_system_it_is_like(system, root):
    name = system.folder.name
    assert system.folders == (system.folder, root / "config" / name)
    assert system.file("task.yaml").parent == system.folder
    for file in ("robot.yaml", "cameras.yaml", "nodes.yaml", "view.rviz", "foxglove.json"):
        assert system.file(file) == root / "config" / name / file == file_beside(system.file("task.yaml"), file)
    with pytest.raises(BidError, match=rf"has no file notes\.txt, nor has .*config/{name}, which it is like"):
        system.file("notes.txt")


@pytest.mark.parametrize(
    ("like", "sentence"),
    [
        ("../nowhere", r"system .*mine is like \.\./nowhere, which is no system; valid is a folder with system\.yaml"),
        (".", r"system .*mine is like \., which leads back to itself; valid is another system"),
        ("../other", r"system .*other is like \.\./mine, which leads back to itself; valid is another system"),
    ],
)
def test_a_system_that_is_like_nothing_or_like_itself_is_one_sentence(tmp_path, capsys, like, sentence):
    for name, of in (("mine", like), ("other", "../mine")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "system.yaml").write_text(f"like: {of}\n")
    with pytest.raises(BidError, match=sentence):
        _ = find_system(tmp_path / "mine").task
    assert main(["check", str(tmp_path / "mine")]) == 1
    assert re.search(sentence, capsys.readouterr().out)


def test_a_copy_has_all_files_of_its_own(system, tmp_path):
    made = new_system(tmp_path / "mine", like=str(system.folder))
    assert made.settings.driver == system.settings.driver and made.folders == (made.folder,)
    assert made.policy_task.signature() == system.policy_task.signature()
    for file in ("robot.yaml", "cameras.yaml", "nodes.yaml", "view.rviz", "foxglove.json"):
        assert made.file(file).parent == made.folder
    assert replace(made.task, name=system.task.name).signature() == system.task.signature()


def test_the_old_name_of_the_driver_is_still_read(tmp_path, system):
    made = new_system(tmp_path / "mine", like=str(system.folder))
    file = made.folder / "system.yaml"
    assert "\ndriver: policy" in file.read_text()
    file.write_text(file.read_text().replace("\ndriver: policy", "\nacts: scripted"))
    assert find_system(made.folder).settings.driver == "scripted"
    file.write_text(f"{file.read_text()}driver: policy\n")
    with pytest.raises(BidError, match="unknown field 'acts'; valid are like, driver"):
        find_system(made.folder)


def test_a_least_distance_of_an_arm_whose_rotation_nobody_commands_does_not_start(tmp_path, bench):
    """Without a rotation nobody knows the joints. What cannot be judged must not look as if it were."""
    made = new_system(tmp_path / "own", like="franka_place")
    file = made.folder / "task.yaml"
    content = yaml.safe_load(file.read_text())
    content["action"] = [item for item in content["action"] if item["kind"] != "rotation_6d"]
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    sentence = "min_self_distance is 0.01 m, but task 'own' commands a position without rotation_6d"
    with pytest.raises(BidError, match=re.escape(sentence)):
        find_system(made.folder).check(twin=True)
    for config in ("", str(find_system(made.folder).file("robot.yaml"))):
        bench.start("safety", {"task": str(file), "arm_config": config, "twin": True})
        status, output = bench.finish("safety")
        assert status == 2 and output.count("error: ") == 1 and sentence in output


def test_a_least_distance_of_an_arm_without_geometry_does_not_start(tmp_path):
    made = new_system(tmp_path / "own", "ros")
    file = tmp_path / "own" / "task.yaml"
    file.write_text(file.read_text().replace("  keep_out:", "  min_self_distance: 0.01\n  keep_out:"))
    sentence = r"min_self_distance is 0\.01 m, but the shapes of the links of robot 'ros' are not known; valid is"
    with pytest.raises(BidError, match=sentence):
        find_system(made.folder).check(twin=True)  # whose URDF has no collision shapes
    with pytest.raises(BidError, match=r"urdf is the topic .*; valid for a task that commands joints is a file"):
        find_system(made.folder).check(twin=False)
