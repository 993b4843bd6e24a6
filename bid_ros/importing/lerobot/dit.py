"""LeRobot's type ``multi_task_dit``: a transformer that denoises or follows a flow, with CLIP for images and a text."""

from typing import Final

import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.fields import DitFields, noise_settings, parse_fields
from bid_ros.importing.lerobot.folder import CONFIG, STATE, WEIGHTS, PolicyFolder
from bid_ros.importing.lerobot.observing import action_statistics, needed_state, normalisers, notes, preparation
from bid_ros.importing.lerobot.text import Clip, encode_text, read_clip
from bid_ros.importing.networks.clip import TextTransformer, VisionTransformer
from bid_ros.importing.networks.dit import DiffusionTransformer
from bid_ros.importing.networks.images import CameraEncoder, Preparation
from bid_ros.importing.networks.observation import ObservationNetwork
from bid_ros.importing.policy import ImportedPolicy, ImportOptions, NetworkFeature
from bid_ros.importing.tensors import fill, without_prefix
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Integration

OBSERVATION, NOISE = "observation_encoder.", "noise_predictor."
TEXT: Final = f"{OBSERVATION}text_encoder."
TIMES: Final = 1000  # at least so many steps stand for the time 0 to 1 of a flow
Tensors = dict[str, torch.Tensor]


def convert(folder: PolicyFolder, options: ImportOptions) -> ImportedPolicy:
    """Return the policy in the folder, with the text it is told as a constant.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many; or there is no text.
    """
    fields = parse_fields(DitFields, folder.config, folder.path / CONFIG)
    settings = _settings(fields, options)
    features = (needed_state(folder), *folder.cameras)
    where, tensors = str(folder.path / WEIGHTS), dict(folder.tensors)
    clip = read_clip(options.clip, folder.path)
    text = _text_feature(tensors, where, clip, options.text)
    encoder = _encoder(folder, fields, features, clip, tensors, text)
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
    for name in tensors:
        if not name.startswith((NOISE, TEXT, f"{OBSERVATION}vision_encoder")):
            raise BidError(f"{where} has the tensor '{name}', which the configuration has no place for")
    action, action_spread = action_statistics(folder)
    return ImportedPolicy(
        source=str(folder.path),
        kind="multi_task_dit",
        features=features,
        observation_steps=fields.n_obs_steps,
        horizon=fields.horizon,
        action_dim=folder.action_dim,
        encoder=encoder,
        denoiser=denoiser,
        settings=settings,
        observation=normalisers(folder, features),
        action=action,
        action_spread=action_spread,
        notes=(*notes(folder, features), f"the policy is always told: {options.text}"),
        provenance={"text": options.text},
    )


def _settings(fields: DitFields, options: ImportOptions) -> DiffusionConfig:
    if fields.objective == "diffusion":
        return noise_settings(fields, options)
    steps = options.sampling_steps or fields.num_integration_steps
    stride = 2 * -(-TIMES // (2 * steps))  # an even number: rk4 stops half-way
    return DiffusionConfig(
        train_steps=steps * stride,
        prediction="velocity",
        sampling_steps=steps,
        clip=None,
        sampler="flow",
        spacing="leading",
        integration=_integration(options.sampler or fields.integration_method),
    )


def _integration(name: str) -> Integration:
    if name == "euler":
        return "euler"
    if name == "rk4":
        return "rk4"
    raise BidError(f"sampler is '{name}'; valid for a policy that follows a flow are euler and rk4")


def _encoder(
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
        cameras[item.name] = CameraEncoder(own, network, network.post_layernorm.weight.numel())
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
