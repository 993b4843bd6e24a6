import copy as copying
import hashlib
import shutil
from dataclasses import MISSING, fields, replace

import numpy as np
import pytest
import yaml
from tiny_bundle import make_tiny_bundle, write_manifest

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.task import load_task
from bid_ros.decoding import feature_weights
from bid_ros.policy.bundle import Manifest, bundle_sha256, load_bundle
from bid_ros.policy.decide import bundle_decoder
from bid_ros.policy.registry import load_policy


@pytest.fixture
def copy(tiny, tmp_path):
    """A bundle that a test may damage."""
    return shutil.copytree(tiny, tmp_path / "bundle")


def edit(folder, change):
    manifest = yaml.safe_load((folder / "bundle.yaml").read_text())
    change(manifest)
    write_manifest(folder, manifest)


def refused(folder, task, match):
    with pytest.raises(BundleError, match=match) as caught:
        load_bundle(folder, task)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_whole_bundle_loads(tiny, task):
    bundle = load_bundle(tiny, task)
    assert bundle.name == "tiny"
    assert bundle.strong["encoder"] == tiny / "strong_encoder.onnx"
    assert bundle.weak is not None
    assert set(bundle.observation) == {"tool_position", "tool_rotation", "gripper_width"}
    np.testing.assert_array_equal(bundle.action.minimum[:3], task.limits.workspace_min)
    np.testing.assert_array_equal(bundle.action_spread, [0.1] * 10)
    assert bundle.settings.sampling_steps == 8
    assert bundle.settings.spacing == "trailing"
    assert bundle.sha256 == bundle_sha256(tiny) == hashlib.sha256((tiny / "bundle.yaml").read_bytes()).hexdigest()


def test_a_bundle_may_have_no_weak_policy(tmp_path, task):
    assert load_bundle(make_tiny_bundle(tmp_path / "b", task, weak=False), task).weak is None


def test_limits_may_change_without_another_bundle(tiny, task):
    load_bundle(tiny, replace(task, limits=replace(task.limits, max_speed=0.1), description="slower"))


def test_missing_folder(tmp_path, task):
    refused(tmp_path / "none", task, "does not exist")
    with pytest.raises(BundleError, match="does not exist"):
        bundle_sha256(tmp_path / "none")


def test_missing_manifest(tmp_path, task):
    refused(tmp_path, task, r"has no readable bundle\.yaml")


def test_missing_file(copy, task):
    (copy / "weak_denoiser.onnx").unlink()
    refused(copy, task, r"file weak_denoiser\.onnx is missing")


def test_one_changed_bit_is_found(copy, task):
    path = copy / "strong_encoder.onnx"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    refused(copy, task, r"file strong_encoder\.onnx is damaged")


def described(**space):
    """Return a change of a manifest: to one of format 2, of the same networks, which now count in millimetres."""

    def change(data):
        vectors = data["normalisation"]["observation"]
        for part in (vectors["tool_position"], data["normalisation"]["action"]):
            for end in ("minimum", "maximum"):
                part[end][:3] = [1000 * value for value in part[end][:3]]
        parts = [
            {"feature": "tool_position", "scale": 0.001},
            {"feature": "tool_rotation"},
            {"feature": "gripper_width"},
        ]
        inputs = [{"name": part["feature"], "columns": [part]} for part in parts]
        inputs += [{"name": name, "camera": name} for name in ("third_person", "wrist")]
        data.update(format=2, space={"observation": inputs, "action": parts, **space})

    return change


def test_manifest_that_is_no_yaml(copy, task):
    (copy / "bundle.yaml").write_text("format: [1")
    refused(copy, task, "is not valid YAML")
    (copy / "bundle.yaml").write_bytes(b"\xff\xfe\x00\x01\x80")
    refused(copy, task, "bundle.yaml")


@pytest.mark.parametrize("field", [item.name for item in fields(Manifest) if item.default is MISSING] + ["diffusion"])
def test_a_missing_field_is_named(copy, task, field):
    edit(copy, lambda data: data.pop(field))
    refused(copy, task, f"the field '{field}' is missing")


def test_an_unknown_field_is_named(copy, task):
    edit(copy, lambda data: data.update(colour="red"))
    refused(copy, task, "unknown field 'colour'")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d.update(format=3), "format is 3; valid is a whole number from 1 to 2"),
        (lambda d: d.update(action_reference="world"), "action_reference is 'world'; valid is one of base, tool"),
        (lambda d: d.update(action_reference=["tool"]), "action_reference is .*; valid is one of base, tool"),
        (lambda d: d.update(task="ur_pick"), "another task: task is 'ur_pick', the task file says 'franka_place'"),
        (lambda d: d.update(horizon=8), "horizon is 8, the task file says 16"),
        (lambda d: d.update(action_dim=7), "action_dim is 7"),
        (lambda d: d.update(observation_steps=1), "observation_steps is 1"),
        (lambda d: d.update(task_signature="0" * 64), "another version of task 'franka_place'"),
        (lambda d: d.update(action_spread=[0.1] * 9), "action_spread has 9 numbers; valid are 10"),
        (
            lambda d: d.update(action_spread=[0.1] * 9 + [-1.0]),
            "action_spread.9. is -1.0; valid is a number, 0 or more",
        ),
        (lambda d: d["normalisation"]["action"].update(maximum=[0.0] * 10), "'action': .*minimum < maximum"),
        (
            lambda d: d["normalisation"]["action"].update(maximum=[[1.0] * 10] * 3),
            "action.: maximum has the shape .3, 10.; valid is .10,. or .16, 10.",
        ),
        (
            lambda d: d["normalisation"]["action"].update(maximum=[[1.0] * 9] * 16),
            "maximum has the shape .16, 9.; valid is",
        ),
        (
            lambda d: d["normalisation"]["observation"].pop("gripper_width"),
            "has tool_position, tool_rotation; the task.s vectors are tool_position, tool_rotation, gripper_width",
        ),
        (lambda d: d["normalisation"]["action"].update(maximum=[[1.0] * 10] * 15 + [[1.0]]), "shape rows of"),
        (
            lambda d: d["graphs"]["strong"].update(tail="strong_encoder.onnx"),
            "graphs.strong has encoder, denoiser, tail",
        ),
        (
            lambda d: d["normalisation"]["observation"].update(force=1),
            "normalisation.observation.force is 1; valid is a mapping",
        ),
        (lambda d: d["diffusion"].pop("prediction"), "diffusion: the field 'prediction' is missing"),
        (lambda d: d["diffusion"].update(eta=1.0), "diffusion: unknown field 'eta'"),
        (lambda d: d["diffusion"].update(sampling_steps=0), "sampling_steps is 0"),
        (lambda d: d["diffusion"].update(clip="one"), "clip is 'one'"),
        (lambda d: d["graphs"].pop("weak"), "graphs: the field 'weak' is missing"),
        (lambda d: d["graphs"].update(strong=None), "graphs.strong is None; valid is a mapping"),
        (lambda d: d["graphs"]["strong"].update(encoder="other.onnx"), "graphs.strong.encoder is 'other.onnx'"),
        (lambda d: d.update(name=3), "name is 3; valid is a text"),
        (lambda d: d["files"].update({"../secret": "0"}), "names '../secret'"),
        (lambda d: d["files"].update({"weak_encoder.onnx": "0"}), "weak_encoder.onnx is damaged"),
    ],
)
def test_impossible_values_are_named(copy, task, change, match):
    edit(copy, change)
    refused(copy, task, match)


def test_another_version_of_the_task_is_refused(tiny, task):
    refused(tiny, replace(task, rate_hz=20.0), "another version of task")


def places(node, trail=()):
    for key, value in node.items():
        yield (*trail, key)
        if isinstance(value, dict):
            yield from places(value, (*trail, key))


@pytest.mark.parametrize("junk", [None, -1.5, "text", [], [1, [2]], {}, {"a": 1}, True, float("nan")], ids=repr)
def test_junk_anywhere_is_an_error_of_ours(copy, task, junk):
    original = yaml.safe_load((copy / "bundle.yaml").read_text())
    free = {("name",), ("provenance",), ("provenance", "command")}
    for place in [place for place in places(original) if place not in free]:
        if place in (("graphs", "weak"), ("diffusion", "clip")) and junk is None:
            continue  # what a bundle without a weak policy says, and one that clips nothing
        manifest = node = copying.deepcopy(original)
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = junk
        write_manifest(copy, manifest)
        with pytest.raises(BundleError):
            load_bundle(copy, task)


def test_a_space_is_read(copy, task, policy, observe):
    edit(copy, described())
    bundle = load_bundle(copy, task)
    assert bundle.space is not None and bundle.history(task) == (2, 100_000_000)
    same = load_policy(bundle, task, "onnx")
    wanted = policy.sample(policy.encode(observe()), 3, 2, np.random.default_rng(0))
    found = same.sample(same.encode(observe()), 3, 2, np.random.default_rng(0))
    for one, two in zip(wanted, found, strict=True):
        np.testing.assert_allclose(two, one, atol=5e-6)
    assert same.capabilities.starts and not same.capabilities.gradients  # as runtime onnx has none


def test_a_space_may_want_more_steps(copy, task):
    edit(copy, described(observation_steps=5, past_rows=1))
    with pytest.raises(BundleError, match=r"input 'tool_position' is .*; valid is .* .5, 3."):
        load_policy(load_bundle(copy, task), task, "onnx")  # the graphs still want two steps
    assert load_bundle(copy, task).history(task) == (5, 100_000_000)


def test_no_decoder_leads_joints(root, tmp_path):
    task = load_task(root / "config" / "joints" / "franka_place" / "task.yaml")
    bundle = load_bundle(make_tiny_bundle(tmp_path / "joints", task), task)
    assert bundle_decoder("bid", bundle, task, 8, 1).name == "bid"
    with pytest.raises(DecodingError, match=r"'bid.lead' moves a commanded position on, but .* commands joints"):
        bundle_decoder("bid+lead", bundle, task, 8, 1)
    lift = load_task(root / "config" / "lift.yaml")  # its gripper is of the kind joints, and its tool has a position
    bundle = load_bundle(make_tiny_bundle(tmp_path / "lift", lift), lift)
    assert bundle_decoder("bid+lead", bundle, lift, 8, 1).name == "bid+lead"


def test_weights_of_features_are_read(copy, task):
    edit(copy, lambda data: data.update(format=2, action_weights={"tool_rotation": 0.25, "gripper_width": 0}))
    bundle = load_bundle(copy, task)
    assert bundle.action_weights == {"tool_rotation": 0.25, "gripper_width": 0.0}
    plain = feature_weights(bundle.action_spread, [3, 6, 1])
    decoder = bundle_decoder("bid", bundle, task, 8, 1)
    np.testing.assert_allclose(decoder._config.weights, np.array(plain) * ([1] * 3 + [0.25] * 6 + [0]))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: (described()(d), d.update(format=1)), "format is 1, which has no 'space'; valid is 2"),
        (lambda d: d.update(action_weights={"tool_position": 2.0}), "format is 1, which has no 'action_weights'"),
        (lambda d: (described()(d), d.update(action_reference="tool")), "action_reference is 'tool' beside a space"),
        (lambda d: d.update(format=2, action_weights={"arm": 1.0}), "action_weights names 'arm'; valid are the task's"),
        (lambda d: d.update(format=2, action_weights={"tool_position": -1.0}), "tool_position is -1.0; valid is a num"),
        (
            lambda d: d.update(
                format=2, action_weights={"tool_position": 0.0, "tool_rotation": 0.0, "gripper_width": 0.0}
            ),
            "action_weights are all 0",
        ),
        (described(horizon=15), "the network's rows reach 1.3 s ahead; valid is the 1.4 s"),
        (described(colour="red"), "space: unknown field 'colour'; valid are observation, action"),
        (
            described(action=[{"feature": "tool_position"}]),
            "space.action does not say where 'tool_rotation' comes from",
        ),
        (
            described(observation=[{"name": "a", "camera": "roof"}]),
            "'a' has camera 'roof'; the task's are third_person",
        ),
        (
            described(observation=[{"name": "state", "columns": [{"feature": "tool_position"}]}]),
            "has tool_position, tool_rotation, gripper_width; the network's vectors are state",
        ),
        (
            described(
                action=[
                    {"feature": "tool_position"},
                    {"feature": "tool_rotation", "form": "quaternion_xyzw"},
                    {"feature": "gripper_width"},
                ]
            ),
            r"'action': minimum has the shape .10,.; valid is .8,. or .16, 8.",
        ),
    ],
)
def test_a_space_that_does_not_fit_is_named(copy, task, change, match):
    edit(copy, change)
    refused(copy, task, match)
