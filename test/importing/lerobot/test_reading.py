"""Folders of LeRobot: both layouts of files, and what is wrong with bad ones."""

import json

import numpy as np
import pytest
import torch
from importing.conftest import same_weights
from safetensors.torch import load_file, save_file

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions, check_same
from bid_ros.importing.write_bundle import write_imported

STATE = {"type": "STATE", "shape": [3]}


def read(path, **options):
    return read_policy(str(path), ImportOptions(**options))


def test_both_layouts_say_the_same(kit, tmp_path):
    new = read(kit.write_lerobot(tmp_path / "new"))
    old = read(kit.write_lerobot(tmp_path / "old", "buffers"))
    assert same_weights(new.denoiser, old.denoiser)
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
    assert same_weights(read(tmp_path / "last").denoiser, read(kit.write_lerobot(tmp_path / "plain")).denoiser)


def test_a_whole_training_suggests_its_last_checkpoint(kit, tmp_path):
    for name in ("005000", "010000"):
        kit.write_lerobot(tmp_path / "run" / "checkpoints" / name / "pretrained_model")
    inside = tmp_path / "run" / "checkpoints"
    for folder in (tmp_path / "run", inside):
        with pytest.raises(BidError, match=rf"valid is a checkpoint in it: {inside}/010000, or 005000 beside it"):
            read(folder)
    (inside / "last").symlink_to("010000")
    with pytest.raises(BidError, match=rf"valid is a checkpoint in it: {inside}/last, or 005000, 010000 beside it"):
        read(tmp_path / "run")
    assert read(inside / "last").horizon == 8


def test_unknown_fields_that_switch_nothing_on_are_left_out_and_said(kit, tmp_path):
    off = {"new_thing": None, "use_new": False, "new_list": [], "new_share": 0.0}
    policy = read(kit.write_lerobot(tmp_path / "off", config=off))
    assert policy.notes[0].endswith("ignored 'new_thing' (null), 'use_new' (false), 'new_list' ([]), 'new_share' (0.0)")
    on = kit.write_lerobot(tmp_path / "on", config={"use_new": True})
    assert read(on, ignored=("use_new",)).notes[0].endswith("config.json: ignored 'use_new' (true)")
    for name, message in (
        ("horizon", "which decides what .*config.json computes"),
        ("typo", "config.json does not have"),
    ):
        with pytest.raises(BidError, match=f"--ignore-field is '{name}', .*{message}"):
            read(on, ignored=("use_new", name))


def test_a_field_that_old_versions_wrote_and_never_read_is_known(kit, tmp_path):
    assert read(kit.write_lerobot(tmp_path / "old", config={"mlp_hidden_dim": 1024})).notes == ()


def test_tensors_in_several_files_are_read_by_their_index(kit, tmp_path):
    whole, folder = kit.write_lerobot(tmp_path / "whole"), kit.write_lerobot(tmp_path / "parts")
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + at % 2}-of-00002.safetensors" for at, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: value for name, value in tensors.items() if places[name] == file}, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert same_weights(read(folder).denoiser, read(whole).denoiser)
    for content, message in (
        ({"weight_map": {**places, "more": "model-00001-of-00002.safetensors"}}, "00001-of-00002.* lacks .*'more'"),
        ({"weight_map": {**places, "more": "other.safetensors"}}, "other.safetensors is missing"),
        ({"weight_map": {"more": "../model.safetensors"}}, "names files that are not beside it"),
        ([], "cannot be read as an index"),
    ):
        index.write_text(json.dumps(content))
        with pytest.raises(BidError, match=message):
            read(folder)


def test_a_step_that_is_switched_off_is_none(kit, tmp_path):
    folder = kit.write_lerobot(tmp_path / "policy")
    file = folder / "policy_preprocessor.json"
    content = json.loads(file.read_text())
    content["steps"].append({"registry_name": "relative_actions_processor", "config": {"enabled": False}})
    file.write_text(json.dumps(content))
    assert read(folder).horizon == 8
    file.write_text(file.read_text().replace('"enabled": false', '"enabled": true'))
    with pytest.raises(BidError, match="has the step 'relative_actions_processor'"):
        read(folder)


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
    "type": ({"config": {"type": "ours"}}, "type is 'ours'; valid are act, diffusion, multi_task_dit, vqbet; others"),
    "field": ({"config": {"hidden": 3}}, "config.json has the field 'hidden', which LeRobot 0.1 to 0.6 do not write"),
    "fields": ({"config": {"hidden": 3, "more": True}}, "give --ignore-field hidden --ignore-field more$"),
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
    with pytest.raises(
        BidError,
        match=r"^lerobot/diffusion_pusht is no folder; valid is one on this computer .* fetch "
        r"it by: hf download lerobot/diffusion_pusht --local-dir diffusion_pusht$",
    ):
        read("lerobot/diffusion_pusht")
    folder = kit.write_lerobot(tmp_path / "policy")
    content = json.loads((folder / "config.json").read_text())
    content.pop("type")
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(BidError, match=r"config.json has no field 'type'; valid is one of act"):
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
    same = read(kit.write_lerobot(tmp_path / "same"))
    with pytest.raises(BidError, match=r"same has the weights of .*strong; valid are different checkpoints"):
        write_imported(strong, same, tmp_path / "bundle", kit.task_for(strong))
    other = read(kit.write_lerobot(tmp_path / "steps", config={"num_inference_steps": 5}))
    with pytest.raises(
        BidError, match=r"steps is no earlier checkpoint of .*strong: its settings sampling_steps is 5; valid is 2"
    ):
        check_same(strong, other)
    other = read(kit.write_lerobot(tmp_path / "data", statistics=put("action.max", [3.0, 1.0])))
    with pytest.raises(BidError, match=r"data is no earlier checkpoint of .*strong: the statistics of 'action' differ"):
        check_same(strong, other)
