"""LeRobot's types that denoise or follow a flow.

``diffusion`` is a U-Net with key points of images; ``multi_task_dit`` a transformer with CLIP for images and a text.
"""

from typing import Any, Final, get_args

import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.checkpoint import CONFIG, ENVIRONMENT, STATE, WEIGHTS, PolicyFolder
from bid_ros.importing.lerobot.fields import DiffusionFields, DitFields, parse_fields
from bid_ros.importing.lerobot.statistics import imported, needed_state, preparation
from bid_ros.importing.lerobot.text import Clip, encode_text, read_clip
from bid_ros.importing.networks.clip import TextTransformer, VisionTransformer
from bid_ros.importing.networks.observation import CameraEncoder, KeypointNetwork, ObservationNetwork, Preparation
from bid_ros.importing.networks.transformer import DiffusionTransformer
from bid_ros.importing.networks.unet import ConditionalUnet, check_sizes
from bid_ros.importing.policy import ImportedPolicy, ImportOptions, NetworkFeature, denoising
from bid_ros.importing.tensors import check_prefixes, fill, without_prefix
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Integration

NETWORK, RGB = "diffusion.", "rgb_encoder."
OBSERVATION, NOISE = "observation_encoder.", "noise_predictor."
TEXT: Final = f"{OBSERVATION}text_encoder."
TIMES: Final = 1000  # at least so many steps stand for the time 0 to 1 of a flow
Tensors = dict[str, torch.Tensor]


def convert_unet(folder: PolicyFolder, options: ImportOptions) -> ImportedPolicy:
    """Return the policy in the folder.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many.
    """
    fields = parse_fields(DiffusionFields, folder.config, folder.path / CONFIG)
    where = str(folder.path / CONFIG)
    check_sizes(fields.horizon, fields.down_dims, fields.kernel_size, fields.n_groups, where)
    features = (needed_state(folder), *folder.cameras, *filter(None, [folder.vector(ENVIRONMENT)]))
    encoder = _unet_encoder(folder, fields, features)
    denoiser = ConditionalUnet(
        folder.action_dim,
        fields.n_obs_steps * encoder.step,
        fields.down_dims,
        fields.kernel_size,
        fields.n_groups,
        fields.diffusion_step_embed_dim,
        fields.use_film_scale_modulation,
    )
    _fill(folder, encoder, denoiser, fields)
    return imported(
        folder,
        features,
        kind="diffusion",
        observation_steps=fields.n_obs_steps,
        horizon=fields.horizon,
        encoder=encoder,
        denoiser=denoiser,
        settings=denoising(fields, fields.noise_scheduler_type.lower(), fields.num_inference_steps, options),
    )


def _unet_encoder(
    folder: PolicyFolder, fields: DiffusionFields, features: tuple[NetworkFeature, ...]
) -> ObservationNetwork:
    prepared = {
        item.name: preparation(folder, item, fields.resize_shape, fields.crop) for item in features if item.is_image
    }
    separate = fields.use_separate_rgb_encoder_per_camera
    shared = None if separate or not prepared else _network(fields, next(iter(prepared.values())))
    cameras = {}
    for name, own in prepared.items():
        network = shared or _network(fields, own)
        if own.size != next(iter(prepared.values())).size:
            raise BidError(f"{folder.path}: images of '{name}' have another size than those of the first camera")
        cameras[name] = CameraEncoder(own, network)
    vectors = {item.name: item.shape[0] for item in features if not item.is_image}
    # The state comes first, the environment's last, whatever their places in the configuration are.
    order = [STATE, *cameras, *(name for name in vectors if name != STATE)]
    return ObservationNetwork(order, cameras, vectors)


def _network(fields: DiffusionFields, own: Preparation) -> KeypointNetwork:
    points = fields.spatial_softmax_num_keypoints
    return KeypointNetwork(fields.vision_backbone, fields.use_group_norm, own.size, points)


def _fill(
    folder: PolicyFolder, encoder: ObservationNetwork, denoiser: ConditionalUnet, fields: DiffusionFields
) -> None:
    where, tensors = str(folder.path / WEIGHTS), dict(folder.tensors)
    separate = fields.use_separate_rgb_encoder_per_camera
    parts = {f"{NETWORK}unet.": denoiser}
    for index, camera in enumerate(encoder.encoders):
        parts[f"{NETWORK}{RGB}{index}." if separate else f"{NETWORK}{RGB}"] = camera.network
    for prefix, network in parts.items():
        fill(network, without_prefix(tensors, prefix), where, prefix)
    check_prefixes(tensors, tuple(parts), where)


def convert_dit(folder: PolicyFolder, options: ImportOptions) -> ImportedPolicy:
    """Return the policy in the folder, with the text it is told as a constant.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many; or there is no text.
    """
    fields = parse_fields(DitFields, folder.config, folder.path / CONFIG)
    settings = _dit_settings(fields, options)
    features = (needed_state(folder), *folder.cameras)
    where, tensors = str(folder.path / WEIGHTS), dict(folder.tensors)
    clip = read_clip(options.clip, folder.path)
    text = _text_feature(tensors, where, clip, options.text)
    encoder = _dit_encoder(folder, fields, features, clip, tensors, text)
    denoiser = DiffusionTransformer(
        folder.action_dim,
        fields.horizon,
        fields.n_obs_steps * encoder.step,
        fields.hidden_dim,
        fields.num_layers,
        fields.num_heads,
        fields.timestep_embed_dim,
        fields.use_rope,
        fields.rope_base,
        fields.use_positional_encoding,
        settings.train_steps if settings.sampler == "flow" else 1,
    )
    fill(denoiser, without_prefix(tensors, NOISE), where, NOISE)
    check_prefixes(tensors, (NOISE, TEXT, f"{OBSERVATION}vision_encoder"), where)
    return imported(
        folder,
        features,
        kind="multi_task_dit",
        observation_steps=fields.n_obs_steps,
        horizon=fields.horizon,
        encoder=encoder,
        denoiser=denoiser,
        settings=settings,
        more_notes=(f"the policy is always told: {options.text}",),
        provenance={"text": options.text},
    )


def _dit_settings(fields: DitFields, options: ImportOptions) -> DiffusionConfig:
    if fields.objective == "diffusion":
        return denoising(fields, fields.noise_scheduler_type.lower(), fields.num_inference_steps, options)
    integration: Any = options.sampler or fields.integration_method
    if integration not in get_args(Integration):
        raise BidError(f"sampler is '{integration}'; valid for a policy that follows a flow are euler and rk4")
    steps = options.sampling_steps or fields.num_integration_steps
    stride = 2 * -(-TIMES // (2 * steps))  # an even number: rk4 stops half-way
    return DiffusionConfig(
        train_steps=steps * stride,
        prediction="velocity",
        sampling_steps=steps,
        clip=None,
        sampler="flow",
        spacing="leading",
        integration=integration,
    )


def _dit_encoder(
    folder: PolicyFolder,
    fields: DitFields,
    features: tuple[NetworkFeature, ...],
    clip: Clip,
    tensors: Tensors,
    text: torch.Tensor,
) -> ObservationNetwork:
    cameras: dict[str, CameraEncoder] = {}
    shared: VisionTransformer | None = None
    for index, item in enumerate(feature for feature in features if feature.is_image):
        separate = fields.use_separate_rgb_encoder_per_camera
        group = f"vision_encoders.{index}." if separate else "vision_encoder."
        prefix = f"{OBSERVATION}{group}model.vision_model."
        own = preparation(folder, item, fields.image_resize_shape, fields.image_crop_shape)
        network = shared or _vision(tensors, prefix, str(folder.path / WEIGHTS), clip, own)
        shared = None if separate else network
        cameras[item.name] = CameraEncoder(own, network)
    vectors = {STATE: features[0].shape[0]}
    return ObservationNetwork([STATE, *cameras], cameras, vectors, text)


def _vision(tensors: Tensors, prefix: str, where: str, clip: Clip, own: Preparation) -> VisionTransformer:
    """Build the network from the shapes of its tensors; only the number of heads is not among them."""
    weights = without_prefix(tensors, prefix)
    patches = _shape_of(weights, "embeddings.patch_embedding.weight", where, prefix, 4)
    tokens, _ = _shape_of(weights, "embeddings.position_embedding.weight", where, prefix, 2)
    hidden, size = _shape_of(weights, "encoder.layers.0.mlp.fc1.weight", where, prefix, 2)
    patch = patches[2]
    wanted = 1 + (own.size[0] // patch) * (own.size[1] // patch)
    if tokens != wanted:
        raise BidError(
            f"{where}: tensor '{prefix}embeddings.position_embedding.weight' has {tokens} places; an input of "
            f"{own.size} needs {wanted}"
        )
    network = VisionTransformer(size, hidden, clip.heads(size, "vision_config"), _layers(weights), patch, tokens)
    fill(network, weights, where, prefix)
    return network


def _text_feature(tensors: Tensors, where: str, clip: Clip, text: str) -> torch.Tensor:
    prefix = f"{TEXT}text_encoder.text_model."
    weights = without_prefix(tensors, prefix)
    vocabulary, size = _shape_of(weights, "embeddings.token_embedding.weight", where, prefix, 2)
    length, _ = _shape_of(weights, "embeddings.position_embedding.weight", where, prefix, 2)
    hidden, _ = _shape_of(weights, "encoder.layers.0.mlp.fc1.weight", where, prefix, 2)
    network = TextTransformer(size, hidden, clip.heads(size, "text_config"), _layers(weights), vocabulary, length)
    fill(network, weights, where, prefix)
    projection = f"{TEXT}projection."
    outputs, _ = _shape_of(tensors, f"{projection}weight", where, "", 2)
    last = torch.nn.Linear(size, outputs)
    fill(last, without_prefix(tensors, projection), where, projection)
    tokens = torch.tensor([encode_text(clip, text, length)])
    highest = int(tokens.max())
    if highest >= vocabulary:
        raise BidError(f"{clip.path}: the text has the token {highest}; the weights know up to {vocabulary - 1}")
    with torch.no_grad():
        feature: torch.Tensor = last(network.eval()(tokens))[0]
    return feature


def _shape_of(tensors: Tensors, name: str, where: str, prefix: str, length: int) -> tuple[int, ...]:
    found = tensors.get(name)
    if found is None:
        raise BidError(f"{where} lacks the tensor '{prefix}{name}'; valid is a CLIP as LeRobot saves it")
    if found.ndim != length:
        raise BidError(f"{where}: tensor '{prefix}{name}' has shape {tuple(found.shape)}; valid are {length} extents")
    return tuple(found.shape)


def _layers(weights: Tensors) -> int:
    return 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layers."))
