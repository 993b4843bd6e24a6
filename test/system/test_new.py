"""``bid new``: every folder that it writes is a system that starts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from bid_ros.cameras.config import load_cameras
from bid_ros.cli import main
from bid_ros.core.errors import ArmError, BidError
from bid_ros.core.paths import share
from bid_ros.core.task import load_task
from bid_ros.policy.bundle import load_bundle
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.system.new import new_system
from bid_ros.system.run import RunArguments
from bid_ros.tasks.twins import scene_model

VIEWS = {"foxglove.json", "view.rviz"}
FILES = {"README.md", "cameras.yaml", "nodes.yaml", "robot.yaml", "system.yaml", "task.yaml", *VIEWS}
TEMPLATES = {"franka": "franka_place", "ros": "new/ros", "ur": "ur5_pick"}
ROBOTS = tuple(TEMPLATES)
MUGS = ("meshes/mug.stl", "plate.stl")


@pytest.fixture(params=ROBOTS)
def robot(request):
    return request.param


@pytest.mark.parametrize("name", shipped_systems())
def test_a_shipped_system_has_every_file(name):
    assert {file.name for file in share("config", name).iterdir()} == FILES


def test_a_task_of_ones_own_is_written_for_a_robot_and_can_be_read(tmp_path, robot):
    system = new_system(tmp_path / "my_task", robot)
    assert {file.name for file in system.folder.iterdir()} == FILES
    task = system.task
    assert (task.name, task.robot, task.kind) == ("my_task", robot, "table")
    template = share("config", TEMPLATES[robot])
    shipped = load_task(template / "task.yaml")
    assert task.limits == shipped.limits and task.observation == shipped.observation
    config = load_arm_config(system.file("robot.yaml"), "127.0.0.1", twin=True, name=robot)
    assert config == load_arm_config(template / "robot.yaml", "127.0.0.1", twin=True, name=robot)
    cameras = [camera.name for camera in task.cameras]
    assert {item.source for item in load_cameras(system.file("cameras.yaml"), cameras).values()} == {"topic"}
    assert yaml.safe_load(system.file("nodes.yaml").read_text()) == yaml.safe_load(
        (template / "nodes.yaml").read_text()
    )
    specs = {spec.name for spec in describe(system, RunArguments())}
    assert {"twin", "teleop"} <= specs and "policy" not in specs


def test_everything_that_is_written_is_explained(tmp_path, robot):
    system = new_system(tmp_path / "my_task", robot)
    for file in FILES - {*VIEWS, "README.md"}:
        text = (system.folder / file).read_text()
        key, _, schema = text.splitlines()[0].partition("=")
        assert key == "# yaml-language-server: $schema" and (system.folder / schema).is_file()
        assert not Path(schema).is_absolute()
        assert (
            text.splitlines()[1].startswith("# ")
            and "NAME" not in text
            and "franka_place" not in text
            and "ur5_pick" not in text
        )
    readme = (system.folder / "README.md").read_text()
    assert "bid up my_task" in readme and "NAME" not in readme and "ROBOT" not in readme
    assert "bid record my_task" in readme
    assert all(f"`{file}`" in readme for file in FILES - {"README.md"})


def test_the_fixed_camera_is_where_the_twin_has_it(tmp_path, robot):
    mujoco = pytest.importorskip("mujoco")
    system = new_system(tmp_path / "my_task", robot)
    cameras = load_cameras(system.file("cameras.yaml"), ["third_person", "wrist"], twin=True)
    model = scene_model(system.task)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    there, said = data.camera("third_person"), cameras["third_person"].model(96, 96)
    np.testing.assert_allclose(said.position, there.xpos, atol=1e-9)
    np.testing.assert_allclose(said.rotation, there.xmat.reshape(3, 3) @ np.diag([1, -1, -1]), atol=1e-5)
    assert said.fovy == model.camera("third_person").fovy[0] and cameras["wrist"].position is None


@pytest.mark.parametrize("like", shipped_systems())
def test_a_copy_of_a_shipped_system_has_a_name_of_its_own_and_its_policy(tmp_path, like):
    system = new_system(tmp_path / "copied", like=like)
    shipped = find_system(like)
    assert {file.name for file in system.folder.iterdir()} == FILES | {"policy_task.yaml"}
    for file in FILES - {"task.yaml", "system.yaml", "README.md"}:
        wanted, found = ((folder / file).read_text().splitlines() for folder in (shipped.folder, system.folder))
        assert wanted[1:] == found[1:], file
    assert system.task == replace(shipped.task, name="copied") and system.policy_task == shipped.task
    assert f"# A copy of the system {like}.\n" in system.file("task.yaml").read_text()
    load_bundle(system.bundle(), system.policy_task)
    policy = replace(shipped.settings.policy, bundle_task="policy_task.yaml")
    assert system.settings == replace(shipped.settings, policy=policy)
    assert {"policy"} < {spec.name for spec in describe(system, RunArguments())}
    readme = (system.folder / "README.md").read_text()
    assert readme.startswith("# copied\n") and "bid up copied --out" in readme and "bid record copied" in readme
    assert "bid new" not in readme and f"`models/{like}`" in readme


def test_a_copy_of_a_copy_keeps_the_task_of_the_policy(tmp_path):
    new_system(tmp_path / "first", like="franka_place")
    second = new_system(tmp_path / "second", like=str(tmp_path / "first"))
    assert (second.task.name, second.policy_task.name) == ("second", "franka_place")


def test_a_copy_has_the_meshes_of_its_objects(tmp_path):
    first = new_system(tmp_path / "first", "ur").folder
    (first / "meshes").mkdir()
    for file in (first / "meshes" / "mug.stl", first / "plate.stl"):
        file.write_bytes(b"\xff\xfe")
    where = "shape: mesh, size: [0.1, 0.1, 0.1], start_min: [0.5, 0.0], start_max: [0.5, 0.0]"
    lines = [f"  - {{name: mug{number}, mesh: {file}, {where}}}" for number, file in enumerate(MUGS)]
    with (first / "task.yaml").open("a") as file:
        file.write("\n".join(["objects:", *lines, ""]))
    second = new_system(tmp_path / "second", like=str(first))
    assert [Path(item.mesh) for item in second.task.objects] == [second.folder / file for file in MUGS]
    assert (second.folder / "README.md").read_text().count("bid record") == 1


def test_a_copy_takes_meshes_from_outside_of_the_folder_in(tmp_path):
    first, mesh = new_system(tmp_path / "first", "ur").folder, tmp_path / "meshes" / "mug.stl"
    mesh.parent.mkdir()
    mesh.write_bytes(b"\xff\xfe")
    (first / "linked.stl").symlink_to(mesh)
    where = "shape: mesh, size: [0.1, 0.1, 0.1], start_min: [0.5, 0.0], start_max: [0.5, 0.0]"
    files = ("../meshes/mug.stl", "'../meshes/mug.stl'", "linked.stl", str(mesh))
    lines = [f"  - {{name: mug{number}, mesh: {file}, {where}}}" for number, file in enumerate(files)]
    with (first / "task.yaml").open("a") as file:
        file.write("\n".join(["objects:", *lines, ""]))
    second = new_system(tmp_path / "elsewhere" / "second", like=str(first))
    here = second.folder
    inside = [here / "mug0_mug.stl", here / "mug0_mug.stl", here / "linked.stl", mesh]
    assert [Path(item.mesh) for item in second.task.objects] == inside
    assert all(file.read_bytes() == b"\xff\xfe" for file in inside)


def test_a_copy_has_files_that_are_no_text(tmp_path):
    first = new_system(tmp_path / "first", "ur").folder
    (first / "board.pdf").write_bytes(b"%PDF-1.4\n%\xac\xdc\x00")  # as bid calibrate board writes it
    second = new_system(tmp_path / "second", like=str(first)).folder
    assert (second / "board.pdf").read_bytes() == (first / "board.pdf").read_bytes()


def test_a_bundle_of_a_task_that_is_not_the_same_is_refused(tmp_path):
    system = new_system(tmp_path / "copied", like="franka_place")
    file = system.folder / "task.yaml"
    file.write_text(file.read_text().replace("horizon: 16", "horizon: 12"))
    with pytest.raises(BidError, match="or the same features, rate and horizon under another"):
        _ = find_system(system.folder).policy_task


@pytest.mark.parametrize(("robot", "like"), [("ur", ""), ("", "franka_place"), ("", "ur5_pick")])
def test_cameras_get_other_names_in_every_file_and_in_the_twin(tmp_path, robot, like):
    system = new_system(tmp_path / "mine", robot, like, ["front", "hand_cam"])
    for file in FILES:
        assert not re.search(r"(?m)^[^#\n]*\b(third_person|wrist)\b", (system.folder / file).read_text()), file
    model = scene_model(system.task)
    assert [model.camera(index).name for index in range(model.ncam)] == ["front", "hand_cam"]
    assert "/camera/front/image" in (system.folder / "foxglove.json").read_text()
    cameras = load_cameras(system.file("cameras.yaml"), ["front", "hand_cam"], twin=True)
    assert cameras["front"].position is not None and cameras["hand_cam"].position is None
    assert system.settings.driver == ("scripted" if like else "exercise") and not system.settings.policy.bundle
    system.check(twin=True)


def test_a_renamed_system_can_be_rehearsed(tmp_path):
    for like, names in (("franka_place", ["front", "hand_cam"]), ("ur5_pick", ["top", "wrist"])):
        stage = new_system(tmp_path / like, "", like, names).stage()
        try:
            stage.begin(0, np.array([0.45, 0.0, 0.3]), 0.0)
            assert list(stage.images()) == names
        finally:
            stage.close()


def test_the_command_says_what_it_wrote_and_what_is_next(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my_task", "--robot", "ur"]) == 0
    said = capsys.readouterr().out
    assert all(file in said for file in FILES) and "bid check my_task, then bid up my_task" in said


def test_an_empty_folder_is_filled_and_any_other_is_left_alone(tmp_path):
    (tmp_path / "empty").mkdir()
    assert new_system(tmp_path / "empty", "franka").task.name == "empty"
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    for taken in (full, full / "notes.txt"):
        with pytest.raises(BidError, match="exists and is not an empty folder; valid is a folder to be made"):
            new_system(taken, "franka")
    assert [file.name for file in full.iterdir()] == ["notes.txt"] and (full / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("folder", "arguments", "sentence"),
    [
        ("my task", {"robot": "franka"}, "my task cannot name a task; valid is a name of letters, digits"),
        ("mine", {"robot": "kuka"}, "robot 'kuka' does not exist; valid are franka, ros, ur"),
        ("mine", {"like": "pour_tea"}, "system 'pour_tea' does not exist"),
        ("mine", {"robot": "ur", "like": "franka_place"}, "system 'franka_place' is of the robot franka, not of ur"),
        ("mine", {}, "a new system needs a robot; valid are franka, ros, ur"),
        ("mine", {"robot": "ur", "cameras": ["top"]}, "cameras are top; valid are 2 names, for third_person, wrist"),
        ("mine", {"like": "ur5_pick", "cameras": ["top", "top"]}, "cameras are top, top; valid are 2 names"),
        ("mine", {"robot": "ur", "cameras": ["top", "my cam"]}, "camera is 'my cam'; valid is a name of letters"),
        ("mine", {"robot": "ur", "cameras": ["top", "gripper_width"]}, "camera is 'gripper_width'; valid is a name"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_writes_nothing(tmp_path, folder, arguments, sentence):
    with pytest.raises((BidError, ArmError), match=sentence):
        new_system(tmp_path / folder, **arguments)
    assert not list(Path(tmp_path).iterdir())
