"""The public demonstrations of robomimic: files of the same layout, made here."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bid_ros.bench.robomimic.catalogue import TASKS
from bid_ros.bench.robomimic.data import human_dataset
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_from_6d
from bid_ros.core.task import load_task

# The hand points down, its x axis forward; the fingers are 8 cm apart.
DOWN = [1.0, 0.0, 0.0, 0.0]
CUBE = [0.02, 0.01, 0.82]
ARM = {"type": "OSC_POSE", "input_max": 1, "input_min": -1, "output_max": [0.05] * 3 + [0.5] * 3, "kp": 150}


@pytest.fixture
def task(root):
    return load_task(root / "config" / "lift.yaml")


def settings(version="1.5.1", name="Lift", rate=20, **arm):
    """What robomimic writes of the environment: the controller in the form of version 1.5 or 1.4."""
    arm = {**ARM, "control_delta": True, **arm}
    controller = {"type": "BASIC", "body_parts": {"right": arm}} if version >= "1.5" else arm
    kwargs = {"control_freq": rate, "controller_configs": controller, "robots": ["Panda"]}
    return {"env_name": name, "env_version": version, "type": 1, "env_kwargs": kwargs}


def write(path, about, actions, change=lambda file: None):
    """Write two demonstrations of four rows."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"], data.attrs["total"] = json.dumps(about), 8
        for number in range(2):
            demo = data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = 4
            demo["actions"] = actions
            place = np.array([0.1 * number, 0.0, 1.0]) + np.zeros((4, 3))
            cube = np.array(CUBE) + np.zeros((4, 3))
            way = place - cube if about["env_version"].startswith("1.4") else cube - place
            demo["obs/object"] = np.hstack([cube, np.tile([0.0, 0.0, 0.0, 1.0], (4, 1)), way])
            demo["obs/robot0_eef_pos"], demo["obs/robot0_eef_quat"] = place, np.tile(DOWN, (4, 1))
            demo["obs/robot0_gripper_qpos"] = np.tile([0.04, -0.04], (4, 1))
            demo["obs/robot0_joint_pos"] = np.zeros((4, 7))
            demo["states"], demo["rewards"], demo["dones"] = np.zeros((4, 32)), np.zeros(4), np.zeros(4)
        change(file)
    return path


def steps():
    """Four actions: forward, up, a quarter turn's share about the vertical, and closing."""
    actions = np.zeros((4, 7))
    actions[:, 6] = [-1, -1, -1, 1]
    actions[0, 0], actions[1, 2], actions[2, 5] = 1.0, -0.5, 1.0
    return actions


@pytest.mark.parametrize("version", ["1.5.1", "1.4.1"])
def test_steps_become_the_poses_that_the_controller_aims_at(tmp_path, task, version):
    dataset = human_dataset(write(tmp_path / "low_dim.hdf5", settings(version), steps()), task)
    assert (dataset.rows, dataset.episodes, dataset.labels) == (8, 2, ("human", "human"))
    np.testing.assert_allclose(dataset.actions[:4, :3], [[0.05, 0, 1], [0, 0, 0.975], [0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(dataset.actions[4, :3], [0.15, 0, 1])
    grip_site = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]])  # of a hand that points down
    cosine, sine = np.cos(0.5), np.sin(0.5)
    np.testing.assert_allclose(
        dataset.observations["object"][:, 7:] + dataset.observations["robot0_eef_pos"], 8 * [CUBE]
    )
    turns = matrix_from_6d(dataset.actions[:4, 3:9])
    np.testing.assert_allclose(turns[0], grip_site, atol=1e-12)
    np.testing.assert_allclose(turns[2], [[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]] @ grip_site, atol=1e-12)
    assert dataset.actions[:4, 9].tolist() == [-1, -1, -1, 1]
    assert {name: values.shape[1] for name, values in dataset.observations.items()} == {
        "object": 10,
        "robot0_eef_pos": 3,
        "robot0_eef_quat": 4,
        "robot0_gripper_qpos": 2,
    }
    assert np.diff(dataset.stamps_ns).tolist() == [50_000_000] * 3 + [-150_000_000] + [50_000_000] * 3


@pytest.mark.parametrize(
    ("version", "arm"), [("1.5.2", {"input_type": "absolute"}), ("1.4.1", {"control_delta": False})]
)
def test_poses_stay_what_they_are(tmp_path, task, version, arm):
    actions = np.tile([0.1, -0.1, 0.9, np.pi, 0.0, 0.0, 1.0], (4, 1))
    dataset = human_dataset(write(tmp_path / "abs.hdf5", settings(version, **arm), actions), task)
    np.testing.assert_allclose(dataset.actions[0], [0.1, -0.1, 0.9, 1, 0, 0, 0, -1, 0, 1], atol=1e-12)


def can_file(path, version):
    """Write what robomimic makes of three rows of Can, in which hand and can move and turn.

    Version 1.4 has the can's pose in the hand last, and of the same row. Version 1.5 has it first, and of the can in
    the row before; its first row is left from an earlier episode.
    """
    tool, can = np.array([[0.1, 0, 1], [0.1, 0.1, 1], [0.2, 0.1, 1.1]]), np.array([[0.2, 0, 0.9], [0.2, 0.1, 0.9]])
    can = np.vstack([can, [[0.3, 0.1, 1.0]]])
    hand = Rotation.from_euler("xz", [[180, 0], [170, 20], [160, 40]], degrees=True)
    turned = Rotation.from_euler("xyz", [[0, 0, 10], [20, 0, 30], [0, 40, 50]], degrees=True)
    world = np.hstack([can, turned.as_quat()])
    old = version.startswith("1.4")
    rows = np.arange(3) if old else np.array([0, 0, 1])
    in_hand = np.hstack([hand.inv().apply(can[rows] - tool), (hand.inv() * turned[rows]).as_quat(canonical=True)])
    if not old:
        in_hand[0] = 0.7
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"], data.attrs["total"] = json.dumps(settings(version, "PickPlaceCan")), 3
        demo = data.create_group("demo_0")
        demo.attrs["num_samples"], demo["actions"] = 3, np.zeros((3, 7))
        demo["obs/object"] = np.hstack([world, in_hand] if old else [in_hand, world])
        demo["obs/robot0_eef_pos"], demo["obs/robot0_eef_quat"] = tool, hand.as_quat()
        demo["obs/robot0_gripper_qpos"] = np.tile([0.04, -0.04], (3, 1))
    return path


def test_both_versions_give_what_the_simulator_shows(root, tmp_path):
    task = load_task(root / "config" / "can.yaml")
    old, new = (human_dataset(can_file(tmp_path / f"{version}.hdf5", version), task) for version in ("1.4.1", "1.5.1"))
    written = h5py.File(tmp_path / "1.5.1.hdf5")["data/demo_0/obs/object"][:]
    for dataset in (old, new):
        values = dataset.observations["object"]
        np.testing.assert_allclose(values[1:], written[1:], atol=1e-6)
        np.testing.assert_allclose(values[0], [0, 0, 0, 0, 0, 0, 0, *written[0, 7:]], atol=1e-6)


HELD = "{0}_to_eef_pos {0}_to_eef_quat {0}_pos {0}_quat"
LOOSE = "{0}_pos {0}_quat {0}_to_eef_pos {0}_to_eef_quat"
BINS = "payload_pos payload_quat trash_pos trash_quat lid_pos lid_quat target_bin_pos trash_bin_pos"
WAYS = "gripper0_to_payload gripper0_to_lid gripper1_to_payload gripper1_to_trash"
ORDERS = {
    "lift": ("cube_pos cube_quat cube_way", "cube_pos cube_quat cube_way"),
    "can": (LOOSE.format("can"), HELD.format("can")),
    "square": (LOOSE.format("nut"), HELD.format("nut")),
    "tool_hang": tuple(
        " ".join([*(order.format(name) for name in ("base", "frame", "tool")), "is_assembled is_hanging"])
        for order in (LOOSE, HELD)
    ),
    "transport": (f"{BINS} {WAYS} is_payload_in is_trash_in", f"{BINS} is_payload_in is_trash_in {WAYS}"),
}
"""Names of the values of ``object`` in robosuite 1.4.1 and in 1.5.2, in their order."""


@pytest.mark.parametrize("name", TASKS)
def test_the_values_of_version_1_4_are_found(name):
    def values(order):
        return [
            (word, part) for word in order.split() for part in range(4 if "quat" in word else 1 if "is_" in word else 3)
        ]

    old, new = map(values, ORDERS[name])
    assert [old[column] for column in TASKS[name].columns_14] == new


def write_two_arms(path, actions, frame):
    """Write one demonstration of Transport, of two arms that face each other along y."""
    about = settings(name="TwoArmTransport", **({"input_ref_frame": frame} if frame else {}))
    about["env_kwargs"]["robots"] = ["Panda", "Panda"]
    places, lying = np.array([[0.0, -0.3, 1.1], [0.0, 0.3, 1.1]]), np.array([0.0, 0.0, 0.0, 1.0])
    payload, trash, lid = np.array([0.2, -0.4, 0.8]), np.array([-0.2, 0.4, 0.8]), np.array([0.2, -0.4, 1.0])
    ways = [payload - places[0], lid - places[0], payload - places[1], trash - places[1]]
    row = np.concatenate([payload, lying, trash, lying, lid, lying, np.zeros(8), *ways])
    rows = len(actions)
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"], data.attrs["total"] = json.dumps(about), rows
        demo = data.create_group("demo_0")
        demo.attrs["num_samples"] = rows
        demo["actions"], demo["obs/object"] = actions, np.tile(row, (rows, 1))
        for arm in range(2):
            demo[f"obs/robot{arm}_eef_pos"] = np.tile(places[arm], (rows, 1))
            demo[f"obs/robot{arm}_eef_quat"] = np.tile(DOWN, (rows, 1))
            demo[f"obs/robot{arm}_gripper_qpos"] = np.tile([0.04, -0.04], (rows, 1))
        demo["states"], demo["rewards"], demo["dones"] = np.zeros((rows, 32)), np.zeros(rows), np.zeros(rows)
    return path


@pytest.mark.parametrize(
    ("frame", "first", "second"),
    [
        ("world", [0.05, 0.0, 0.0], [0.05, 0.0, 0.0]),
        ("base", [0.0, 0.05, 0.0], [0.0, -0.05, 0.0]),
        ("", [0.0, 0.05, 0.0], [0.0, -0.05, 0.0]),  # robosuite 1.5's default
    ],
)
def test_two_arms_have_a_pose_each(root, tmp_path, frame, first, second):
    actions = np.zeros((4, 14))
    actions[:, [0, 7]], actions[:, [6, 13]] = 1.0, [-1.0, 1.0]
    task = load_task(root / "config" / "transport.yaml")
    dataset = human_dataset(write_two_arms(tmp_path / "low_dim.hdf5", actions, frame), task)
    assert dataset.actions.shape == (4, 20)
    np.testing.assert_allclose(dataset.actions[0, :3] - [0.0, -0.3, 1.1], first, atol=1e-12)
    np.testing.assert_allclose(dataset.actions[0, 10:13] - [0.0, 0.3, 1.1], second, atol=1e-12)
    assert dataset.actions[0, [9, 19]].tolist() == [-1.0, 1.0]


def test_a_file_of_one_arm_is_not_of_two(root, tmp_path):
    path = write_two_arms(tmp_path / "low_dim.hdf5", np.zeros((4, 7)), "world")
    with pytest.raises(RecordingError, match=r"actions are \(7,\); valid is \(14,\)"):
        human_dataset(path, load_task(root / "config" / "transport.yaml"))


def test_one_command_makes_the_data_set_that_training_takes(tmp_path, task, capsys):
    file, out = write(tmp_path / "low_dim_v15.hdf5", settings(), steps()), tmp_path / "lift.npz"
    assert main(["bench", "data", str(file), "--task", "lift", "--out", str(out)]) == 0
    assert "2 episodes, 8 rows" in capsys.readouterr().err
    assert main(["data", "info", str(out), "--task", "lift", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2


def no_object(file):
    del file["data/demo_0/obs/object"]
    del file["data/demo_1/obs/object"]


def short_object(file):
    for number in range(2):
        values = file[f"data/demo_{number}/obs/object"][:, :9]
        del file[f"data/demo_{number}/obs/object"]
        file[f"data/demo_{number}/obs/object"] = values


def other_way(file):
    file["data/demo_1/obs/object"][1:, 7:10] += 0.1


def no_hand(file):
    file["data/demo_1/obs/robot0_eef_quat"][2] = 0.0


def no_turn(file):
    file["data/demo_0/obs/object"][3, 3:7] = 0.0


def no_settings(file):
    del file["data"].attrs["env_args"]


def with_controller(found):
    about = settings()
    about["env_kwargs"]["controller_configs"] = found
    return about


def shifted(file):
    """A row of actions moves from one demonstration to the other: as many as before."""
    for number, rows in enumerate((5, 3)):
        del file[f"data/demo_{number}/actions"]
        file[f"data/demo_{number}/actions"] = np.zeros((rows, 7))


def no_number(file):
    file["data/demo_1/obs/robot0_eef_pos"][2, 0] = np.nan


def words(file):
    for number in range(2):
        del file[f"data/demo_{number}/actions"]
        file[f"data/demo_{number}/actions"] = np.full((4, 7), b"x")


@pytest.mark.parametrize(
    ("about", "change", "said"),
    [
        (
            settings("1.2.0"),
            None,
            "was made with robosuite 1.2.0; valid are 1.4 and 1.5: take robomimic's low_dim_v15.hdf5 or .* of the same",
        ),
        (settings(""), None, "does not say which robosuite made it; valid are 1.4 and 1.5: take"),
        (settings("1.50.0"), None, "was made with robosuite 1.50.0"),
        (settings(name="PickPlaceCan"), None, "is of 'PickPlaceCan'; valid for lift is Lift"),
        (settings(rate=10), None, "10 rows a second; valid is 20"),
        (settings(type="JOINT_POSITION"), None, "controller is 'JOINT_POSITION'; valid is OSC_POSE"),
        (settings(), no_object, "lacks 'obs/object'; needed are object, robot0_eef_pos"),
        (
            settings(),
            other_way,
            "in demo 1 'object' does not hold the vector from tool to cube where it is expected",
        ),
        (
            settings(),
            no_hand,
            r"data/demo_1: 'obs/robot0_eef_quat' is \[0.0, 0.0, 0.0, 0.0\] in row 2; valid are quaternions of length 1",
        ),
        (
            settings(),
            no_turn,
            r"data/demo_0: the rotation of cube in 'obs/object' is \[0.0, .*\] in row 3; valid",
        ),
        (settings(), no_settings, "does not say what made it .*; take robomimic's low_dim_v15.hdf5"),
        (settings(output_max=[0.1] * 6), None, r"output_max is \[0.1, .*; valid is \[0.05, .*0.5\]"),
        (settings(input_min="none"), None, "input_min is none; valid is -1.0"),
        (with_controller({"body_parts": {"right": "OSC"}}), None, "controller is 'None'; valid is OSC_POSE"),
        (with_controller({"body_parts": ["OSC"]}), None, "controller is 'None'; valid is OSC_POSE"),
        (settings(), shifted, "episode 0: 'actions' has 5 rows; valid is 4, one for each row"),
        (settings(), short_object, r"'obs/object' has rows of \(9,\); valid is \(10,\)"),
        (settings(), no_number, "episode 1: 'obs/robot0_eef_pos' is nan in row 2"),
        (settings(), words, "episode 0: 'actions' is .S1; valid are numbers"),
    ],
)
def test_another_file_is_refused(tmp_path, task, about, change, said):
    path = write(tmp_path / "low_dim.hdf5", about, steps(), change or (lambda file: None))
    with pytest.raises(RecordingError, match=said) as raised:
        human_dataset(path, task)
    assert "\n" not in str(raised.value) and str(path) in str(raised.value)


def test_a_missing_file(tmp_path, task):
    with pytest.raises(RecordingError, match="does not exist"):
        human_dataset(tmp_path / "none.hdf5", task)
