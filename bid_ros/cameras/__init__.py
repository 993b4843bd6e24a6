"""Cameras: devices, image messages without cv_bridge, pairing by stamp."""

from bid_ros.cameras.base import Camera, Frame
from bid_ros.cameras.config import CameraConfig, load_cameras, open_camera
from bid_ros.cameras.image import ImageFitter, decode_image, encode_image, resize_crop
from bid_ros.cameras.pairing import FramePair, FramePairing, PairWatch

__all__ = [
    "Camera",
    "CameraConfig",
    "Frame",
    "FramePair",
    "FramePairing",
    "ImageFitter",
    "PairWatch",
    "decode_image",
    "encode_image",
    "load_cameras",
    "open_camera",
    "resize_crop",
]
