"""The published ACT's checkpoint: the same weights under LeRobot's names give the same chunks."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import nn

from bid_ros.cli import main
from bid_ros.core.observation import Observation
from bid_ros.core.task import load_task
from bid_ros.importing.networks.resnet import trunk
from bid_ros.learning.act.transformer import ActSizes, ActTransformer
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy

SIZE, ROWS, STATE, ACTION, SIDE = 16, 5, 4, 3, [32, 64]
NUMBERS = {"qpos_mean": [0.5, -1.0, 0.0, 2.0], "qpos_std": [0.1, 0.2, 1.0, 0.5]}
NUMBERS |= {"action_mean": [1.0, 0.0, -2.0], "action_std": [0.5, 0.01, 2.0]}
TASK = {
    "name": "aloha",
    "robot": "franka",
    "rate_hz": 10,
    "observation_steps": 1,
    "horizon": ROWS,
    "observation": [
        {"name": "top", "kind": "image", "shape": [*SIDE, 3]},
        {"name": "joints", "kind": "joints", "shape": [STATE]},
    ],
    "action": [{"name": "goal", "kind": "joints", "shape": [ACTION]}],
    "limits": {"workspace_min": [0.0, -0.5, 0.0], "workspace_max": [0.9, 0.5, 0.8]},
}
INPUTS = [{"name": "top", "camera": "top", "size": SIDE}, {"name": "qpos", "columns": [{"feature": "joints"}]}]
THEIRS = {
    "encoder.": "transformer.encoder.",
    "decoder.": "transformer.decoder.",
    "decoder_pos_embed.": "query_embed.",
    "encoder_latent_input_proj.": "latent_out_proj.",
    "encoder_robot_state_input_proj.": "input_proj_robot_state.",
    "encoder_1d_feature_pos_embed.": "additional_pos_embed.",
    "action_head.": "action_head.",
}
BACKBONE = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with both forms of one policy, and a task; not to be changed."""
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("original")
    sizes = ActSizes(SIZE, 8, 24, encoder_layers=2, decoder_layers=1, latent=6)
    transformer = ActTransformer(sizes, ACTION, ROWS, {"robot_state": STATE})
    network, channels = trunk("resnet18", groups=False)
    projection = nn.Conv2d(channels, SIZE, 1)
    images = {}
    for name, value in network.state_dict().items():
        first, _, rest = name.partition(".")
        if not rest.endswith("num_batches_tracked"):
            images[f"{BACKBONE[first]}.{rest}"] = value
    lerobot = {f"model.{name}": value for name, value in transformer.state_dict().items()}
    lerobot |= {f"model.backbone.{name}": value for name, value in images.items()}
    lerobot |= {f"model.encoder_img_feat_input_proj.{name}": value for name, value in projection.state_dict().items()}
    published = {f"model.backbones.0.0.body.{name}": value for name, value in images.items()}
    published |= {f"model.input_proj.{name}": value for name, value in projection.state_dict().items()}
    for name, value in transformer.state_dict().items():
        ours = next(begin for begin in THEIRS if name.startswith(begin))
        published[f"model.{THEIRS[ours]}{name.removeprefix(ours)}"] = value
    for name, value in list(published.items()):  # six more layers, whose output nobody executes
        if name.startswith("model.transformer.decoder.layers.0."):
            published |= {name.replace("layers.0.", f"layers.{layer}."): value + 1 for layer in range(1, 7)}
    for name in ("encoder.layers.0.norm1.weight", "cls_embed.weight", "encoder_action_proj.bias", "pos_table"):
        published[f"model.{name}"] = torch.ones(1)
    published |= {"model.encoder_joint_proj.bias": torch.ones(1), "model.latent_proj.bias": torch.ones(1)}
    published["model.is_pad_head.bias"] = torch.ones(1)
    torch.save(published, place / "policy_best.ckpt")
    torch.save({name: 1.01 * value for name, value in published.items()}, place / "policy_seed_1.ckpt")
    arrays = {name: np.array(values, np.float32) for name, values in NUMBERS.items()}
    (place / "dataset_stats.pkl").write_bytes(pickle.dumps({**arrays, "example_qpos": np.zeros((7, STATE))}))
    _write_lerobot(place / "lerobot", lerobot)
    (place / "task.yaml").write_text(yaml.safe_dump(TASK | {"data": {"observation": {"joints": "qpos"}}}))
    (place / "space.yaml").write_text(yaml.safe_dump({"observation": INPUTS}))
    names = {"observation": {"joints": "observation.state", "top": "observation.images.top"}}
    (place / "lerobot.yaml").write_text(yaml.safe_dump(TASK | {"data": names}))
    return place


def _write_lerobot(folder, tensors):
    folder.mkdir()
    for group, name, ours in (
        ("normalize_inputs", "observation_state", "qpos"),
        ("unnormalize_outputs", "action", "action"),
    ):
        for statistic in ("mean", "std"):
            values = torch.tensor(NUMBERS[f"{ours}_{statistic}"])
            tensors[f"{group}.buffer_{name}.{statistic}"] = values
    colours = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    for statistic, values in colours.items():
        tensors[f"normalize_inputs.buffer_observation_images_top.{statistic}"] = torch.tensor(values).reshape(3, 1, 1)
    save_file({name: value.clone() for name, value in tensors.items()}, str(folder / "model.safetensors"))
    features = {
        "observation.state": {"type": "STATE", "shape": [STATE]},
        "observation.images.top": {"type": "VISUAL", "shape": [3, *SIDE]},
    }
    config = {"type": "act", "chunk_size": ROWS, "n_action_steps": ROWS, "dim_model": SIZE, "n_heads": 8}
    config |= {"dim_feedforward": 24, "n_encoder_layers": 2, "latent_dim": 6, "input_features": features}
    config["output_features"] = {"action": {"type": "ACTION", "shape": [ACTION]}}
    config["normalization_mapping"] = {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}
    (folder / "config.json").write_text(json.dumps(config))


def imported(checkpoint, task, out, *more):
    return main(["policy", "import", str(checkpoint), "--task", str(task), "--out", str(out), *more])


def test_both_forms_of_a_policy_have_the_same_chunk(folder, tmp_path, capsys):
    published = folder / "policy_best.ckpt"
    more = ["--space", str(folder / "space.yaml"), "--also", str(folder / "policy_seed_1.ckpt"), "--json"]
    assert imported(published, folder / "task.yaml", tmp_path / "published", *more) == 0
    said, error = capsys.readouterr()
    assert "taken are top of 32 x 64 px" in error and "taken are 8, as published" in error
    assert json.loads(said)["candidates"] == 2
    assert imported(published, folder / "task.yaml", tmp_path / "twice", *more[:3], str(published)) == 2
    assert "policy_best.ckpt has the weights of" in capsys.readouterr().err and not (tmp_path / "twice").exists()
    assert imported(folder / "lerobot", folder / "lerobot.yaml", tmp_path / "lerobot") == 0
    rng, found = np.random.default_rng(2), []
    seen = {"top": rng.integers(0, 256, (1, *SIDE, 3), np.uint8), "joints": rng.normal(size=(1, STATE))}
    for name, file in (("published", "task.yaml"), ("lerobot", "lerobot.yaml")):
        task = load_task(folder / file)
        policy = load_policy(load_bundle(tmp_path / name, task), task, "onnx")
        found.append(policy.sample(policy.encode(Observation(0, seen)), 1, 0, None)[0])
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    assert np.ptp(found[0]) > 0.1


class Asks:
    """What a pickle may not ask for."""

    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (None, "dataset_stats.pkl does not exist"),
        ({"action_mean": np.zeros(ACTION)}, "dataset_stats.pkl: 'action_std' is None; valid are 3 finite numbers"),
        ({"action_mean": np.zeros(2), "action_std": np.ones(3)}, "'action_mean' is [0.0, 0.0]; valid are 3 finite"),
        ({"action_mean": np.zeros(3), "action_std": np.zeros(3)}, "'action_std' is 0.0; valid is above 0"),
        ({"action_mean": Asks()}, "is refused: its pickle asks for posix.mkdir; valid"),
    ],
)
def test_statistics_that_are_missing_or_ask_for_more_are_refused(folder, tmp_path, capsys, statistics, message):
    (tmp_path / "policy_best.ckpt").symlink_to(folder / "policy_best.ckpt")
    if statistics is not None:
        (tmp_path / "dataset_stats.pkl").write_bytes(pickle.dumps(statistics))
    space = ["--space", str(folder / "space.yaml")]
    assert imported(tmp_path / "policy_best.ckpt", folder / "task.yaml", tmp_path / "out", *space) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_state_of_another_network_is_refused(folder, tmp_path, capsys):
    torch.save({"model.mlp.0.weight": torch.zeros(2, 2)}, tmp_path / "policy.ckpt")
    assert imported(tmp_path / "policy.ckpt", folder / "task.yaml", tmp_path / "out") == 2
    assert "lacks the tensor 'model.additional_pos_embed.weight'; valid is a policy_*.ckpt" in capsys.readouterr().err
