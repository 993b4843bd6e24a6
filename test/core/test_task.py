import copy

import pytest
import yaml

from bid_ros.core.errors import TaskError
from bid_ros.core.feature import SOURCE, Feature
from bid_ros.core.limits import Limits
from bid_ros.core.task import load_task, parse_task

DISTANCES = {"name": "front", "kind": "image", "shape": [96, 96, 1], "depth": [0.1, 2.0]}


@pytest.fixture
def content(root):
    return yaml.safe_load((root / "config" / "franka_place" / "task.yaml").read_text())


def test_the_shipped_task_says_what_it_should(root):
    task = load_task(root / "config" / "franka_place" / "task.yaml")
    assert (task.name, task.dt_ns, task.action_dim, task.horizon) == ("franka_place", 100_000_000, 10, 16)
    assert [item.name for item in task.cameras] == ["third_person", "wrist"]
    assert [item.name for item in task.vectors] == ["tool_position", "tool_rotation", "gripper_width"]
    assert [task.columns(kind) for kind in ("position", "rotation_6d", "gripper", "joints")] == [
        slice(0, 3),
        slice(3, 9),
        slice(9, 10),
        None,
    ]
    assert task.cameras[0].size == 96 * 96 * 3


def test_the_bench_task_commands_points_in_the_plane(root):
    task = load_task(root / "config" / "pusht.yaml")
    assert (task.name, task.dt_ns, task.action_dim, task.horizon) == ("pusht", 100_000_000, 2, 16)
    assert [(item.name, item.size) for item in task.vectors] == [("block_keypoints", 18), ("agent_position", 2)]
    assert (task.cameras, task.columns("points"), task.columns("position")) == ((), slice(0, 2), None)


def test_frames_take_a_prefix_and_nothing_else_changes(root):
    task = load_task(root / "config" / "franka_place" / "task.yaml")
    prefixed = task.with_frame_prefix("left/")
    assert (prefixed.base_frame, prefixed.tool_frame) == ("left/base", "left/tool")
    assert {item.frame for item in (*prefixed.observation, *prefixed.action)} == {"left/base"}
    assert (prefixed.limits, prefixed.columns("gripper")) == (task.limits, task.columns("gripper"))
    assert task.with_frame_prefix("") == task


def change(content, path, value):
    *parents, last = path
    for key in parents:
        content = content[key]
    if value is DELETE:
        del content[last]
    else:
        content[last] = value


DELETE = "nothing is left of it"
NAN, INF = float("nan"), float("inf")
FORCE = {
    "name": "force",
    "kind": "vector",
    "topic": "/ft_sensor/wrench",
    "type": "geometry_msgs/msg/WrenchStamped",
    "field": "wrench.force",
    "shape": [3],
    "rate_hz": 100,
}
BAD = [
    # unknown fields
    (("speed_limit",), 3, ["unknown field 'speed_limit'", "rate_hz"]),
    (("limits", "max_sped"), 0.5, ["limits", "'max_sped'", "max_speed"]),
    (("action", 0, "unit"), "m", ["action[tool_position]: unknown field 'unit'"]),
    (("observation", 0, "fps"), 10, ["observation[third_person]: unknown field 'fps'; valid are name"]),
    (("start", "tool"), [0, 0, 0], ["start: unknown field 'tool'; valid are tool_min, tool_max"]),
    ((7,), 1, ["'7'"]),
    # missing fields
    (("name",), DELETE, ["the field 'name' is missing; valid are name, robot"]),
    (("horizon",), DELETE, ["the field 'horizon' is missing"]),
    (("limits",), DELETE, ["limits"]),
    (("action",), DELETE, ["action"]),
    (("observation",), DELETE, ["observation"]),
    (("limits", "workspace_min"), DELETE, ["limits: the field 'workspace_min' is missing"]),
    (("action", 0, "kind"), DELETE, ["action[tool_position]: the field 'kind' is missing"]),
    (("action", 0, "name"), DELETE, ["action[0]: the field 'name' is missing"]),
    (("observation", 0, "shape"), DELETE, ["'third_person' of kind 'image' has shape ()"]),
    (("start", "tool_min"), DELETE, ["start"]),
    # impossible limits
    (("limits", "max_speed"), 0, ["limits.max_speed is 0; valid is a number above 0"]),
    (("limits", "max_speed"), -1.0, ["max_speed is -1.0"]),
    (("limits", "max_jerk"), INF, ["max_jerk is inf"]),
    (("limits", "max_acceleration"), NAN, ["max_acceleration is nan"]),
    (("limits", "max_chunk_age"), 0.0, ["max_chunk_age is 0.0"]),
    (("limits", "workspace_min"), [0.8, -0.3, 0.0], ["workspace x runs from 0.8 to 0.7"]),
    (("limits", "workspace_max"), [0.7, 0.3, INF], ["limits.workspace_max[2] is inf; valid is a number"]),
    (("limits", "workspace_min"), [NAN, -0.3, 0.0], ["limits.workspace_min[0] is nan"]),
    (("limits", "gripper_max"), 0.0, ["gripper 0.0 to 0.0"]),
    (("limits", "gripper_max"), 8.0, ["limits.gripper_max is 8.0", "from 0 to 0.2"]),
    (("limits", "gripper_min"), -0.01, ["limits.gripper_min is -0.01"]),
    # impossible values
    (("rate_hz",), 0, ["rate_hz is 0", "1 to 100"]),
    (("rate_hz",), NAN, ["rate_hz is nan"]),
    (("observation_steps",), 0, ["observation_steps is 0"]),
    (("horizon",), 1, ["horizon is 1", "at least observation_steps 2"]),
    (("episode_timeout",), 0.0, ["episode_timeout is 0.0"]),
    (("action", 0, "kind"), "velocity", ["kind is 'velocity'", "position, rotation_6d"]),
    (("action", 0), {"name": "look", "kind": "image", "shape": [2, 2, 3]}, ["action 'look' has kind 'image'"]),
    (("action", 0, "frame"), "camera", ["'camera'", "base frame 'base'"]),
    (("action", 1, "name"), "tool_position", ["different names"]),
    (("action", 0, "shape"), [4], [r"(4,)", r"(3,)"]),
    (("observation", 0, "shape"), [96, 96], ["(height, width, 3)"]),
    (("observation", 0, "shape"), [96, 0, 3], ["observation[third_person].shape[1] is 0", "whole number, 1 or more"]),
    (("observation", 0, "rate_hz"), 0, ["observation[third_person].rate_hz is 0", "0.1 to 1000"]),
    (("action",), [], ["action is []; valid is a list of 1 or more entries"]),
    (("action", 0), {"name": "target", "kind": "points"}, ["'target' of kind 'points' has shape ()"]),
    (("action", 0), {"name": "target", "kind": "points", "shape": [3]}, ["'target'", "(3,)", "an even number"]),
    (("action", 0), {"name": "target", "kind": "points", "shape": [0]}, ["action[target].shape[0] is 0"]),
    (("action", 0), {"name": "target", "kind": "points", "shape": [2, 2]}, ["'target'", "(2, 2)"]),
    (("action", 0), {"name": "arm", "kind": "joints", "shape": [2, 3]}, ["'arm' of kind 'joints' has shape (2, 3)"]),
    (("action", 0, "topic"), "ft", ["'tool_position' of kind 'position' has topic 'ft'; valid is none: only kind"]),
    (
        ("observation", 4, "field"),
        "width",
        ["'gripper_width' of kind 'gripper' has field 'width'", "only kind 'vector'"],
    ),
    (("observation", 0, "type"), "sensor_msgs/msg/Image", ["'third_person' of kind 'image' has type"]),
    (
        ("observation", 4),
        {**FORCE, "topic": "ft sensor"},
        ["'force' of kind 'vector' has topic 'ft sensor'", "letters"],
    ),
    (("observation", 4), {**FORCE, "topic": "ft//wrench"}, ["has topic 'ft//wrench'"]),
    (("observation", 4), {**FORCE, "topic": "/"}, ["has topic '/'"]),
    (("observation", 4), {**FORCE, "topic": "kraft/größe"}, ["has topic 'kraft/größe'"]),
    (("observation", 4), {**FORCE, "topic": "x" * 145}, ["up to 144 letters"]),
    (("observation", 4), {**FORCE, "topic": 3}, ["observation[force].topic is 3; valid is a text"]),
    (
        ("observation", 4),
        {**FORCE, "type": "WrenchStamped"},
        ["type 'WrenchStamped'", "geometry_msgs/msg/WrenchStamped"],
    ),
    (("observation", 4), {**FORCE, "field": "wrench..force"}, ["field 'wrench..force'", "a path of field names"]),
    (("observation", 4), {**FORCE, "shape": [3, 1]}, ["'force' of kind 'vector' has shape (3, 1); valid is (n,)"]),
    *((("observation", 4), {**FORCE, name: ""}, [f"'force' of kind 'vector' has no {name}"]) for name in SOURCE),
    (("action", 2), FORCE, ["action 'force' has kind 'vector'; valid are position"]),
    (("start", "tool_min"), [0.6, -0.15, 0.28], ["start: x runs from 0.6 to 0.55"]),
    (("start", "tool_max"), [0.55, 0.15, 0.9], ["start: z", "workspace"]),
    (("start", "tool_max"), [0.55, 0.15], ["start.tool_max is [0.55, 0.15]", "3 numbers"]),
    # wrong types
    (("name",), 7, ["name is 7", "a text"]),
    (("rate_hz",), "fast", ["rate_hz is 'fast'", "a number"]),
    (("rate_hz",), True, ["rate_hz is True"]),
    (("rate_hz",), [10], ["rate_hz is [10]"]),
    (("horizon",), 16.5, ["horizon is 16.5", "a whole number"]),
    (("observation_steps",), 2.0, ["observation_steps is 2.0"]),
    (("limits",), [1, 2], ["limits is [1, 2]", "a mapping"]),
    (("limits", "max_speed"), None, ["max_speed is None"]),
    (("limits", "max_speed"), [0.5, 0.5], ["max_speed is [0.5, 0.5]"]),
    (("limits", "workspace_min"), 0.3, ["workspace_min is 0.3", "3 numbers"]),
    (("limits", "workspace_min"), [0.3, -0.3], ["workspace_min is [0.3, -0.3]", "3 numbers"]),
    (("limits", "workspace_min"), [0.3, "a", 0.0], ["workspace_min"]),
    (("action",), "tool", ["action is 'tool'", "a list"]),
    (("action", 0), "tool", ["action[0] is 'tool'", "a mapping"]),
    (("action", 0, "kind"), ["position"], ["kind is ['position']", "valid is one of image, position"]),
    (("observation", 0, "shape"), 96, ["shape is 96", "whole numbers"]),
    (("observation", 0, "shape"), [96.5, 96, 3], ["shape[0] is 96.5", "a whole number"]),
    (("observation", 0, "depth"), [0.1, 2.0], ["shape (96, 96, 3)", "valid is (height, width, 1)"]),
    (("observation", 0), DISTANCES | {"depth": [2.0, 0.1]}, ["has depth [2.0, 0.1]", "a larger one up to 65.535 m"]),
    (("observation", 0), DISTANCES | {"depth": [0.1, 70]}, ["has depth [0.1, 70.0]", "up to 65.535 m"]),
    (("observation", 2, "depth"), [0.1, 2.0], ["kind 'position' has depth", "of an image"]),
    (("start",), [0.4, 0.1, 0.3], ["start is", "a mapping"]),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD, ids=lambda item: str(item)[:40])
def test_each_bad_task_file_gets_one_clear_sentence(content, tmp_path, path, value, words):
    bad = copy.deepcopy(content)
    change(bad, path, value)
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(bad))
    with pytest.raises(TaskError) as error:
        load_task(file)
    message = str(error.value)
    assert str(file) in message and "\n" not in message
    for word in words:
        assert word in message


def test_a_missing_file_a_folder_and_what_is_no_yaml_are_refused(tmp_path):
    with pytest.raises(TaskError, match=r"none\.yaml does not exist"):
        load_task(tmp_path / "none.yaml")
    with pytest.raises(TaskError, match="cannot be read"):
        load_task(tmp_path)
    for index, text in enumerate((b"name: [1", b"\xff\xfe\x00bad", b"a: b: c")):
        file = tmp_path / f"{index}.yaml"
        file.write_bytes(text)
        with pytest.raises(TaskError, match="not valid YAML") as error:
            load_task(file)
        assert "\n" not in str(error.value)
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    with pytest.raises(TaskError, match="the content is None; valid is a mapping"):
        load_task(empty)


@pytest.mark.parametrize("path", [("start",), ("description",), ("tool_frame",), ("limits", "max_jerk")])
def test_optional_fields_have_defaults(content, path):
    change(content, path, DELETE)
    assert parse_task(content).limits.max_jerk == 200.0


def test_safety_limits_are_on_by_default(content):
    content["limits"] = {key: content["limits"][key] for key in ("workspace_min", "workspace_max")}
    limits = parse_task(content).limits
    values = [value for name, value in vars(limits).items() if name.startswith("max_")]
    assert len(values) >= 9 and all(0 < value < 1000 for value in values)


def test_the_signature_covers_what_a_policy_depends_on_and_nothing_else(content):
    signature = parse_task(content).signature()
    for path, value in (
        (("rate_hz",), 20),
        (("horizon",), 17),
        (("observation_steps",), 3),
        (("observation", 0, "shape"), [64, 96, 3]),
        (("action", 0, "name"), "tool"),
        (("name",), "other"),
    ):
        other = copy.deepcopy(content)
        change(other, path, value)
        assert parse_task(other).signature() != signature, path
    for path, value in ((("limits", "max_speed"), 0.1), (("description",), "x"), (("episode_timeout",), 5.0)):
        other = copy.deepcopy(content)
        change(other, path, value)
        assert parse_task(other).signature() == signature, path


@pytest.mark.parametrize("joints", [1, 6, 7, 14])
def test_joints_may_be_any_number_and_are_seven_unless_the_task_says(content, joints):
    content["observation"] += [{"name": "joint_positions", "kind": "joints", "shape": [joints]}]
    assert parse_task(content).vectors[-1].size == joints
    del content["observation"][-1]["shape"]
    assert parse_task(content).vectors[-1].shape == (7,)


def test_the_source_of_a_vector_is_in_the_signature_and_that_of_the_others_is_not(content):
    # The shipped bundles have these signatures.
    assert parse_task(content).signature().startswith("5400d886e70d")
    content["observation"].append(FORCE)
    task = parse_task(content)
    assert (task.vectors[-1].topic, task.vectors[-1].size, task.cameras) == (
        "/ft_sensor/wrench",
        3,
        task.observation[:2],
    )
    others = {task.signature()}
    for name, value in (("topic", "ft"), ("type", "geometry_msgs/msg/AccelStamped"), ("field", "wrench.torque")):
        content["observation"][-1] = {**FORCE, name: value}
        others.add(parse_task(content).signature())
    assert len(others) == 4


def test_values_are_checked_without_a_file_too():
    with pytest.raises(TaskError, match=r"limits: workspace_min is \(0\.0, 0\.0\); valid is a list of 3 numbers"):
        Limits((0.0, 0.0), (1.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="feature: kind is 'force'; valid is one of image, position"):
        Feature("x", "force", (3,))  # type: ignore[arg-type]


def test_the_distances_that_a_policy_sees_are_in_its_signature(content):
    content["observation"][0] = DISTANCES
    task = parse_task(content)
    assert task.cameras[0].dtype == "uint16" and task.cameras[1].dtype == "uint8" and task.vectors[0].dtype == "float64"
    content["observation"][0] = DISTANCES | {"depth": [0.1, 1.0]}
    assert parse_task(content).signature() != task.signature()
