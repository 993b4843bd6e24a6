"""The four ways in which published policies observe: numbers alone, hybrid (robomimic), multi-image and timm encoders.

The last one is UMI's: networks of the package timm, then vectors, each with all of its steps (Chi et al., "Universal
Manipulation Interface", RSS 2024, class ``TimmObsEncoder``). Its field ``imagenet_norm`` changes nothing there, and so
it changes nothing here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.fields import (
    BackboneFields,
    ImageFields,
    MultiImageFields,
    Size,
    TimmFields,
    parse_all,
    target_of,
    without_target,
)
from bid_ros.importing.diffusion_policy.weights import KEYPOINTS, RESNET, renamed, scale_and_offset
from bid_ros.importing.networks.clip import HEAD, PatchTransformer, sizes_of
from bid_ros.importing.networks.observation import (
    CameraEncoder,
    FeaturewiseNetwork,
    KeypointNetwork,
    ObservationNetwork,
    PooledNetwork,
    Preparation,
)
from bid_ros.importing.networks.resnet import LAYERS, Pool, PooledMap, trunk
from bid_ros.importing.policy import NetworkFeature
from bid_ros.importing.tensors import fill, without_prefix

OBSERVATION: Final = "obs"
ENCODER: Final = "obs_encoder."
IMAGENET_MEAN: Final = np.array([0.485, 0.456, 0.406])
IMAGENET_STD: Final = np.array([0.229, 0.224, 0.225])
Tensors = Mapping[str, torch.Tensor]
MODELS: Final = f"{ENCODER}key_model_map."
PATCHES: Final = re.compile(r"vit_(?:tiny|small|base|large)_patch\d+(_clip)?(_quickgelu)?_\d+")
MODEL_NAMES: Final = f"{', '.join(LAYERS)}, and vit_SIZE_patchN_224 and vit_SIZE_patchN_clip_224 from tiny to large"
# Augmentations, which the published policy draws also when it runs.
DRAWN: Final = ("ColorJitter", "RandomRotation", "RandomPerspective", "ElasticTransform")
NOTE: Final = (
    "the published policy crops images and changes their colours at random, also when it runs; here the middle of "
    "each image is kept, with its own colours"
)


@dataclass(frozen=True, eq=False)
class Observing:
    """How a policy observes.

    Attributes:
        features: what it observes, in the order of the file.
        network: observation to condition.
        prefixes: of the tensors that were put into it.
        notes: what a person should know.
    """

    features: tuple[NetworkFeature, ...]
    network: ObservationNetwork
    prefixes: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def numbers_alone(size: int) -> Observing:
    """Return how a low-dimensional policy observes: one vector, named ``obs``."""
    feature = NetworkFeature(OBSERVATION, (size,))
    return Observing((feature,), ObservationNetwork([OBSERVATION], {}, {OBSERVATION: size}))


def hybrid(features: tuple[NetworkFeature, ...], fields: ImageFields, tensors: Tensors, where: str) -> Observing:
    """Return how a hybrid policy observes: robomimic's encoder, with the features in the order of the file.

    Raises:
        BidError: a tensor is missing, of another shape or too many.
    """
    cameras, prefixes = {}, []
    for item in features:
        if not item.is_image:
            continue
        prefix = f"{ENCODER}obs_nets.{item.name}."
        weights = renamed(without_prefix(tensors, prefix), KEYPOINTS)
        own = _preparation(item, None, fields.crop_shape, False, tensors, where)
        points, outputs = (_rows(weights, name, where, prefix) for name in ("pool.nets.weight", "out.weight"))
        network = KeypointNetwork("resnet18", fields.obs_encoder_group_norm, own.size, points, outputs)
        fill(network, weights, where, prefix)
        cameras[item.name] = CameraEncoder(own, network)
        prefixes.append(prefix)
    random = fields.crop_shape is not None and not fields.eval_fixed_crop and cameras
    note = "the policy was evaluated with crops at random places; here the middle of each image is kept"
    vectors = {item.name: item.shape[0] for item in features if not item.is_image}
    network = ObservationNetwork([item.name for item in features], cameras, vectors)
    return Observing(features, network, tuple(prefixes), (note,) if random else ())


def multi_image(features: tuple[NetworkFeature, ...], content: Any, tensors: Tensors, where: str) -> Observing:
    """Return how a multi-image policy observes: cameras by name, then vectors by name.

    Raises:
        BidError: a field is missing or unknown; a tensor is missing, of another shape or too many.
    """
    if target_of(content, f"{where}: obs_encoder") != "MultiImageObsEncoder":
        raise BidError(f"{where}: obs_encoder is a {content['_target_']}; valid is MultiImageObsEncoder")
    given = without_target(content)
    given.pop("shape_meta", None)
    model = given.pop("rgb_model", None)
    if target_of(model, f"{where}: obs_encoder.rgb_model") != "get_resnet":
        raise BidError(f"{where}: obs_encoder.rgb_model is a {model['_target_']}; valid is get_resnet")
    fields = parse_all(MultiImageFields, given, f"{where}: obs_encoder")
    backbone = parse_all(BackboneFields, without_target(model), f"{where}: obs_encoder.rgb_model")
    cameras, prefixes, shared = {}, [], None
    for item in sorted((item for item in features if item.is_image), key=lambda item: item.name):
        crop = _size_for(fields.crop_shape, item, where) if fields.random_crop else None  # else the class crops nothing
        resize = _size_for(fields.resize_shape, item, where)
        own = _preparation(item, resize, crop, fields.imagenet_norm, tensors, where)
        prefix = f"{ENCODER}key_model_map.{'rgb' if fields.share_rgb_model else item.name}."
        network = shared or PooledNetwork(backbone.name, fields.use_group_norm)
        if shared is None:
            fill(network, renamed(without_prefix(tensors, prefix), RESNET), where, prefix)
        shared = network if fields.share_rgb_model else None
        cameras[item.name] = CameraEncoder(own, network)
        prefixes.append(prefix)
    vectors = {item.name: item.shape[0] for item in features if not item.is_image}
    network = ObservationNetwork([*cameras, *sorted(vectors)], cameras, vectors)
    return Observing(features, network, tuple(prefixes))


def _preparation(
    camera: NetworkFeature,
    resize: Size | None,
    crop: Size | None,
    imagenet: bool,
    tensors: Tensors,
    where: str,
    crop_first: bool = False,
) -> Preparation:
    """Return how an image becomes the network's input; a second normalisation is folded into the first."""
    scale, offset = scale_and_offset(tensors, camera.name, 3, where)
    if imagenet:
        scale, offset = scale / IMAGENET_STD, (offset - IMAGENET_MEAN) / IMAGENET_STD
    height, width, _ = camera.shape
    where = f"{where}: '{camera.name}': "
    return Preparation((height, width), scale.tolist(), offset.tolist(), resize, crop, crop_first, where)


def _size_for(sizes: Size | dict[str, Size] | None, camera: NetworkFeature, where: str) -> Size | None:
    if not isinstance(sizes, dict):
        return sizes
    if camera.name not in sizes:
        raise BidError(f"{where}: obs_encoder has sizes for {', '.join(sizes)}; valid is one for '{camera.name}' too")
    return sizes[camera.name]


def _rows(weights: Tensors, name: str, where: str, prefix: str) -> int:
    if name not in weights or weights[name].ndim < 2:
        raise BidError(f"{where} lacks the key points or the last layer of the encoder '{prefix}'; valid are both")
    return int(weights[name].shape[0])


def timm_images(
    features: tuple[NetworkFeature, ...], windows: Mapping[str, int], content: Any, tensors: Tensors, where: str
) -> Observing:
    """Return how the policy observes: cameras by name, then vectors by name.

    Args:
        features: what it observes.
        windows: observed steps of each feature.
        content: ``obs_encoder``.
        tensors: of the checkpoint.
        where: names the file.

    Raises:
        BidError: a field is missing or unknown; a tensor is missing, of another shape or too many.
    """
    if target_of(content, f"{where}: obs_encoder") != "TimmObsEncoder":
        raise BidError(f"{where}: obs_encoder is a {content['_target_']}; valid is TimmObsEncoder")
    given = {name: value for name, value in without_target(content).items() if name != "shape_meta"}
    fields = parse_all(TimmFields, given, f"{where}: obs_encoder")
    images = sorted((item for item in features if item.is_image), key=lambda item: item.name)
    if not images or len({item.shape for item in images}) > 1:
        raise BidError(f"{where}: shape_meta.obs has {len(images)} cameras; valid are one or more of the same size")
    ratio, drawn = _transforms(fields.transforms, where)
    height, width, _ = images[0].shape
    pool, names = _pool(fields, (height, width), tensors, where)
    cameras, prefixes = {}, list(names)
    for item in images:
        side = int(height * ratio)
        crop, resize = (None, None) if ratio == 1 else ((side, side), (height, height))
        own = _preparation(item, resize, crop, False, tensors, where, crop_first=True)
        prefix = f"{MODELS}{item.name}."
        network = _network(fields, pool, own.size, without_prefix(tensors, prefix), where, prefix)
        cameras[item.name] = CameraEncoder(own, network)
        prefixes.append(prefix)
    vectors = {item.name: item.shape[0] for item in features if not item.is_image}
    encoder = FeaturewiseNetwork([*cameras, *sorted(vectors)], cameras, vectors, windows)
    return Observing(features, encoder, tuple(prefixes), (NOTE,) if drawn else ())


def _transforms(content: Any, where: str) -> tuple[float, bool]:
    """Return the share of an image's height that is kept, and whether anything is drawn at random."""
    if content is not None and not (isinstance(content, list) and all(isinstance(item, dict) for item in content)):
        raise BidError(f"{where}: obs_encoder.transforms is {content!r}; valid is a list of mappings")
    ratio, given = 1.0, list(content or [])
    if given and given[0].get("type") == "RandomCrop":
        found: Any = given.pop(0).get("ratio")
        if not isinstance(found, int | float) or not 0 < found <= 1:
            raise BidError(f"{where}: the ratio of RandomCrop is {found!r}; valid is a number above 0, up to 1")
        ratio = float(found)
    for item in given:
        name = target_of(item, f"{where}: a part of obs_encoder.transforms")
        if name not in DRAWN:
            raise BidError(
                f"{where}: obs_encoder.transforms has {name}; valid are RandomCrop first, {', '.join(DRAWN)}"
            )
    return ratio, bool(content)


def _pool(
    fields: TimmFields, size: tuple[int, int], tensors: Tensors, where: str
) -> tuple[Pool | None, tuple[str, ...]]:
    """Return what makes a feature of a residual network's map, and the names of its tensors. None: patches."""
    name = fields.model_name.partition(".")[0]
    if name not in LAYERS:
        return None, ()
    _, channels = _trunk(name, fields)
    height, width = (extent // fields.downsample_ratio for extent in size)
    way = str(fields.feature_aggregation)
    try:
        pool = Pool(way, height * (height if way == "attention_pool_2d" else width), channels)
    except BidError as error:
        raise BidError(f"{where}: obs_encoder: {error}") from error
    own = {item: value for item, value in tensors.items() if item.startswith(ENCODER) and value.numel()}
    own = {item: value for item, value in own.items() if not item.startswith(MODELS)}
    fill(pool, without_prefix(own, ENCODER), where, ENCODER)
    return pool, tuple(own)


def _trunk(name: str, fields: TimmFields) -> tuple[nn.Module, int]:
    network, channels = trunk(name, fields.use_group_norm and not fields.pretrained)
    return (network, channels) if fields.downsample_ratio == 32 else (network[:-1], channels // 2)


def _network(
    fields: TimmFields,
    pool: Pool | None,
    size: tuple[int, int],
    weights: dict[str, torch.Tensor],
    where: str,
    prefix: str,
) -> PatchTransformer | PooledMap:
    if pool is not None:
        network, channels = _trunk(fields.model_name.partition(".")[0], fields)
        fill(network, weights, where, prefix)
        return PooledMap(network, pool, channels)
    kind = PATCHES.fullmatch(fields.model_name.partition(".")[0])
    if kind is None:
        raise BidError(f"{where}: obs_encoder.model_name is '{fields.model_name}'; valid are {MODEL_NAMES}")
    if fields.feature_aggregation == "all_tokens":
        raise BidError(f"{where}: feature_aggregation is 'all_tokens'; valid with {fields.model_name} is any other")
    sizes = sizes_of(weights)
    if sizes is None or sizes.size % HEAD:
        raise BidError(
            f"{where} lacks the tensors of '{prefix}' that {fields.model_name} has, such as patch_embed, or has larger "
            "ones; valid are the sizes from tiny to large"
        )
    wanted = 1 + (size[0] // sizes.patch) * (size[1] // sizes.patch)
    if sizes.tokens != wanted:
        raise BidError(
            f"{where}: tensor '{prefix}pos_embed' has {sizes.tokens} places; images of {size} px need {wanted}"
        )
    patches = PatchTransformer(sizes, clip=kind[1] is not None, quick=kind[2] is not None)
    fill(patches, weights, where, prefix)
    return patches
