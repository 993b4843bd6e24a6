"""LeRobot's type ``diffusion``: a U-Net, with key points of images."""

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.fields import DiffusionFields, noise_settings, parse_fields
from bid_ros.importing.lerobot.folder import CONFIG, ENVIRONMENT, STATE, WEIGHTS, PolicyFolder
from bid_ros.importing.lerobot.observing import action_statistics, needed_state, normalisers, notes, preparation
from bid_ros.importing.networks.images import CameraEncoder, KeypointNetwork, Preparation
from bid_ros.importing.networks.observation import ObservationNetwork
from bid_ros.importing.networks.unet import ConditionalUnet, check_sizes
from bid_ros.importing.policy import ImportedPolicy, ImportOptions, NetworkFeature
from bid_ros.importing.tensors import fill, without_prefix

NETWORK, RGB = "diffusion.", "rgb_encoder."


def convert(folder: PolicyFolder, options: ImportOptions) -> ImportedPolicy:
    """Return the policy in the folder.

    Raises:
        BidError: a field, a statistic or a tensor is missing, impossible or too many.
    """
    fields = parse_fields(DiffusionFields, folder.config, folder.path / CONFIG)
    where = str(folder.path / CONFIG)
    check_sizes(fields.horizon, fields.down_dims, fields.kernel_size, fields.n_groups, where)
    features = (needed_state(folder), *folder.cameras, *filter(None, [folder.vector(ENVIRONMENT)]))
    encoder = _encoder(folder, fields, features)
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
    action, action_spread = action_statistics(folder)
    return ImportedPolicy(
        source=str(folder.path),
        kind="diffusion",
        features=features,
        observation_steps=fields.n_obs_steps,
        horizon=fields.horizon,
        action_dim=folder.action_dim,
        encoder=encoder,
        denoiser=denoiser,
        settings=noise_settings(fields, options),
        observation=normalisers(folder, features),
        action=action,
        action_spread=action_spread,
        notes=notes(folder, features),
    )


def _encoder(folder: PolicyFolder, fields: DiffusionFields, features: tuple[NetworkFeature, ...]) -> ObservationNetwork:
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
        cameras[name] = CameraEncoder(own, network, network.features)
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
    for name in tensors:
        if not name.startswith(tuple(parts)):
            raise BidError(f"{where} has the tensor '{name}', which the configuration has no place for")
