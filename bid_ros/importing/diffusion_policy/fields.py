"""``cfg.policy`` of a checkpoint. The classes' own defaults are not used: published configurations differ from them.

A field without a default here must be in the file.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from bid_ros.core.errors import BidError
from bid_ros.core.settings import Count, Positive, parse_settings, settings
from bid_ros.importing.policy import ImportOptions, NetworkFeature, denoising, network_feature
from bid_ros.importing.unknown_fields import UnknownFields
from bid_ros.policy.diffusion.sampler import DiffusionConfig

Size = tuple[Count, Count]
SCHEDULERS: Final = {"DDPMScheduler": "ddpm", "DDIMScheduler": "ddim"}


@settings
class SchedulerFields:
    """``noise_scheduler``, of the package diffusers."""

    num_train_timesteps: Count
    beta_schedule: Literal["squaredcos_cap_v2", "linear"]
    prediction_type: Literal["epsilon", "sample"]
    clip_sample: bool
    beta_start: Positive = 1e-4
    beta_end: Positive = 0.02
    clip_sample_range: Positive = 1.0
    variance_type: Literal["fixed_small", "fixed_small_log"] = "fixed_small"
    set_alpha_to_one: Literal[True] = True
    steps_offset: Literal[0] = 0


@settings
class UnetFields:
    """Of the U-Net."""

    diffusion_step_embed_dim: Annotated[int, Field(ge=4)]
    down_dims: Annotated[tuple[Count, ...], Field(min_length=1)]
    kernel_size: Count
    n_groups: Count
    cond_predict_scale: bool


@settings
class TransformerFields:
    """Of the transformer."""

    n_layer: Count
    n_head: Count
    n_emb: Annotated[int, Field(ge=4)]
    causal_attn: bool
    n_cond_layers: Annotated[int, Field(ge=0)]
    time_as_cond: Literal[True]


@settings
class PolicyFields:
    """Of every policy."""

    horizon: Count
    n_obs_steps: Count
    n_action_steps: Count
    num_inference_steps: Count | None = None
    pred_action_steps_only: bool = False
    oa_step_convention: bool = False
    obs_as_global_cond: bool | None = None
    obs_as_local_cond: bool = False
    obs_as_cond: bool | None = None


@settings
class ImageFields:
    """Of the encoder of a hybrid policy."""

    crop_shape: Size | None
    obs_encoder_group_norm: bool
    eval_fixed_crop: bool


@settings
class BackboneFields:
    """``rgb_model``: a residual network of torchvision."""

    name: str
    weights: str | None = None


@settings
class MultiImageFields:
    """``obs_encoder`` of a multi-image policy. Sizes are one for all cameras, or one for each."""

    use_group_norm: bool
    share_rgb_model: bool
    imagenet_norm: bool
    random_crop: bool
    resize_shape: Size | dict[str, Size] | None
    crop_shape: Size | dict[str, Size] | None


@settings
class TimmFields:
    """``obs_encoder`` of a policy of UMI."""

    model_name: str
    pretrained: bool
    frozen: bool
    global_pool: Literal[""]
    transforms: Any
    use_group_norm: bool = False
    share_rgb_model: bool = False
    imagenet_norm: bool = False
    feature_aggregation: str | None = "spatial_embedding"
    downsample_ratio: Literal[16, 32] = 32
    position_encording: str = "learnable"  # spelled so in the checkpoints


@settings
class UmiFields:
    """Of a policy of UMI, beside those of the U-Net."""

    num_inference_steps: Count | None = None
    obs_as_global_cond: Literal[True] = True


def sampling(content: Any, steps: int | None, options: ImportOptions, where: str) -> DiffusionConfig:
    """Return how the policy is sampled.

    Args:
        content: ``noise_scheduler``.
        steps: ``num_inference_steps``.
        options: what a person says about it.
        where: names the file, for errors.

    Raises:
        BidError: the scheduler is unknown, or one of its fields is missing or impossible.
    """
    target = target_of(content, f"{where}: noise_scheduler")
    if target not in SCHEDULERS:
        raise BidError(f"{where}: noise_scheduler is a {target}; valid are {', '.join(SCHEDULERS)}")
    fields = parse_all(SchedulerFields, without_target(content), f"{where}: noise_scheduler")
    return denoising(fields, SCHEDULERS[target], steps, options)


def target_of(content: Any, where: str) -> str:
    """Return the last part of ``_target_``, the name of a class. Raises BidError if there is none."""
    target = content.get("_target_") if isinstance(content, dict) else None
    if not isinstance(target, str):
        raise BidError(f"{where} has no _target_; valid is a mapping that names a class")
    return target.rpartition(".")[2]


def without_target(content: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the class."""
    return {name: value for name, value in content.items() if name != "_target_"}


def parse_all(kind: Any, content: dict[str, Any], where: str) -> Any:
    """Return ``kind`` of a mapping that has its fields and no other. Raises BidError, also for an interpolation."""
    for name, value in content.items():
        if isinstance(value, str) and "${" in value:
            raise BidError(f"{where}: {name} is '{value}', which was not resolved; valid is a value")
    return parse_settings(kind, content, where)


def parse_parts(
    kinds: list[Any], content: dict[str, Any], where: str, unknown: UnknownFields, others: tuple[str, ...] = ()
) -> list[Any]:
    """Return several kinds of fields that one mapping has.

    Args:
        kinds: classes of settings.
        content: the mapping.
        where: names it, for errors.
        unknown: judges the fields of no kind.
        others: names that may be there too.

    Raises:
        BidError: a field is missing, impossible, or of no kind.
    """
    known = {name for kind in kinds for name in kind.__annotations__}
    content = unknown.without(content, known.__contains__, others.__contains__, where, "bid_ros does not know")
    return [
        parse_all(kind, {name: value for name, value in content.items() if name in kind.__annotations__}, where)
        for kind in kinds
    ]


def read_features(shape_meta: Any, where: str) -> tuple[NetworkFeature, ...]:
    """Return what ``shape_meta`` says is observed. Raises BidError if it has another form."""
    observed = shape_meta.get("obs") if isinstance(shape_meta, dict) else None
    if not isinstance(observed, dict) or not observed:
        raise BidError(f"{where}: shape_meta.obs is {observed!r}; valid is a mapping of features")
    features = []
    for name, content in observed.items():
        if not isinstance(content, dict):
            raise BidError(f"{where}: shape_meta.obs.{name} is {content!r}; valid is a mapping with type and shape")
        kind: Any = content.get("type", "low_dim")
        shape: Any = content.get("shape")
        feature = network_feature(name, shape, kind == "rgb") if kind in ("rgb", "low_dim") else None
        if feature is None:
            raise BidError(
                f"{where}: shape_meta.obs.{name} has type '{kind}' and shape {shape}; valid are rgb with "
                "[3, height, width] and low_dim with [size]"
            )
        features.append(feature)
    return tuple(features)


def read_action_dim(shape_meta: Any, where: str) -> int:
    """Return D. Raises BidError if ``shape_meta`` says nothing of it."""
    action = shape_meta.get("action") if isinstance(shape_meta, dict) else None
    shape = action.get("shape") if isinstance(action, dict) else None
    feature = network_feature("action", shape, image=False)
    if feature is None:
        raise BidError(f"{where}.shape_meta.action.shape is {shape!r}; valid is [D]")
    return feature.shape[0]
