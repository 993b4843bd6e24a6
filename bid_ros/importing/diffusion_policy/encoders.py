"""The three ways in which published policies observe: numbers alone, hybrid (robomimic) and multi-image encoders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.fields import (
    BackboneFields,
    ImageFields,
    MultiImageFields,
    Size,
    parse_all,
    target_of,
    without_target,
)
from bid_ros.importing.diffusion_policy.normalisers import scale_and_offset
from bid_ros.importing.diffusion_policy.renaming import KEYPOINTS, RESNET, renamed
from bid_ros.importing.networks.images import CameraEncoder, KeypointNetwork, PooledNetwork, Preparation
from bid_ros.importing.networks.observation import ObservationNetwork
from bid_ros.importing.policy import NetworkFeature
from bid_ros.importing.tensors import fill, without_prefix

OBSERVATION: Final = "obs"
ENCODER: Final = "obs_encoder."
IMAGENET_MEAN: Final = np.array([0.485, 0.456, 0.406])
IMAGENET_STD: Final = np.array([0.229, 0.224, 0.225])
Tensors = Mapping[str, torch.Tensor]


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
        image = kind == "rgb"
        length = 3 if image else 1
        good = isinstance(shape, list) and len(shape) == length and all(type(n) is int and n > 0 for n in shape)
        if kind not in ("rgb", "low_dim") or not good or (image and shape[0] != 3):
            raise BidError(
                f"{where}: shape_meta.obs.{name} has type '{kind}' and shape {shape}; valid are rgb with [3, height, "
                "width] and low_dim with [size]"
            )
        features.append(NetworkFeature(name, (*shape[1:], 3) if image else tuple(shape)))
    return tuple(features)


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
        cameras[item.name] = CameraEncoder(own, network, outputs)
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
        cameras[item.name] = CameraEncoder(own, network, network.features)
        prefixes.append(prefix)
    vectors = {item.name: item.shape[0] for item in features if not item.is_image}
    network = ObservationNetwork([*cameras, *sorted(vectors)], cameras, vectors)
    return Observing(features, network, tuple(prefixes))


def _preparation(
    camera: NetworkFeature, resize: Size | None, crop: Size | None, imagenet: bool, tensors: Tensors, where: str
) -> Preparation:
    """Return how an image becomes the network's input; a second normalisation is folded into the first."""
    scale, offset = scale_and_offset(tensors, camera.name, 3, where)
    if imagenet:
        scale, offset = scale / IMAGENET_STD, (offset - IMAGENET_MEAN) / IMAGENET_STD
    try:
        return Preparation((camera.shape[0], camera.shape[1]), scale.tolist(), offset.tolist(), resize, crop)
    except BidError as error:
        raise BidError(f"{where}: '{camera.name}': {error}") from error


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
