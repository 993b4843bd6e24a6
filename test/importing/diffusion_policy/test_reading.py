"""Policies of the published Diffusion Policy, in files made of networks of our own."""

import numpy as np
import pytest
import torch
from importing.conftest import same_weights
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.fields import read_features
from bid_ros.importing.diffusion_policy.reading import read_policy
from bid_ros.importing.policy import ImportOptions


def read(path, **options):
    return read_policy(str(path), ImportOptions(**options))


def lowdim(layout, path, network, policy, **changes):
    tensors = layout.published(network) | layout.normaliser(layout.NORMALISER)
    return layout.write(path, {**policy, **changes}, tensors)


def test_a_u_net_on_numbers_alone(layout, tmp_path):
    policy = read(lowdim(layout, tmp_path / "policy.ckpt", layout.unet(), layout.UNET_LOWDIM))
    assert same_weights(policy.denoiser, layout.unet())
    assert [(item.name, item.shape) for item in policy.features] == [("obs", (3,))]
    assert (policy.observation_steps, policy.horizon, policy.action_dim, policy.past_rows) == (2, 8, 2, 1)
    settings = policy.settings
    assert (settings.sampler, settings.sampling_steps, settings.spacing) == ("ddpm", 10, "leading")
    values = np.array([[0.3, -0.4, 0.5]])
    np.testing.assert_allclose(policy.observation["obs"].normalise(values), [[0.7, -0.6, 0.55]], atol=1e-6)
    np.testing.assert_allclose(policy.action.denormalise([[0.5, 0.5]]), [[0.5, 0.75]], atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "rows", "past"),
    [
        ({"oa_step_convention": False}, 8, 2),
        ({"pred_action_steps_only": True}, 4, 0),
    ],
)
def test_conventions_of_the_first_row(layout, tmp_path, changes, rows, past):
    policy = read(lowdim(layout, tmp_path / "policy.ckpt", layout.unet(), layout.UNET_LOWDIM, **changes))
    assert (policy.horizon, policy.past_rows) == (rows, past)


@pytest.mark.parametrize("condition_layers", [0, 2])
@pytest.mark.parametrize("causal", [True, False])
def test_a_transformer_computes_what_layers_of_pytorch_do(layout, tmp_path, condition_layers, causal):
    network = layout.transformer(0, condition_layers, causal)
    model = {**layout.TRANSFORMER_LOWDIM["model"], "n_cond_layers": condition_layers, "causal_attn": causal}
    policy = read(lowdim(layout, tmp_path / "policy.ckpt", network, layout.TRANSFORMER_LOWDIM, model=model))
    assert same_weights(policy.denoiser, network)
    torch.manual_seed(1)
    sample, condition, step = torch.randn(3, 8, 2), torch.randn(1, 6), torch.tensor([7])
    with torch.no_grad():
        found = policy.denoiser.eval()(sample, step, condition)
        expected = reference(network, sample, condition, step, condition_layers, causal)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-5)


def reference(network, sample, condition, step, condition_layers, causal):
    """Compute the published network with layers of PyTorch."""
    kind = {"nhead": 2, "dim_feedforward": 64, "dropout": 0.0, "activation": "gelu", "batch_first": True}
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, norm_first=True, **kind), 2)
    decoder.load_state_dict(network.decoder.state_dict())
    encoder = network.encoder
    if condition_layers:
        layer = nn.TransformerEncoderLayer(16, norm_first=True, **kind)
        encoder = nn.TransformerEncoder(layer, condition_layers, enable_nested_tensor=False)
        encoder.load_state_dict(network.encoder.state_dict())
    time = network.time_emb(step.float()).unsqueeze(1)
    memory = torch.cat([time, network.cond_obs_emb(condition.reshape(1, 2, 3))], dim=1) + network.cond_pos_emb
    memory = encoder.eval()(memory).expand(3, -1, -1)
    mask = memory_mask = None
    if causal:
        mask = torch.triu(torch.full((8, 8), -torch.inf), diagonal=1)
        allowed = torch.arange(8).unsqueeze(1) >= torch.arange(3) - 1
        memory_mask = torch.zeros(8, 3).masked_fill(~allowed, -torch.inf)
    hidden = network.input_emb(sample) + network.pos_emb
    hidden = decoder.eval()(hidden, memory, tgt_mask=mask, memory_mask=memory_mask)
    return network.head(network.ln_f(hidden))


def test_masks_and_empty_parameters_are_no_weights(layout, tmp_path):
    tensors = layout.published(layout.transformer()) | layout.normaliser(layout.NORMALISER)
    more = {
        "model.mask": torch.full((8, 8), -torch.inf),
        "model.memory_mask": torch.zeros(8, 3),
        "model._dummy_variable": torch.empty(0),
        "mask_generator._dummy_variable": torch.empty(0),
    }
    path = layout.write(tmp_path / "policy.ckpt", layout.TRANSFORMER_LOWDIM, tensors | more)
    assert same_weights(read(path).denoiser, layout.transformer())


def change(policy, name, value):
    """Return the policy with a field replaced, or without it."""
    kept = {key: item for key, item in policy.items() if key != name}
    return kept if value is None else {**kept, name: value}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "_target_",
            "diffusion_policy.policy.ibc.IbcPolicy",
            r"cfg.policy._target_ is a IbcPolicy; valid are Diffusion",
        ),
        ("horizon", None, "cfg.policy: the field 'horizon' is missing"),
        ("horizon", "${horizon}", r"cfg.policy: horizon is '\$\{horizon\}', which was not resolved; valid is a value"),
        ("n_obs_steps", 0, "n_obs_steps is 0; valid"),
        ("surprise", 1, "cfg.policy has the field 'surprise', which bid_ros does not know; an unknown field"),
        ("obs_as_global_cond", False, "no condition of the whole chunk; valid is obs_as_global_cond true"),
        ("obs_as_global_cond", None, "no condition of the whole chunk; valid is obs_as_global_cond true"),
        ("obs_as_local_cond", True, "no condition of the whole chunk"),
        ("obs_dim", "3", "cfg.policy.obs_dim is '3'; valid is a whole number from 1 on"),
        ("obs_dim", 4, "tensor 'model.down_modules.0.0.cond_encoder.1.weight' has shape"),
        ("model", None, "cfg.policy.model is None; valid is a mapping"),
        (
            "noise_scheduler",
            {"_target_": "diffusers.EDMScheduler"},
            "noise_scheduler is a EDMScheduler; valid are DDPM",
        ),
        ("noise_scheduler", {"num_train_timesteps": 3}, "noise_scheduler has no _target_; valid"),
        ("num_inference_steps", 101, "sampling_steps is 101; valid is up to train_steps 100"),
        ("horizon", 7, "cfg.policy: horizon is 7; valid is a multiple of 2"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said(layout, tmp_path, name, value, message):
    tensors = layout.published(layout.unet()) | layout.normaliser(layout.NORMALISER)
    path = layout.write(tmp_path / "policy.ckpt", change(layout.UNET_LOWDIM, name, value), tensors)
    with pytest.raises(BidError, match=message) as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_groups", 3, r"down_dims are \[16, 32\] with n_groups 3; valid are multiples of n_groups, the first one"),
        ("down_dims", [12, 16], r"down_dims are \[12, 16\] with n_groups 4; valid are multiples of n_groups"),
        ("kernel_size", 4, "kernel_size is 4; valid is an odd number"),
    ],
)
def test_sizes_that_no_network_can_have_are_said(layout, tmp_path, name, value, message):
    tensors = layout.published(layout.unet()) | layout.normaliser(layout.NORMALISER)
    model = {**layout.UNET_LOWDIM["model"], "n_groups": 4, name: value}
    path = layout.write(tmp_path / "policy.ckpt", {**layout.UNET_LOWDIM, "model": model}, tensors)
    with pytest.raises(BidError, match=f"cfg.policy: {message}"):
        read(path)


def test_heads_that_do_not_share_a_size_are_said(layout, tmp_path):
    model = {**layout.TRANSFORMER_LOWDIM["model"], "n_head": 3}
    path = lowdim(layout, tmp_path / "policy.ckpt", layout.transformer(), layout.TRANSFORMER_LOWDIM, model=model)
    with pytest.raises(BidError, match=r"cfg.policy: n_emb is 16; valid is a multiple of n_head, 3"):
        read(path)


def test_a_feature_without_a_description_is_said():
    with pytest.raises(BidError, match=r"cfg: shape_meta.obs.pose is None; valid is a mapping with type and shape"):
        read_features({"obs": {"pose": None}}, "cfg")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "normalizer.params_dict.action.scale",
            None,
            "lacks the tensor 'normalizer.params_dict.action.scale'; valid are 2",
        ),
        (
            "normalizer.params_dict.action.scale",
            [1.0, 0.0],
            r"action.scale' is \[1.0, 0.0\]; valid are finite numbers above",
        ),
        ("normalizer.params_dict.obs.offset", [1.0, 2.0], "obs.offset' has 2 numbers; valid are 3 or 1"),
        ("normalizer.params_dict.obs.offset", [1.0, 2.0, np.nan], "obs.offset' is .*nan.*; valid are finite numbers"),
        ("model.final_conv.1.bias", None, "lacks the tensor 'model.final_conv.1.bias'"),
        ("obs_encoder.more", [1.0], "has the tensor 'obs_encoder.more', which the configuration has no place for"),
    ],
)
def test_what_is_wrong_with_tensors_is_said(layout, tmp_path, name, value, message):
    tensors = layout.published(layout.unet()) | layout.normaliser(layout.NORMALISER)
    tensors.pop(name, None)
    if value is not None:
        tensors[name] = torch.tensor(value)
    path = layout.write(tmp_path / "policy.ckpt", layout.UNET_LOWDIM, tensors)
    with pytest.raises(BidError, match=message):
        read(path)


IMAGE = {"shape": [3, 40, 48], "type": "rgb"}
META = {
    "obs": {"wrist": IMAGE, "pose": {"shape": [3], "type": "low_dim"}, "front": IMAGE, "grip": {"shape": [1]}},
    "action": {"shape": [2]},
}
IMAGES = {"front": ([2.0], [-1.0]), "wrist": ([2.0], [-1.0]), "pose": ([1.0] * 3, [0.0] * 3), "grip": ([2.0], [0.5])}


def seen(encoder, pixels, rng):
    """Return the condition of random observations, and the observations."""
    images = {name: torch.from_numpy(rng.integers(0, 256, (2, *pixels, 3), np.uint8)) for name in encoder.cameras}
    vectors = {name: torch.randn(2, size) for name, size in (("pose", 3), ("grip", 1))}
    with torch.no_grad():
        frames = [encoder.frame(*(images[name][step][None] for name in encoder.cameras)) for step in range(2)]
        return images, vectors, encoder.condition(torch.cat(frames), vectors)


def centre(images, height, width):
    """Return uint8 images as -1 to 1, channels first, their middle."""
    values = images.permute(0, 3, 1, 2).float() / 255 * 2 - 1
    top, left = round((values.shape[2] - height) / 2), round((values.shape[3] - width) / 2)
    return values[:, :, top : top + height, left : left + width]


def test_a_hybrid_policy_has_its_features_in_the_order_of_the_file(layout, tmp_path):
    from bid_ros.importing.networks.observation import KeypointNetwork

    torch.manual_seed(0)
    network = KeypointNetwork("resnet18", True, (32, 40), 4, 6).eval()
    theirs = {"backbone.": "nets.0.nets.", "pool.": "nets.1.", "out.": "nets.3."}
    tensors = layout.published(layout.unet(condition=2 * 16)) | layout.normaliser(
        {**IMAGES, "action": layout.NORMALISER["action"]}
    )
    for camera, factor in (("wrist", 1.0), ("front", 0.5)):
        for name, value in network.state_dict().items():
            start = next(prefix for prefix in theirs if name.startswith(prefix))
            scaled = value * factor if name == "out.weight" else value
            tensors[f"obs_encoder.obs_nets.{camera}.{name.replace(start, theirs[start], 1)}"] = scaled
        tensors[f"obs_encoder.obs_nets.{camera}.nets.1.temperature"] = torch.ones(1)
    policy = {
        "_target_": "diffusion_policy.policy.x.DiffusionUnetHybridImagePolicy",
        "shape_meta": META,
        "obs_as_global_cond": True,
        "crop_shape": [32, 40],
        "obs_encoder_group_norm": True,
        "eval_fixed_crop": True,
        **layout.COMMON,
        **layout.UNET,
    }
    found = read(layout.write(tmp_path / "policy.ckpt", policy, tensors))
    assert found.notes == () and [item.name for item in found.features] == list(META["obs"])
    images, vectors, condition = seen(found.encoder.eval(), (40, 48), np.random.default_rng(0))
    with torch.no_grad():
        wrist = network(centre(images["wrist"], 32, 40))
        network.out.weight.mul_(0.5)
        front = network(centre(images["front"], 32, 40))
    expected = torch.cat([wrist, vectors["pose"], front, vectors["grip"]], dim=1).reshape(1, -1)
    torch.testing.assert_close(condition, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("share", [True, False])
def test_a_multi_image_policy_sorts_its_features(layout, tmp_path, share):
    from bid_ros.importing.networks.observation import PooledNetwork

    torch.manual_seed(0)
    network = PooledNetwork("resnet18", True).eval()
    places = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}
    tensors = layout.published(layout.unet(condition=2 * 1028)) | layout.normaliser(
        {**IMAGES, "action": layout.NORMALISER["action"]}
    )
    for key in ("rgb",) if share else ("front", "wrist"):
        for name, value in network.state_dict().items():
            _, place, rest = name.split(".", 2)
            tensors[f"obs_encoder.key_model_map.{key}.{places[place]}.{rest}"] = value
    policy = {
        "_target_": "diffusion_policy.policy.x.DiffusionUnetImagePolicy",
        "shape_meta": META,
        "obs_encoder": {
            "_target_": "diffusion_policy.model.vision.multi_image_obs_encoder.MultiImageObsEncoder",
            "shape_meta": META,
            "rgb_model": {"_target_": "diffusion_policy.model.vision.model_getter.get_resnet", "name": "resnet18"},
            "resize_shape": {"wrist": [36, 44], "front": [36, 44]},
            "crop_shape": [32, 40],
            "random_crop": True,
            "use_group_norm": True,
            "share_rgb_model": share,
            "imagenet_norm": True,
        },
        **layout.COMMON,
        **layout.UNET,
    }
    found = read(layout.write(tmp_path / "policy.ckpt", policy, tensors))
    images, vectors, condition = seen(found.encoder.eval(), (40, 48), np.random.default_rng(0))
    mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    features = []
    with torch.no_grad():
        for name in ("front", "wrist"):
            whole = centre(images[name], 40, 48)
            resized = nn.functional.interpolate(whole, (36, 44), mode="bilinear", align_corners=False, antialias=True)
            features.append(network((resized[:, :, 2:34, 2:42] - mean) / std))
    expected = torch.cat([*features, vectors["grip"], vectors["pose"]], dim=1).reshape(1, -1)
    torch.testing.assert_close(condition, expected, atol=2e-4, rtol=2e-4)
