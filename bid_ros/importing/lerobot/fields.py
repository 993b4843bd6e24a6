"""Fields of LeRobot's configurations: those that decide what a network computes, with the defaults of old versions.

A newer version writes every field. So a missing one means the default of the version before the field was written.
"""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from pydantic import Field

from bid_ros.core.settings import Count, Positive, parse_settings, settings
from bid_ros.policy.vqbet.codes import MOST_CODES, Temperature

Kind = TypeVar("Kind")
Size = tuple[Count, Count]
# Fields of training, of files and of devices: a sampled chunk does not depend on them.
IGNORED: Final = (
    *("type", "input_features", "output_features", "normalization_mapping", "device", "use_amp", "use_peft"),
    *("push_to_hub", "repo_id", "private", "tags", "license", "pretrained_path", "pretrained_revision"),
    *("n_action_steps", "drop_n_last_frames", "crop_is_random", "image_crop_is_random", "pretrained_backbone_weights"),
    *("gradient_checkpointing", "compile_model", "compile_mode", "do_mask_loss_for_padding", "dropout"),
    *("n_vqvae_training_steps", "gpt_block_size", "offset_loss_weight"),
    *("primary_code_loss_weight", "secondary_code_loss_weight", "vision_encoder_lr_multiplier"),
    *("vision_encoder_name", "text_encoder_name", "sigma_min", "n_vae_encoder_layers", "kl_weight"),
    "mlp_hidden_dim",  # of VQ-BeT up to 0.3.3: written, never read
)
IGNORED_BEGINNINGS: Final = ("optimizer_", "scheduler_", "timestep_sampling_", "tokenizer_")


@settings
class NoiseFields:
    """How a policy of LeRobot that denoises is noised and sampled: names and meanings are LeRobot's."""

    noise_scheduler_type: Literal["DDPM", "DDIM"] = "DDPM"
    num_train_timesteps: Count = 100
    beta_schedule: Literal["squaredcos_cap_v2", "linear"] = "squaredcos_cap_v2"
    beta_start: Positive = 1e-4
    beta_end: Positive = 0.02
    prediction_type: Literal["epsilon", "sample"] = "epsilon"
    clip_sample: bool = True
    clip_sample_range: Positive = 1.0
    num_inference_steps: Count | None = None


@settings
class DiffusionFields(NoiseFields):
    """Of type ``diffusion``: names and meanings are LeRobot's."""

    n_obs_steps: Count = 2
    horizon: Count = 16
    vision_backbone: str = "resnet18"
    resize_shape: Size | None = None
    crop_ratio: Annotated[float, Field(gt=0, le=1)] = 1.0
    crop_shape: Size | None = (84, 84)
    use_group_norm: bool = True
    spatial_softmax_num_keypoints: Count = 32
    use_separate_rgb_encoder_per_camera: bool = False
    down_dims: Annotated[tuple[Count, ...], Field(min_length=1)] = (512, 1024, 2048)
    kernel_size: Count = 5
    n_groups: Count = 8
    diffusion_step_embed_dim: Annotated[int, Field(ge=4)] = 128
    use_film_scale_modulation: bool = True

    @property
    def crop(self) -> Size | None:
        """Height and width that are kept of an image, after it was resized."""
        if self.resize_shape is None:
            return self.crop_shape
        if self.crop_ratio == 1:
            return None
        height, width = (int(size * self.crop_ratio) for size in self.resize_shape)
        return height, width


@settings
class DitFields(NoiseFields):
    """Of type ``multi_task_dit``: names and meanings are LeRobot's."""

    n_obs_steps: Count = 2
    horizon: Count = 32
    objective: Literal["diffusion", "flow_matching"] = "diffusion"
    num_integration_steps: Count = 100
    integration_method: Literal["euler", "rk4"] = "euler"
    hidden_dim: Count = 512
    num_layers: Count = 6
    num_heads: Count = 8
    use_positional_encoding: bool = False
    timestep_embed_dim: Annotated[int, Field(ge=4)] = 256
    use_rope: bool = True
    rope_base: Positive = 10000.0
    use_separate_rgb_encoder_per_camera: bool = False
    image_resize_shape: Size | None = None
    image_crop_shape: Size | None = (224, 224)


@settings
class VqBetFields:
    """Of type ``vqbet``: names and meanings are LeRobot's."""

    n_obs_steps: Count = 5
    n_action_pred_token: Count = 3
    action_chunk_size: Count = 5
    vision_backbone: str = "resnet18"
    crop_shape: Size | None = (84, 84)
    use_group_norm: bool = True
    spatial_softmax_num_keypoints: Count = 32
    vqvae_n_embed: Annotated[int, Field(ge=2, le=MOST_CODES)] = 16
    vqvae_embedding_dim: Count = 256
    vqvae_enc_hidden_dim: Count = 128
    gpt_input_dim: Count = 512
    gpt_output_dim: Count = 512
    gpt_n_layer: Count = 8
    gpt_n_head: Count = 8
    gpt_hidden_dim: Count = 512
    bet_softmax_temperature: Temperature = 0.1
    sequentially_select: bool = False


@settings
class ActFields:
    """Of type ``act``: names and meanings are LeRobot's."""

    n_obs_steps: Literal[1] = 1
    chunk_size: Count = 100
    n_action_steps: Count = 100
    vision_backbone: str = "resnet18"
    replace_final_stride_with_dilation: bool | Literal[0, 1] = False
    pre_norm: bool = False
    dim_model: Count = 512
    n_heads: Count = 8
    dim_feedforward: Count = 3200
    feedforward_activation: Literal["relu", "gelu"] = "relu"
    n_encoder_layers: Count = 4
    n_decoder_layers: Count = 1
    use_vae: bool = True
    latent_dim: Count = 32
    temporal_ensemble_coeff: float | None = None


def is_unused(name: str) -> bool:
    """Return whether LeRobot has a field of this name that no sampled chunk depends on."""
    return name in IGNORED or name.startswith(IGNORED_BEGINNINGS)


def parse_fields(kind: type[Kind], config: Mapping[str, Any], path: Path) -> Kind:
    """Return the fields of a configuration that decide what the network computes.

    The others were judged by :class:`bid_ros.importing.unknown_fields.UnknownFields`. Raises BidError for an impossible
    value.
    """
    known = {item.name: config[item.name] for item in fields_of(cast(Any, kind)) if item.name in config}
    return parse_settings(kind, known, str(path))
