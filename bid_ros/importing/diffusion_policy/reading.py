"""A policy of the published Diffusion Policy, by the class that its configuration names."""

from typing import Any, Final

from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import Checkpoint, read_checkpoint
from bid_ros.importing.diffusion_policy.denoiser_weights import check_all_read, fill_denoiser, read_action_dim
from bid_ros.importing.diffusion_policy.encoders import Observing, hybrid, multi_image, numbers_alone, read_features
from bid_ros.importing.diffusion_policy.fields import (
    ImageFields,
    PolicyFields,
    TransformerFields,
    UnetFields,
    parse_parts,
    sampling,
    target_of,
    without_target,
)
from bid_ros.importing.diffusion_policy.normalisers import action_spread, normaliser
from bid_ros.importing.diffusion_policy.umi import KIND as UMI
from bid_ros.importing.diffusion_policy.umi import read_umi
from bid_ros.importing.networks.transformer import ChunkTransformer
from bid_ros.importing.networks.unet import ConditionalUnet, check_sizes
from bid_ros.importing.policy import ImportedPolicy, ImportOptions

LOWDIM: Final = ("DiffusionUnetLowdimPolicy", "DiffusionTransformerLowdimPolicy")
HYBRID: Final = ("DiffusionUnetHybridImagePolicy", "DiffusionTransformerHybridImagePolicy")
MULTI: Final = ("DiffusionUnetImagePolicy",)
KINDS: Final = (*LOWDIM, *HYBRID, *MULTI, UMI)
# Arguments that are read on their own, or of training alone.
OTHERS: Final = (
    *("shape_meta", "noise_scheduler", "obs_encoder", "model", "obs_dim", "action_dim"),
    *("p_drop_emb", "p_drop_attn", "predict_epsilon"),
)
DERIVED: Final = ("input_dim", "output_dim", "local_cond_dim", "global_cond_dim", "cond_dim", "horizon", "n_obs_steps")


def read_policy(path: str, options: ImportOptions) -> ImportedPolicy:
    """Read a checkpoint file of the published Diffusion Policy.

    Args:
        path: the file.
        options: what a person says about it.

    Raises:
        BidError: the file cannot be read, is refused, or holds a policy that is not known or has another form.
    """
    checkpoint = read_checkpoint(path)
    policy, where = checkpoint.config["policy"], f"{checkpoint.path}: cfg.policy"
    kind = target_of(policy, where)
    if kind not in KINDS:
        raise BidError(f"{where}._target_ is a {kind}; valid are {', '.join(KINDS)}")
    if kind == UMI:
        return read_umi(checkpoint, options)
    transformer = "Transformer" in kind
    given = without_target(policy)
    network_kind: Any = TransformerFields if transformer else UnetFields
    if kind in LOWDIM:
        (fields,) = parse_parts([PolicyFields], given, where, OTHERS)
        (network,) = parse_parts(
            [network_kind], without_target(_mapping(given, "model", where)), f"{where}.model", (*OTHERS, *DERIVED)
        )
        observing = numbers_alone(_number(given, "obs_dim", where))
        action_dim = _number(given, "action_dim", where)
    else:
        kinds = [PolicyFields, network_kind, *([ImageFields] if kind in HYBRID else [])]
        fields, network, *image = parse_parts(kinds, given, where, OTHERS)
        observing = _observing(given, image, checkpoint, where)
        action_dim = read_action_dim(given["shape_meta"], where)
    _check_conditioned(fields, where, "obs_as_cond" if transformer else "obs_as_global_cond", kind in LOWDIM)
    rows = fields.n_action_steps if fields.pred_action_steps_only else fields.horizon
    denoiser = _denoiser(network, observing, fields, action_dim, where)
    fill_denoiser(checkpoint, denoiser, transformer)
    check_all_read(checkpoint, observing)
    tensors, file = checkpoint.tensors, str(checkpoint.path)
    action = normaliser(tensors, "action", action_dim, file)
    vectors = [item for item in observing.features if not item.is_image]
    return ImportedPolicy(
        source=file,
        kind=kind,
        features=observing.features,
        observation_steps=fields.n_obs_steps,
        horizon=rows,
        action_dim=action_dim,
        encoder=observing.network,
        denoiser=denoiser,
        settings=sampling(given.get("noise_scheduler"), fields.num_inference_steps, options, where),
        observation={item.name: normaliser(tensors, item.name, item.shape[0], file) for item in vectors},
        action=action,
        action_spread=action_spread(tensors, action),
        notes=observing.notes,
        past=_past_rows(fields, kind),
    )


def _past_rows(fields: PolicyFields, kind: str) -> int:
    """Return the first row that the policy executes. One class has two conventions."""
    if fields.pred_action_steps_only:
        return 0
    later = kind == "DiffusionUnetLowdimPolicy" and not fields.oa_step_convention
    return fields.n_obs_steps - (0 if later else 1)


def _observing(given: dict[str, Any], image: list[ImageFields], checkpoint: Checkpoint, where: str) -> Observing:
    features = read_features(given.get("shape_meta"), where)
    file = str(checkpoint.path)
    if image:
        return hybrid(features, image[0], checkpoint.tensors, file)
    return multi_image(features, given.get("obs_encoder"), checkpoint.tensors, file)


def _denoiser(network: Any, observing: Observing, fields: PolicyFields, action_dim: int, where: str) -> nn.Module:
    step = observing.network.step
    if isinstance(network, TransformerFields):
        if network.n_emb % network.n_head:
            raise BidError(f"{where}: n_emb is {network.n_emb}; valid is a multiple of n_head, {network.n_head}")
        return ChunkTransformer(
            action_dim,
            fields.horizon,
            fields.n_obs_steps,
            step,
            network.n_emb,
            network.n_layer,
            network.n_head,
            network.n_cond_layers,
            network.causal_attn,
        )
    check_sizes(fields.horizon, network.down_dims, network.kernel_size, network.n_groups, where)
    return ConditionalUnet(
        action_dim,
        fields.n_obs_steps * step,
        network.down_dims,
        network.kernel_size,
        network.n_groups,
        network.diffusion_step_embed_dim,
        network.cond_predict_scale,
    )


def _check_conditioned(fields: PolicyFields, where: str, name: str, must: bool) -> None:
    """Raise BidError if the network does not take the observation as a condition; ``must``: the field must say so."""
    said = getattr(fields, name)
    if said is False or (said is None and must) or fields.obs_as_local_cond:
        raise BidError(f"{where}: the observation is no condition of the whole chunk; valid is {name} true")


def _mapping(content: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    found = content.get(name)
    if not isinstance(found, dict):
        raise BidError(f"{where}.{name} is {found!r}; valid is a mapping")
    return found


def _number(content: dict[str, Any], name: str, where: str) -> int:
    found = content.get(name)
    if type(found) is not int or found < 1:
        raise BidError(f"{where}.{name} is {found!r}; valid is a whole number from 1 on")
    return found
