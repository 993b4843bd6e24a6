"""The layers of ACT against those of PyTorch, its positions against values by hand, and its checkpoint's names."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.networks.resnet import trunk
from bid_ros.importing.policy import ImportOptions
from bid_ros.importing.write_bundle import write_imported
from bid_ros.learning.act.transformer import ActLayer, ActSizes, ActTransformer, act_layers, map_places
from bid_ros.policy.registry import load_policy

SIZE, HEADS, ROWS = 16, 4, 6


def sizes(**changes):
    return ActSizes(
        **{"size": SIZE, "heads": HEADS, "hidden": 24, "encoder_layers": 2, "decoder_layers": 2, "latent": 4} | changes
    )


@pytest.mark.parametrize(("gelu", "before"), [(False, False), (True, True)])
def test_layers_are_those_of_pytorch(gelu, before):
    """PyTorch's own know no positions, so here they are 0; where they go is the next test's."""
    torch.manual_seed(0)
    how = {"dropout": 0.0, "activation": "gelu" if gelu else "relu", "batch_first": True, "norm_first": before}
    encoder = nn.TransformerEncoderLayer(SIZE, HEADS, 24, **how).eval()
    decoder = nn.TransformerDecoderLayer(SIZE, HEADS, 24, **how).eval()
    values, memory, nowhere = torch.randn(2, 5, SIZE), torch.randn(2, 7, SIZE), torch.zeros(1, SIZE)
    for theirs, crosses, given in ((encoder, False, ()), (decoder, True, (memory,))):
        ours = ActLayer(sizes(gelu=gelu, before=before), crosses).eval()
        ours.load_state_dict(theirs.state_dict())
        with torch.no_grad():
            found = ours(values, nowhere, *given, *(nowhere for _ in given))
            torch.testing.assert_close(found, theirs(values, *given), atol=2e-6, rtol=1e-5)


def test_positions_are_added_to_queries_and_keys_alone():
    torch.manual_seed(1)
    layer, places, memory_places = ActLayer(sizes(), True).eval(), torch.randn(5, SIZE), torch.randn(7, SIZE)
    values, memory = torch.randn(1, 5, SIZE), torch.randn(1, 7, SIZE)
    parts = {}
    for name in ("self_attn", "multihead_attn"):
        parts[name] = nn.MultiheadAttention(SIZE, HEADS, batch_first=True).eval()
        parts[name].load_state_dict(getattr(layer, name).state_dict())
    with torch.no_grad():
        hidden = layer.norm1(values + parts["self_attn"](values + places, values + places, values)[0])
        found = parts["multihead_attn"](hidden + places, memory + memory_places, memory)[0]
        hidden = layer.norm2(hidden + found)
        wanted = layer.norm3(hidden + layer.linear2(torch.relu(layer.linear1(hidden))))
        torch.testing.assert_close(layer(values, places, memory, memory_places), wanted, atol=2e-6, rtol=1e-5)


def test_an_encoder_ends_normalised_where_its_layers_begin_so():
    assert isinstance(act_layers(sizes(), 1)["norm"], nn.Identity)
    assert isinstance(act_layers(sizes(before=True), 1)["norm"], nn.LayerNorm)
    assert isinstance(act_layers(sizes(), 1, crosses=True)["norm"], nn.LayerNorm)


def test_places_of_a_map_by_hand():
    found = map_places(2, 3, 8)
    assert found.shape == (6, 8)
    row, column = 2 * math.pi * 1 / 2, 2 * math.pi * 3 / 3  # the first row of two, the last column of three

    def coded(angle):
        return [math.sin(angle), math.cos(angle), math.sin(angle / 100), math.cos(angle / 100)]

    np.testing.assert_allclose(found[2], [*coded(row), *coded(column)], atol=1e-5)


@pytest.mark.parametrize(("change", "message"), [({"heads": 3}, "4"), ({"size": 18, "heads": 2}, "multiple of 4")])
def test_sizes_that_do_not_divide_are_refused(change, message):
    with pytest.raises(BidError, match="valid with") as refused:
        ActTransformer(sizes(**change), 2, ROWS, {"robot_state": 3}, [(1, 1)])
    assert message in str(refused.value) or "heads" in str(refused.value)


def test_a_dilated_trunk_keeps_the_resolution_of_its_last_level():
    with torch.device("meta"):
        dilated, channels = trunk("resnet50", groups=False, dilated=True)
        plain, _ = trunk("resnet50", groups=False)
        assert dilated(torch.zeros(1, 3, 64, 97)).shape == (1, channels, 4, 7)
    assert {name: value.shape for name, value in dilated.state_dict().items()} == {
        name: value.shape for name, value in plain.state_dict().items()
    }
    kernels = [(block.conv2.stride, block.conv2.dilation, block.conv2.padding) for block in dilated[7]]
    assert kernels == [((1, 1), (1, 1), (1, 1)), ((1, 1), (2, 2), (2, 2)), ((1, 1), (2, 2), (2, 2))]
    with pytest.raises(BidError, match="vision backbone 'resnet18' is dilated; valid for that are resnet50"):
        trunk("resnet18", groups=False, dilated=True)


IMAGES = {"observation.images.side": [3, 40, 64], "observation.images.front": [3, 32, 32]}
CONFIG = {
    "type": "act",
    "chunk_size": ROWS,
    "n_action_steps": 1,
    "input_features": {
        "observation.environment_state": {"type": "ENV", "shape": [5]},
        **{name: {"type": "VISUAL", "shape": shape} for name, shape in IMAGES.items()},
        "observation.state": {"type": "STATE", "shape": [3]},
    },
    "output_features": {"action": {"type": "ACTION", "shape": [2]}},
    "normalization_mapping": {"STATE": "MEAN_STD", "ACTION": "MEAN_STD", "VISUAL": "IDENTITY", "ENV": "IDENTITY"},
    "dim_model": SIZE,
    "n_heads": HEADS,
    "dim_feedforward": 24,
    "feedforward_activation": "gelu",
    "pre_norm": True,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "latent_dim": 4,
    "temporal_ensemble_coeff": 0.01,
    "dropout": 0.1,
    "kl_weight": 10.0,
}


def write(folder, seed=0):
    """Write a policy as LeRobot 0.3.3 did: statistics among the weights. Two cameras of different sizes."""
    torch.manual_seed(seed)
    folder.mkdir()
    network, channels = trunk("resnet18", groups=False)
    network.apply(lambda part: part.bias.data.normal_(0, 0.3) if isinstance(part, nn.BatchNorm2d) else None)
    theirs = {"0": "conv1", "1": "bn1", **{str(3 + level): f"layer{level}" for level in range(1, 5)}}
    tensors = {}
    for name, value in network.state_dict().items():
        first, _, rest = name.partition(".")
        if not rest.endswith("num_batches_tracked"):
            tensors[f"model.backbone.{theirs[first]}.{rest}"] = value
    for name, value in nn.Conv2d(channels, SIZE, 1).state_dict().items():
        tensors[f"model.encoder_img_feat_input_proj.{name}"] = value
    transformer = ActTransformer(sizes(gelu=True, before=True), 2, ROWS, {"robot_state": 3, "env_state": 5})
    tensors |= {f"model.{name}": value for name, value in transformer.state_dict().items()}
    tensors["model.vae_encoder_pos_enc"] = torch.zeros(1, 2, SIZE)  # of training alone
    for group, name in (("normalize_inputs", "observation_state"), ("unnormalize_outputs", "action")):
        size = 3 if name == "observation_state" else 2
        tensors |= {
            f"{group}.buffer_{name}.mean": torch.ones(size),
            f"{group}.buffer_{name}.std": torch.full((size,), 2.0),
        }
    save_file({name: value.clone() for name, value in tensors.items()}, str(folder / "model.safetensors"))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_two_cameras_a_state_and_an_environment(kit, tmp_path):
    """Against the network written out: tokens in LeRobot's order, whatever the order of the configuration is."""
    strong = read_policy(str(write(tmp_path / "one")), ImportOptions())
    other = read_policy(str(write(tmp_path / "two", seed=1)), ImportOptions())
    assert "--decoder ema:ensemble=0.01" in strong.notes[-1]
    task = kit.task_for(strong, observation_steps=2, horizon=ROWS + 1)  # the network sees and predicts one step less
    bundle = write_imported(strong, None, tmp_path / "bundle", task, also=[other])
    assert bundle.history(task).steps == 1
    assert bundle.settings.members == 2 and set(bundle.strong) == {"frames", "encoder", "frames_2", "encoder_2"}
    again = read_policy(str(shutil.copytree(tmp_path / "two", tmp_path / "copy")), ImportOptions())
    with pytest.raises(BidError, match=r"copy has the weights of .*two; valid are different checkpoints"):
        write_imported(strong, None, tmp_path / "bundle", task, also=[other, again])
    policy, rng = load_policy(bundle, task, "onnx"), np.random.default_rng(3)
    seen = {name: rng.integers(0, 256, (1, *shape[1:], 3), np.uint8) for name, shape in IMAGES.items()}
    seen |= {"observation.state": rng.normal(size=(1, 3)), "observation.environment_state": rng.normal(size=(1, 5))}
    chunks, _ = policy.sample(policy.encode(Observation(0, seen)), 2, 0, None)
    for folder, chunk in zip(("one", "two"), chunks, strict=True):
        wanted = written_out(load_file(tmp_path / folder / "model.safetensors"), seen)
        np.testing.assert_allclose(chunk[1:], 1 + 2 * wanted, atol=2e-4)
    assert policy.capabilities.made_up_rows == 1
    assert np.abs(chunks[0] - chunks[1]).max() > 1e-2


def backbone(weight, image):
    """Return the features of an image, by PyTorch's own functions."""

    def batch_norm(name, values):
        parts = (weight[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        return nn.functional.batch_norm(values, *parts)

    convolved = nn.functional.conv2d
    x = torch.relu(batch_norm("backbone.bn1", convolved(image, weight["backbone.conv1.weight"], stride=2, padding=3)))
    x = nn.functional.max_pool2d(x, 3, 2, 1)
    for level in range(1, 5):
        for block in range(2):
            name, stride = f"backbone.layer{level}.{block}", 2 if level > 1 and not block else 1
            y = convolved(x, weight[f"{name}.conv1.weight"], stride=stride, padding=1)
            y = torch.relu(batch_norm(f"{name}.bn1", y))
            y = batch_norm(f"{name}.bn2", convolved(y, weight[f"{name}.conv2.weight"], padding=1))
            if f"{name}.downsample.0.weight" in weight:
                x = batch_norm(
                    f"{name}.downsample.1", convolved(x, weight[f"{name}.downsample.0.weight"], stride=stride)
                )
            x = torch.relu(x + y)
    return convolved(x, weight["encoder_img_feat_input_proj.weight"], weight["encoder_img_feat_input_proj.bias"])


def written_out(tensors, seen):
    """Return the normalised chunk by PyTorch's own functions."""
    weight = {name.removeprefix("model."): value for name, value in tensors.items()}

    def linear(name, values):
        return nn.functional.linear(values, weight[f"{name}.weight"], weight[f"{name}.bias"])

    def norm(name, values):
        return nn.functional.layer_norm(values, (SIZE,), weight[f"{name}.weight"], weight[f"{name}.bias"])

    def attention(name, query, key, value):
        part = nn.MultiheadAttention(SIZE, HEADS, batch_first=True).eval()
        part.load_state_dict({key: weight[f"{name}.{key}"] for key in part.state_dict()})
        return part(query, key, value, need_weights=False)[0]

    state = (torch.from_numpy(seen["observation.state"]).float() - 1) / 2
    environment = torch.from_numpy(seen["observation.environment_state"]).float()
    latent = linear("encoder_latent_input_proj", torch.zeros(1, 4))
    vectors = [
        latent,
        linear("encoder_robot_state_input_proj", state),
        linear("encoder_env_state_input_proj", environment),
    ]
    tokens, places = [torch.stack(vectors, dim=1)], [weight["encoder_1d_feature_pos_embed.weight"]]
    with torch.no_grad():
        for name in IMAGES:
            found = backbone(weight, torch.from_numpy(seen[name]).permute(0, 3, 1, 2).float() / 255)
            tokens.append(found.flatten(2).transpose(1, 2))
            places.append(map_places(*found.shape[2:], SIZE))
        x, at, queries = torch.cat(tokens, dim=1), torch.cat(places), weight["decoder_pos_embed.weight"]
        for layer in ("encoder.layers.0", "encoder.layers.1"):
            y = norm(f"{layer}.norm1", x)
            x = x + attention(f"{layer}.self_attn", y + at, y + at, y)
            x = x + linear(
                f"{layer}.linear2", nn.functional.gelu(linear(f"{layer}.linear1", norm(f"{layer}.norm2", x)))
            )
        memory, x = norm("encoder.norm", x), torch.zeros(1, ROWS, SIZE)
        for layer in ("decoder.layers.0", "decoder.layers.1"):
            y = norm(f"{layer}.norm1", x)
            x = x + attention(f"{layer}.self_attn", y + queries, y + queries, y)
            y = norm(f"{layer}.norm2", x)
            x = x + attention(f"{layer}.multihead_attn", y + queries, memory + at, memory)
            x = x + linear(
                f"{layer}.linear2", nn.functional.gelu(linear(f"{layer}.linear1", norm(f"{layer}.norm3", x)))
            )
        return linear("action_head", norm("decoder.norm", x))[0].numpy()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write(tmp_path_factory.mktemp("act") / "policy")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_obs_steps": 2}, "n_obs_steps is 2; valid"),
        ({"n_action_steps": 7}, "n_action_steps is 7; valid is up to 6"),
        ({"feedforward_activation": "glu"}, "feedforward_activation is 'glu'; valid"),
        ({"n_heads": 3}, "the size of a token is 16; valid with 3 heads"),
        ({"replace_final_stride_with_dilation": True}, "vision backbone 'resnet18' is dilated; valid"),
        ({"n_encoder_layers": 1}, "has the tensor 'model.encoder.layers.1."),
        ({"n_decoder_layers": 3}, "lacks the tensor 'model.decoder.layers.2."),
        ({"use_vae": False}, "has the tensor 'model.vae_encoder_pos_enc'"),
        ({"pre_norm": False}, "has the tensor 'model.encoder.norm."),
    ],
)
def test_fields_that_the_weights_do_not_fit_are_refused(written, tmp_path, change, message):
    (tmp_path / "model.safetensors").symlink_to(written / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(BidError) as refused:
        read_policy(str(tmp_path), ImportOptions())
    assert message in str(refused.value)
