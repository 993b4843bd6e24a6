"""Policies of the published UMI: a U-Net on relative poses, class ``DiffusionUnetTimmPolicy``.

Chi et al., "Universal Manipulation Interface", RSS 2024. Its first row is that of the newest observation.
"""

from collections.abc import Mapping
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import Checkpoint
from bid_ros.importing.diffusion_policy.denoiser_weights import check_all_read, fill_denoiser, read_action_dim
from bid_ros.importing.diffusion_policy.encoders import read_features
from bid_ros.importing.diffusion_policy.fields import UmiFields, UnetFields, parse_parts, sampling, without_target
from bid_ros.importing.diffusion_policy.normalisers import action_spread, normaliser
from bid_ros.importing.diffusion_policy.timm_encoder import timm_images
from bid_ros.importing.networks.unet import ConditionalUnet, check_sizes
from bid_ros.importing.policy import ImportedPolicy, ImportOptions

KIND: Final = "DiffusionUnetTimmPolicy"
AXES: Final = (
    "poses are along the axes of UMI's tool: x to the right of the camera's image, y down, z ahead; the fingers open "
    "along x. The task's tool_frame must have the same axes, or the policy moves the wrong way"
)
# Arguments that are read on their own, of training alone, or of a call that is never made here.
OTHERS: Final = (
    *("shape_meta", "noise_scheduler", "obs_encoder", "input_pertub", "train_diffusion_n_samples"),
    "inpaint_fixed_action_prefix",
)


def read_umi(checkpoint: Checkpoint, options: ImportOptions) -> ImportedPolicy:
    """Return the policy of a checkpoint.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many.
    """
    policy, where = checkpoint.config["policy"], f"{checkpoint.path}: cfg.policy"
    given, file, tensors = without_target(policy), str(checkpoint.path), checkpoint.tensors
    fields, network = parse_parts([UmiFields, UnetFields], given, where, OTHERS)
    meta: Any = given.get("shape_meta")
    features = tuple(item for item in read_features(meta, where) if not _is_ignored(meta["obs"][item.name]))
    windows = {
        item.name: _count(meta["obs"][item.name], "horizon", f"{where}: shape_meta.obs.{item.name}")
        for item in features
    }
    action_dim = read_action_dim(meta, where)
    steps = _same_pace(meta, windows, where)
    horizon = _count(meta["action"], "horizon", f"{where}: shape_meta.action")
    check_sizes(horizon, network.down_dims, network.kernel_size, network.n_groups, where)
    observing = timm_images(features, windows, given.get("obs_encoder"), tensors, file)
    denoiser = ConditionalUnet(
        action_dim,
        observing.network.size(max(windows.values())),
        network.down_dims,
        network.kernel_size,
        network.n_groups,
        network.diffusion_step_embed_dim,
        network.cond_predict_scale,
    )
    fill_denoiser(checkpoint, denoiser, transformer=False)
    check_all_read(checkpoint, observing)
    action = normaliser(tensors, "action", action_dim, file)
    vectors = [item for item in features if not item.is_image]
    poses = _poses(checkpoint.config)
    return ImportedPolicy(
        source=file,
        kind=KIND,
        features=features,
        observation_steps=max(windows.values()),
        horizon=horizon,
        action_dim=action_dim,
        encoder=observing.network,
        denoiser=denoiser,
        settings=sampling(given.get("noise_scheduler"), fields.num_inference_steps, options, where),
        observation={item.name: normaliser(tensors, item.name, item.shape[0], file) for item in vectors},
        action=action,
        action_spread=action_spread(tensors, action),
        notes=(*observing.notes, *_notes(poses, steps)),
        provenance={"pose_repr": poses, "down_sample_steps": steps},
        past=0,
    )


def _is_ignored(feature: Mapping[str, Any]) -> bool:
    return feature.get("type", "low_dim") == "low_dim" and bool(feature.get("ignore_by_policy", False))


def _count(content: Mapping[str, Any], name: str, where: str) -> int:
    found = content.get(name)
    if type(found) is not int or found < 1:
        raise BidError(f"{where}.{name} is {found!r}; valid is a whole number from 1 on")
    return found


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
