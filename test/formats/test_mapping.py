"""Keys of a data set become features of a task; doubt is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bid_ros.core.errors import RecordingError, TaskError
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.task import parse_task
from bid_ros.formats import Column, Contents, DataEpisode, base, mapped
from bid_ros.recording.dataset import Dataset

ROWS = 4


class Memory:
    """A data set in memory."""

    def __init__(self, columns, action, values, rate_hz=10.0, signature="") -> None:
        self.contents = Contents("memory", tuple(columns), action, (ROWS,), rate_hz, signature=signature)
        self._values = values

    def episodes(self, start: int = 0, names=None):
        observed = {column.name: self._values[column.name] for column in self.contents.columns}
        yield DataEpisode(observed, self._values["action"], np.arange(ROWS, dtype=np.int64))


STATE_NAMES = ("gripper_width", "tool_position.x", "tool_position.y", "tool_position.z")
PACKED = Column("state", (4,), "float32", names=STATE_NAMES, key="observation.state")
PICTURE = Column("wrist", (6, 8, 3), "uint8", image=True, key="observation.images.wrist")
ACTION = Column(
    "action", (4,), "float32", names=("tool_position.x", "tool_position.y", "tool_position.z", "gripper_width")
)


def small(kit, **more):
    observation = [
        {"name": "wrist", "kind": "image", "shape": [6, 8, 3]},
        {"name": "tool_position", "kind": "position"},
        {"name": "gripper_width", "kind": "gripper"},
    ]
    return parse_task(kit.content(observation=more.pop("observation", observation), **more))


def memory(*columns, action=ACTION, **more):
    rng = np.random.default_rng(0)
    values = {item.name: rng.uniform(-0.1, 0.1, (ROWS, *item.shape)).astype(item.dtype) for item in (*columns, action)}
    values |= {
        item.name: rng.integers(0, 256, (ROWS, *item.shape)).astype(item.dtype) for item in columns if item.image
    }
    return Memory(columns, action, values, **more)


def first(source):
    return next(iter(source.episodes()))


def test_values_are_found_by_their_names(kit):
    source = memory(PICTURE, PACKED)
    found, plain = first(mapped(source, small(kit))), first(source)
    np.testing.assert_array_equal(found.observations["tool_position"], plain.observations["state"][:, 1:])
    np.testing.assert_array_equal(found.observations["gripper_width"], plain.observations["state"][:, :1])
    np.testing.assert_array_equal(found.actions, plain.actions)
    assert found.actions.dtype == found.observations["tool_position"].dtype == np.float64
    assert found.text == "Place it."


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("observation.state[1:4]", [1, 2, 3]),
        ("state[3, 1, 2]", [3, 1, 2]),
        ("state[tool_position.z, gripper_width, tool_position.x]", [3, 0, 1]),
    ],
)
def test_a_key_in_the_task_file_wins(kit, key, columns):
    source = memory(PICTURE, PACKED)
    found = first(mapped(source, small(kit, data={"observation": {"tool_position": key}})))
    np.testing.assert_array_equal(found.observations["tool_position"], first(source).observations["state"][:, columns])


def test_actions_may_come_from_parts_of_any_column(kit):
    source = memory(PICTURE, PACKED, action=replace(ACTION, names=()))
    keys = {"tool_position": "action[1:4]", "gripper_width": "observation.state[0]"}
    found = first(mapped(source, small(kit, data={"action": keys})))
    plain = first(source)
    expected = np.concatenate([plain.actions[:, 1:], plain.observations["state"][:, :1]], axis=1)
    np.testing.assert_array_equal(found.actions, expected)


def test_whole_float_pictures_become_bytes_and_others_are_refused(kit):
    source = memory(replace(PICTURE, dtype="float32"), PACKED)
    found = first(mapped(source, small(kit))).observations["wrist"]
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, first(source).observations["wrist"])
    source._values["wrist"] = source._values["wrist"] / 255
    with pytest.raises(
        RecordingError, match=r"episode 0: '.*wrist' is float32 with values that are no whole numbers from 0"
    ):
        first(mapped(source, small(kit)))


OTHER = Column("pose", (4,), "float32", names=STATE_NAMES, key="observation.pose")
REFUSED = {
    "nowhere": (
        (PACKED,), {}, {},
        r"lacks observation 'wrist' of task 'small'; it has observation.state \(4,\), action \(4,\); name the key",
    ),
    "in two places": (
        (PICTURE, PACKED, OTHER), {}, {},
        "'tool_position' of task 'small' is in observation.state and observation.pose of the data set; name one",
    ),
    "unknown key": (
        (PICTURE, PACKED), {"observation": {"tool_position": "obs/eef_pos"}}, {},
        "names the key 'obs/eef_pos'; valid are observation.images.wrist",
    ),
    "too many values": (
        (PICTURE, PACKED), {"observation": {"tool_position": "state"}}, {},
        "is a position of 3 values; 'observation.state' of the data set has 4",
    ),
    "no such value": (
        (PICTURE, PACKED), {"observation": {"tool_position": "state[2:5]"}}, {},
        "names value 4 of 'observation.state'; valid are 0 to 3",
    ),
    "no such name": (
        (PICTURE, PACKED), {"observation": {"gripper_width": "state[width]"}}, {},
        "names the value 'width' of 'observation.state'; valid are gripper_width, tool_position.x",
    ),
    "no names": (
        (PICTURE, PACKED, Column("raw", (1,), "float32")), {"observation": {"gripper_width": "raw[width]"}}, {},
        "valid are numbers: its values have no names",
    ),
    "no picture": (
        (PICTURE, PACKED), {"observation": {"wrist": "state"}}, {},
        r"is a image of \(6, 8, 3\); 'observation.state' of the data set is no image of \(4,\)",
    ),
    "size of a picture": (
        (replace(PICTURE, shape=(8, 8, 3)), PACKED), {}, {},
        r"of the data set is an image of \(8, 8, 3\)",
    ),
    "order of the actions": (
        (PICTURE, PACKED), {}, {"action": replace(ACTION, names=())},
        r"lacks action 'tool_position' of task 'small'",
    ),
    "rate": (
        (PICTURE, PACKED), {}, {"rate_hz": 30.0},
        "has 30 rows a second; task 'small' has rate_hz 10; valid is the same rate",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", list(REFUSED))
def test_doubt_is_refused_in_one_sentence(kit, why):
    columns, keys, more, said = REFUSED[why]
    with pytest.raises(RecordingError, match=said) as raised:
        mapped(memory(*columns, **more), small(kit, **({"data": keys} if keys else {})))
    assert "\n" not in str(raised.value)


def test_a_quaternion_is_no_rotation_in_six_numbers(kit):
    task = small(kit, observation=[{"name": "tool_rotation", "kind": "rotation_6d"}])
    with pytest.raises(RecordingError, match="is a rotation_6d of 6 values; 'tool_rotation' of the data set has 4"):
        mapped(memory(Column("tool_rotation", (4,), "float32")), task)


@pytest.mark.parametrize("named", [True, False])
def test_rotation_vectors_become_six_numbers(kit, named):
    names = tuple(f"eef_axis_angle.{axis}" for axis in "xyz") if named else ()
    column = Column("hand_axis_angle", (3,), "float64", names=names, key="obs/hand_axis_angle")
    task = small(
        kit,
        observation=[{"name": "tool_rotation", "kind": "rotation_6d"}],
        data={"observation": {"tool_rotation": "obs/hand_axis_angle"}},
    )
    source = memory(column)
    vectors = first(source).observations["hand_axis_angle"]
    expected = matrix_to_6d(Rotation.from_rotvec(vectors).as_matrix())
    np.testing.assert_allclose(first(mapped(source, task)).observations["tool_rotation"], expected, atol=1e-12)
    with pytest.raises(
        RecordingError, match="is a rotation_6d of 6 values; 'obs/hand_axis_angle' of the data set has 3"
    ):
        mapped(memory(replace(column, name="euler", names=())), task)


def test_actions_of_the_same_task_need_no_names(kit):
    task = small(kit)
    source = memory(PICTURE, PACKED, action=replace(ACTION, names=()), signature=task.signature())
    np.testing.assert_array_equal(first(mapped(source, task)).actions, first(source).actions)
    shorter = replace(ACTION, shape=(3,), names=())
    with pytest.raises(RecordingError, match="'action' of the data set has 3 values; task 'small' has 4"):
        mapped(memory(PICTURE, PACKED, action=shorter, signature=task.signature()), task)


def test_what_was_written_for_the_task_needs_no_keys(kit):
    task = small(kit, data={"observation": {"tool_position": "obs/eef_pos"}})
    source = memory(PICTURE, PACKED, signature=task.signature())
    found = first(mapped(source, task)).observations["tool_position"]
    np.testing.assert_array_equal(found, first(source).observations["state"][:, 1:])


@pytest.mark.parametrize("shape", [(6, 8, 1), (6, 8)])
def test_a_grey_camera_is_read_as_rgb(kit, shape):
    source = memory(Column("wrist", shape, "uint8"), PACKED)
    found = first(mapped(source, small(kit))).observations["wrist"]
    assert found.dtype == np.uint8 and found.shape == (ROWS, 6, 8, 3)
    np.testing.assert_array_equal(
        found, np.repeat(first(source).observations["wrist"].reshape(ROWS, 6, 8, 1), 3, axis=3)
    )


def test_an_action_may_be_a_column_that_only_a_key_names(kit):
    wanted = Column("wanted", (4,), "float32", names=ACTION.names, key="wanted", by_key_alone=True)
    source = memory(PICTURE, PACKED, wanted, action=base.NO_ACTION)
    keys = {"tool_position": "wanted[0:3]", "gripper_width": "wanted[3]"}
    task = small(kit, data={"action": keys})
    np.testing.assert_array_equal(first(mapped(source, task)).actions, first(source).observations["wanted"])
    # Values that are called as the task's are not taken from it: those of the state are.
    found = first(mapped(source, task)).observations["tool_position"]
    np.testing.assert_array_equal(found, first(source).observations["state"][:, 1:])
    with pytest.raises(RecordingError, match=r"lacks action 'tool_position' .* it has .*wanted \(4,\); name the key"):
        mapped(source, small(kit))


def test_a_rate_that_nobody_says_is_that_of_the_task(kit):
    assert mapped(memory(PICTURE, PACKED, rate_hz=None), small(kit)).contents.rate_hz == 10


def test_what_the_task_does_not_name_is_said(kit):
    source = memory(PICTURE, PACKED, Column("contacts", (1,), "float32"))
    assert mapped(source, small(kit)).contents.left == ("the task does not name contacts",)


def arm_task(kit, **data):
    observation = [{"name": "arm", "kind": "joints", "shape": [3]}, {"name": "grip", "kind": "gripper"}]
    return small(kit, observation=observation, action=observation, data=data or None)


def robot(most):
    """A data set whose arm and gripper reach ``most``."""
    names = ("arm.0", "arm.1", "arm.2", "grip")
    state, action = (Column(name, (4,), "float32", names=names) for name in ("state", "action"))
    rows = np.linspace(0, 1, ROWS)[:, None] * np.array(most, np.float32)
    return Memory([state], action, {"state": rows, "action": rows})


def test_values_that_are_commanded_in_another_order_are_refused_until_they_are_listed(kit):
    names = ("pan", "lift", "roll", "grip")
    rows = np.tile(np.float32([0.1, 0.2, 0.3, 0.04]), (ROWS, 1))
    state = Column("state", (4,), "float32", names=names)
    action = Column("action", (4,), "float32", names=(*names[2::-1], "grip"))
    source = Memory([state], action, {"state": rows, "action": rows[:, [2, 1, 0, 3]]})
    whole = {"observation": {"arm": "state[0:3]", "grip": "state[3]"}}
    with pytest.raises(RecordingError, match="'arm' is observed as pan, lift, roll and commanded as roll, lift, pan"):
        mapped(source, arm_task(kit, **whole, action={"arm": "action[0:3]", "grip": "action[3]"}))
    listed = arm_task(kit, **whole, action={"arm": "action[pan, lift, roll]", "grip": "action[3]"})
    found = first(mapped(source, listed))
    np.testing.assert_array_equal(found.actions[:, :3], found.observations["arm"])


def test_joints_of_another_order_than_the_task_names_are_refused_until_they_are_listed(kit):
    names = ("pan", "lift", "roll", "grip")
    rows = np.tile(np.float32([0.1, 0.2, 0.3, 0.04]), (ROWS, 1))
    both = [Column(name, (4,), "float32", names=names) for name in ("state", "action")]
    source = Memory([both[0]], both[1], {"state": rows, "action": rows})
    arm = {"name": "arm", "kind": "joints", "shape": [3], "names": ["lift", "pan", "roll"]}
    features = {name: [arm, {"name": "grip", "kind": "gripper"}] for name in ("observation", "action")}

    def task(key):
        at = {"observation": "state", "action": "action"}
        return small(kit, **features, data={name: {"arm": f"{it}{key}", "grip": f"{it}[3]"} for name, it in at.items()})

    said = "'arm' is lift, pan, roll in the task file and pan, lift, roll in the data set; valid is one order: list the"
    with pytest.raises(RecordingError, match=said):
        mapped(source, task("[0:3]"))
    found = first(mapped(source, task("[lift, pan, roll]")))
    np.testing.assert_allclose(found.observations["arm"][0], [0.2, 0.1, 0.3], atol=1e-6)
    np.testing.assert_allclose(found.actions[0, :3], [0.2, 0.1, 0.3], atol=1e-6)


def test_units_of_others_become_rad_and_m(kit):
    task = arm_task(kit, unit={"arm": "deg", "grip": "percent"})
    found = first(mapped(robot([90, -90, 45, 100]), task))
    np.testing.assert_allclose(found.observations["arm"][-1], [np.pi / 2, -np.pi / 2, np.pi / 4])
    np.testing.assert_allclose(found.actions[-1, :3], [np.pi / 2, -np.pi / 2, np.pi / 4])
    np.testing.assert_allclose(found.actions[:, 3], np.linspace(0, task.limits.gripper_max, ROWS))
    millimetres = arm_task(kit, unit={"arm": "deg", "grip": "mm"})
    np.testing.assert_allclose(first(mapped(robot([90, 0, 0, 70]), millimetres)).observations["grip"][-1], 0.07)
    shares = arm_task(kit, unit={"arm": "deg", "grip": "fraction"})
    np.testing.assert_allclose(first(mapped(robot([90, 0, 0, 0.5]), shares)).observations["grip"][-1], 0.04)
    assert mapped(robot([0, 0, 0, 0]), task).contents.notes == ("'arm' is read in deg", "'grip' is read in percent")


def test_joints_in_another_unit_are_refused_before_training(kit):
    task = arm_task(kit)
    said = r"episode 0: 'arm' reaches 90; joints are in rad, at most 2 pi: .* unit: {arm: deg}"
    with pytest.raises(RecordingError, match=said):
        first(mapped(robot([90, 0, 0, 0.05]), task))
    meant = arm_task(kit, unit={"arm": "rad", "grip": "m"})
    assert first(mapped(robot([90, 0, 0, 1]), meant)).actions[-1].tolist() == [90, 0, 0, 1]


def test_an_opening_in_another_unit_is_said(kit, caplog):
    first(mapped(robot([1, 0, 0, 1]), arm_task(kit)))
    assert "'grip' reaches 1; an opening is in m, of this task at most 0.08: name its unit" in caplog.messages[0]
    assert "unit: {grip: fraction}" in caplog.messages[0]


@pytest.mark.parametrize(
    ("kind", "most", "said"),
    [
        ("gripper", 100, "'grip' reaches 100; an opening is in m, of this task at most 0.08: .* unit: {grip: percent}"),
        ("gripper", 12, "'grip' reaches 12; an opening is in m"),
        ("position", 450, "'grip' reaches 450; positions are in m, at most 10: .* unit: {grip: mm}"),
    ],
)
def test_openings_and_positions_that_no_arm_has_are_refused_before_training(kit, kind, most, said):
    task = arm_task(kit)
    shape = (3,) if kind == "position" else (1,)
    odd = [replace(item, kind=kind, shape=shape) if item.name == "grip" else item for item in task.observation]
    names = ("arm.0", "arm.1", "arm.2", *(f"grip.{number}" for number in range(shape[0])))
    state, action = Column("state", (len(names),), "float32", names=names), Column("action", (4,), "float32")
    rows = np.zeros((ROWS, len(names)), np.float32)
    rows[3, 3] = most
    source = Memory([state], replace(action, names=(*names[:3], "grip")), {"state": rows, "action": rows[:, :4] * 0})
    with pytest.raises(RecordingError, match=f"episode 0: {said}"):
        first(mapped(source, replace(task, observation=tuple(odd))))


def test_a_data_set_of_degrees_is_not_trained(kit):
    task = arm_task(kit)
    rows = np.full((4, 3), 90.0)
    dataset = Dataset(
        {"arm": rows, "grip": np.zeros((4, 1))}, np.zeros((4, 4)), np.arange(4), np.array([4]), ("",),
        np.zeros(1, np.uint64), task.name, task.signature(),
    )  # fmt: skip
    with pytest.raises(RecordingError, match="data set: 'arm' reaches 90; joints are in rad, at most 2 pi"):
        dataset.validate(task)
    dataset.validate(arm_task(kit, unit={"arm": "rad"}))
    dataset.observations["arm"][:], dataset.observations["grip"][:] = 0.0, 60.0
    with pytest.raises(RecordingError, match="data set: 'grip' reaches 60; an opening is in m"):
        dataset.validate(task)


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ({"arm": "furlong"}, "unit of 'arm' is 'furlong'; valid for joints are rad, deg"),
        ({"arm": "percent"}, "unit of 'arm' is 'percent'; valid for joints are rad, deg"),
        ({"leg": "deg"}, "data: unit names 'leg', which the task lacks; valid are arm, grip"),
    ],
)
def test_a_unit_that_nobody_knows_is_refused(kit, unit, said):
    with pytest.raises(TaskError, match=said):
        arm_task(kit, unit=unit)
