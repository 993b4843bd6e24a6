"""Folders of LeRobot: both layouts of files, and what is wrong with bad ones."""

import json

import numpy as np
import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions, check_same

STATE = {"type": "STATE", "shape": [3]}


def read(path, **options):
    return read_policy(str(path), ImportOptions(**options))


def equal(one, other):
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_both_layouts_say_the_same(kit, tmp_path):
    new = read(kit.write_lerobot(tmp_path / "new"))
    old = read(kit.write_lerobot(tmp_path / "old", "buffers"))
    assert equal(new.denoiser, old.denoiser)
    for one, other in (
        (new.action, old.action),
        *((new.observation[key], old.observation[key]) for key in new.observation),
    ):
        np.testing.assert_array_equal(one.minimum, other.minimum)
        np.testing.assert_array_equal(one.maximum, other.maximum)
    np.testing.assert_allclose(new.action_spread, [0.4, 0.3], atol=1e-6)
    np.testing.assert_allclose(old.action_spread, 2 / np.sqrt([12, 12]))  # there is no std: an even distribution


def test_a_folder_of_a_checkpoint_and_a_compiled_network_are_read(kit, tmp_path):
    def compiled(tensors):
        return {name.replace("unet.", "unet._orig_mod."): value for name, value in tensors.items()}

    kit.write_lerobot(tmp_path / "last" / "pretrained_model", tensors=compiled)
    assert equal(read(tmp_path / "last").denoiser, read(kit.write_lerobot(tmp_path / "plain")).denoiser)


def test_missing_fields_mean_the_defaults_of_old_versions(kit, tmp_path):
    from bid_ros.importing.lerobot.fields import DiffusionFields

    fields = DiffusionFields()
    assert (fields.horizon, fields.crop_shape, fields.use_group_norm) == (16, (84, 84), True)
    assert not fields.use_separate_rgb_encoder_per_camera
    policy = read(kit.write_lerobot(tmp_path / "new"))
    assert policy.settings.train_steps == 100 and policy.settings.clip == 1.0


def test_a_crop_is_a_share_of_the_resized_image():
    from bid_ros.importing.lerobot.fields import DiffusionFields

    assert DiffusionFields(resize_shape=(100, 120), crop_ratio=0.95).crop == (95, 114)
    assert DiffusionFields(resize_shape=(100, 120)).crop is None


def test_sampling_may_differ_from_the_checkpoint(kit, tmp_path):
    folder = kit.write_lerobot(tmp_path / "policy")
    assert read(folder).settings.sampler == "ddim"
    settings = read(folder, sampler="ddpm", sampling_steps=20).settings
    assert (settings.sampler, settings.sampling_steps) == ("ddpm", 20)
    with pytest.raises(BidError, match=r"sampler is 'rk4'; valid .* are ddim and ddpm"):
        read(folder, sampler="rk4")


def test_a_flow_is_followed_by_its_own_method_or_by_another():
    from bid_ros.importing.lerobot.diffusion import _dit_settings
    from bid_ros.importing.lerobot.fields import DitFields

    fields = DitFields(objective="flow_matching", integration_method="rk4", num_integration_steps=8)
    own = _dit_settings(fields, ImportOptions())
    assert (own.sampler, own.integration, own.sampling_steps, own.calls) == ("flow", "rk4", 8, 32)
    with pytest.raises(BidError, match=r"sampler is 'ddim'; valid for a policy that follows a flow are euler and rk4"):
        _dit_settings(fields, ImportOptions(sampler="ddim"))
    other = _dit_settings(fields, ImportOptions(sampler="euler", sampling_steps=32))
    assert (other.sampler, other.integration, other.calls) == ("flow", "euler", 32)
    for steps in (1, 3, 7, 300, 999):
        assert _dit_settings(fields, ImportOptions(sampling_steps=steps)).sampling_steps == steps


def test_a_constant_action_column_stays_where_it_was(kit, tmp_path):
    def constant(numbers):
        return {**numbers, "action.max": torch.tensor([0.0, 1.0]), "action.min": torch.tensor([0.0, -1.0])}

    policy = read(kit.write_lerobot(tmp_path / "policy", statistics=constant))
    found = policy.action.denormalise([[0.7, 0.5], [-1.0, -1.0]])
    np.testing.assert_allclose(found, [[(0.7 + 1) / 2 * 1e-8, 0.5], [0, -1]], atol=1e-12)
    assert policy.notes == ("action: columns [0] do not change in the training data, nor in what is predicted",)


def drop(name):
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


def put(name, value):
    return lambda tensors: {**tensors, name: torch.as_tensor(value)}


BIAS = "diffusion.unet.final_conv.1.bias"
WRONG = {
    "type": ({"config": {"type": "tdmpc"}}, "config.json: type is 'tdmpc'; valid are act, diffusion"),
    "field": ({"config": {"hidden": 3}}, "config.json has the field 'hidden', which LeRobot 0.1 to 0.6 do not write"),
    "value": ({"config": {"kernel_size": 0}}, "config.json: kernel_size is 0; valid"),
    "choice": ({"config": {"prediction_type": "v"}}, "config.json: prediction_type is 'v'; valid"),
    "horizon": ({"config": {"horizon": 7}}, "config.json: horizon is 7; valid is a multiple of 2"),
    "groups": ({"config": {"n_groups": 3}}, r"config.json: down_dims are \[16, 32\] with n_groups 3; valid"),
    "modes": ({"config": {"normalization_mapping": None}}, "normalization_mapping is None; valid is a mapping"),
    "inputs": ({"config": {"input_features": None}}, "config.json has no mapping 'input_features'; valid"),
    "shape": (
        {"config": {"input_features": {"observation.state": {"type": "STATE", "shape": [3, 1]}}}},
        r"input_features.observation.state of type STATE has shape \[3, 1\]; valid is \[size\]",
    ),
    "state": (
        {"config": {"input_features": {"observation.pose": STATE}}},
        "input_features are observation.pose; valid is 'observation.state' among them",
    ),
    "missing": ({"tensors": drop(BIAS)}, f"model.safetensors lacks the tensor '{BIAS}'; .* shape \\(2,\\)"),
    "extra": ({"tensors": put("diffusion.unet.more", [1.0])}, "has the tensor 'diffusion.unet.more', shape \\(1,\\)"),
    "other": (
        {"tensors": put("model.more", [1.0])},
        "has the tensor 'model.more', which the configuration has no place",
    ),
    "size": ({"tensors": put(BIAS, [1.0])}, f"tensor '{BIAS}' has shape \\(1,\\); by the configuration valid is .*2"),
    "nan": ({"tensors": put(BIAS, [0.0, np.nan])}, f"tensor '{BIAS}' holds a value that is not finite; valid"),
    "statistics": ({"statistics": drop("action.min")}, "'action' lacks its statistic 'min'; valid are 2 numbers"),
    "statistics nan": (
        {"statistics": put("action.max", [np.nan, 1.0])},
        r"'action': its statistic 'max' is \[nan, 1.0\]; valid are finite numbers",
    ),
    "statistics size": (
        {"statistics": put("observation.state.min", [1.0])},
        "'observation.state': its statistic 'min' has 1 numbers; valid are 3",
    ),
    "statistics order": (
        {"statistics": put("action.max", [-1.0, 1.0])},
        "'min' of column 0 is 0.0; valid is up to -1.0",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(kit, tmp_path, case):
    changes, message = WRONG[case]
    with pytest.raises(BidError, match=message) as error:
        read(kit.write_lerobot(tmp_path / "policy", **changes))
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_old_statistics_that_were_never_set_are_refused(kit, tmp_path):
    folder = kit.write_lerobot(tmp_path / "policy", "buffers", statistics=put("action.max", [np.inf, np.inf]))
    with pytest.raises(BidError, match=r"'action': its statistic 'max' is \[inf, inf\]; valid are finite numbers"):
        read(folder)
    with pytest.raises(BidError, match=r"'action' lacks its statistic 'min'"):
        read(kit.write_lerobot(tmp_path / "none", "buffers", statistics=lambda numbers: {}))


def test_an_unknown_step_before_the_network_is_refused(kit, tmp_path):
    folder = kit.write_lerobot(tmp_path / "policy")
    file = folder / "policy_preprocessor.json"
    content = json.loads(file.read_text())
    content["steps"].append({"registry_name": "delta_action_processor", "config": {}})
    file.write_text(json.dumps(content))
    with pytest.raises(BidError, match=r"policy_preprocessor.json has the step 'delta_action_processor'; valid are"):
        read(folder)
    content["steps"].pop()
    content["steps"][1]["config"]["norm_map"] = None
    file.write_text(json.dumps(content))
    with pytest.raises(BidError, match="norm_map of normalizer_processor is None; valid is a mapping"):
        read(folder)
    file.write_text(json.dumps({"steps": content["steps"][:1]}))
    with pytest.raises(BidError, match="has the step 'normalizer_processor' 0 times; valid is once"):
        read(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "policy_postprocessor.json"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"\x00" * 40, b"[1]"])
def test_damaged_files_are_named(kit, tmp_path, name, content):
    folder = kit.write_lerobot(tmp_path / "policy")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(BidError, match=name) as error:
        read(folder)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_not_here_is_named(kit, tmp_path):
    with pytest.raises(BidError, match=r"^lerobot/diffusion_pusht is no folder; valid is one on this computer"):
        read("lerobot/diffusion_pusht")
    folder = kit.write_lerobot(tmp_path / "policy")
    content = json.loads((folder / "config.json").read_text())
    content.pop("type")
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(BidError, match=r"config.json has no field 'type'; valid is one of act, diffusion"):
        read(folder)


def test_a_missing_statistic_is_missed_in_its_file(kit, tmp_path):
    state = "policy_preprocessor_step_0_normalizer_processor.safetensors: 'observation.state' lacks its statistic 'min'"
    with pytest.raises(BidError, match=state):
        read(kit.write_lerobot(tmp_path / "new", statistics=drop("observation.state.min")))
    weights = r"model.safetensors \(for there is no policy_preprocessor.json\): 'action' lacks its statistic 'min'"
    with pytest.raises(BidError, match=weights):
        read(kit.write_lerobot(tmp_path / "old", "buffers", statistics=lambda numbers: {}))


def test_a_weak_policy_is_of_the_same_training(kit, tmp_path):
    strong = read(kit.write_lerobot(tmp_path / "strong"))
    check_same(strong, read(kit.write_lerobot(tmp_path / "weak", seed=1)))
    other = read(kit.write_lerobot(tmp_path / "steps", config={"num_inference_steps": 5}))
    with pytest.raises(
        BidError, match=r"steps is no earlier checkpoint of .*strong: its settings sampling_steps is 5; valid is 2"
    ):
        check_same(strong, other)
    other = read(kit.write_lerobot(tmp_path / "data", statistics=put("action.max", [3.0, 1.0])))
    with pytest.raises(BidError, match=r"data is no earlier checkpoint of .*strong: the statistics of 'action' differ"):
        check_same(strong, other)
