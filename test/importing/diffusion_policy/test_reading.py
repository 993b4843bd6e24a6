"""Policies of the published Diffusion Policy, in files made of networks of our own."""

import numpy as np
import pytest
import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.reading import read_policy
from bid_ros.importing.policy import ImportOptions


def read(path, **options):
    return read_policy(str(path), ImportOptions(**options))


def same(one, other):
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def lowdim(layout, path, network, policy, **changes):
    tensors = layout.published(network) | layout.normaliser(layout.NORMALISER)
    return layout.write(path, {**policy, **changes}, tensors)


def test_a_u_net_on_numbers_alone(layout, tmp_path):
    policy = read(lowdim(layout, tmp_path / "policy.ckpt", layout.unet(), layout.UNET_LOWDIM))
    assert same(policy.denoiser, layout.unet())
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
    assert same(policy.denoiser, network)
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
    assert same(read(path).denoiser, layout.transformer())


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
        ("surprise", 1, "cfg.policy has the field 'surprise', which may change what is computed"),
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
