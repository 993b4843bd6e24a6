"""A policy of the published Diffusion Policy or UMI, by the class that its configuration names.

UMI's is a U-Net on relative poses, ``DiffusionUnetTimmPolicy`` (Chi et al., "Universal Manipulation Interface", RSS
2024). Its first row is that of the newest observation.
"""

from collections.abc import Mapping
from typing import Any, Final

from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import Checkpoint, read_checkpoint
from bid_ros.importing.diffusion_policy.encoders import (
    Observing,
    hybrid,
    multi_image,
    numbers_alone,
    timm_images,
)
from bid_ros.importing.diffusion_policy.fields import (
    ImageFields,
    PolicyFields,
    TransformerFields,
    UmiFields,
    UnetFields,
    parse_parts,
    read_action_dim,
    read_features,
    sampling,
    target_of,
    without_target,
)
from bid_ros.importing.diffusion_policy.weights import action_spread, check_all_read, fill_denoiser, normaliser
from bid_ros.importing.networks.transformer import ChunkTransformer
from bid_ros.importing.networks.unet import ConditionalUnet, check_sizes
from bid_ros.importing.policy import ImportedPolicy, ImportOptions
from bid_ros.importing.unknown_fields import UnknownFields

UMI: Final = "DiffusionUnetTimmPolicy"
AXES: Final = (
    "poses are along the axes of UMI's tool: x to the right of the camera's image, y down, z ahead; the fingers open "
    "along x. The task's tool_frame must have the same axes, or the policy moves the wrong way"
)
# Arguments that are read on their own, of training alone, or of a call that is never made here.
UMI_OTHERS: Final = (
    *("shape_meta", "noise_scheduler", "obs_encoder", "input_pertub", "train_diffusion_n_samples"),
    "inpaint_fixed_action_prefix",
)
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


def read_umi(checkpoint: Checkpoint, options: ImportOptions) -> ImportedPolicy:
    """Return the policy of a checkpoint.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many.
    """
    policy, where = checkpoint.config["policy"], f"{checkpoint.path}: cfg.policy"
    given, file, tensors = without_target(policy), str(checkpoint.path), checkpoint.tensors
    unknown = UnknownFields(options.ignored)
    fields, network = parse_parts([UmiFields, UnetFields], given, where, unknown, UMI_OTHERS)
    unknown.check_named(where)
    meta: Any = given.get("shape_meta")
    features = tuple(item for item in read_features(meta, where) if not _is_ignored(meta["obs"][item.name]))
    windows = {
        item.name: _number(meta["obs"][item.name], "horizon", f"{where}: shape_meta.obs.{item.name}")
        for item in features
    }
    action_dim = read_action_dim(meta, where)
    steps = _same_pace(meta, windows, where)
    horizon = _number(meta["action"], "horizon", f"{where}: shape_meta.action")
    observing = timm_images(features, windows, given.get("obs_encoder"), tensors, file)
    denoiser = _unet(network, action_dim, observing.network.size(max(windows.values())), horizon, where)
    fill_denoiser(checkpoint, denoiser, transformer=False)
    poses = _poses(checkpoint.config)
    return _imported(
        checkpoint,
        UMI,
        observing,
        action_dim,
        observation_steps=max(windows.values()),
        horizon=horizon,
        denoiser=denoiser,
        settings=sampling(given.get("noise_scheduler"), fields.num_inference_steps, options, where),
        notes=(*unknown.notes, *observing.notes, *_notes(poses, steps)),
        provenance={"pose_repr": poses, "down_sample_steps": steps},
        past=0,
    )


def _is_ignored(feature: Mapping[str, Any]) -> bool:
    return feature.get("type", "low_dim") == "low_dim" and bool(feature.get("ignore_by_policy", False))


def _same_pace(meta: Mapping[str, Any], windows: Mapping[str, int], where: str) -> float:
    """Return the data set's rows from one step to the next; they are the same for all features and actions."""
    paces = {"action": meta["action"].get("down_sample_steps", 1)}
    paces |= {name: meta["obs"][name].get("down_sample_steps", 1) for name, steps in windows.items() if steps > 1}
    for name, pace in paces.items():
        if not isinstance(pace, int | float) or pace != paces["action"]:
            raise BidError(
                f"{where}: down_sample_steps of {name} is {pace!r}; valid is that of the action, {paces['action']}"
            )
    return float(paces["action"])


def _poses(config: Mapping[str, Any]) -> dict[str, str]:
    """Return how observed and commanded poses count, as the training's configuration says it."""
    task = config.get("task")
    said = task.get("pose_repr") if isinstance(task, dict) else None
    return {str(name): str(value) for name, value in said.items()} if isinstance(said, dict) else {}


def _notes(poses: Mapping[str, str], steps: float) -> tuple[str, ...]:
    found = [
        f"rows are {steps:g} rows of the data set apart: say with rate_hz of --space how many a second that is",
        AXES,
    ]
    other = [f"{name} '{value}'" for name, value in poses.items() if value != "relative"]
    if other:
        found.append(f"the training has {', '.join(other)}; config/spaces/umi.yaml describes 'relative' poses")
    return tuple(found)


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
    given, unknown = without_target(policy), UnknownFields(options.ignored)
    network_kind: Any = TransformerFields if transformer else UnetFields
    if kind in LOWDIM:
        (fields,) = parse_parts([PolicyFields], given, where, unknown, OTHERS)
        model = without_target(_mapping(given, "model", where))
        (network,) = parse_parts([network_kind], model, f"{where}.model", unknown, (*OTHERS, *DERIVED))
        observing = numbers_alone(_number(given, "obs_dim", where))
        action_dim = _number(given, "action_dim", where)
    else:
        kinds = [PolicyFields, network_kind, *([ImageFields] if kind in HYBRID else [])]
        fields, network, *image = parse_parts(kinds, given, where, unknown, OTHERS)
        observing = _observing(given, image, checkpoint, where)
        action_dim = read_action_dim(given["shape_meta"], where)
    unknown.check_named(where)
    _check_conditioned(fields, where, "obs_as_cond" if transformer else "obs_as_global_cond", kind in LOWDIM)
    rows = fields.n_action_steps if fields.pred_action_steps_only else fields.horizon
    denoiser = _denoiser(network, observing, fields, action_dim, where)
    fill_denoiser(checkpoint, denoiser, transformer)
    return _imported(
        checkpoint,
        kind,
        observing,
        action_dim,
        observation_steps=fields.n_obs_steps,
        horizon=rows,
        denoiser=denoiser,
        settings=sampling(given.get("noise_scheduler"), fields.num_inference_steps, options, where),
        notes=(*unknown.notes, *observing.notes),
        past=_past_rows(fields, kind),
    )


def _imported(
    checkpoint: Checkpoint, kind: str, observing: Observing, action_dim: int, **others: Any
) -> ImportedPolicy:
    """Return the policy with the normalisers of the checkpoint, all tensors of which are read by now."""
    check_all_read(checkpoint, observing.prefixes)
    tensors, file = checkpoint.tensors, str(checkpoint.path)
    action = normaliser(tensors, "action", action_dim, file)
    vectors = [item for item in observing.features if not item.is_image]
    return ImportedPolicy(
        source=file,
        kind=kind,
        features=observing.features,
        action_dim=action_dim,
        encoder=observing.network,
        observation={item.name: normaliser(tensors, item.name, item.shape[0], file) for item in vectors},
        action=action,
        action_spread=action_spread(tensors, action),
        **others,
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
    return _unet(network, action_dim, fields.n_obs_steps * step, fields.horizon, where)


def _unet(network: UnetFields, action_dim: int, condition: int, horizon: int, where: str) -> ConditionalUnet:
    check_sizes(horizon, network.down_dims, network.kernel_size, network.n_groups, where)
    return ConditionalUnet(
        action_dim,
        condition,
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
