"""Training of policies and their export; needs the extra ``train``."""

from __future__ import annotations

import importlib.util

from bid_ros.errors import BidError

if importlib.util.find_spec("torch") is None:
    raise BidError("training needs PyTorch, which is not installed; install bid_ros with its extra 'train'")

from bid_ros.learning.bundling import export
from bid_ros.learning.config import AugmentConfig, NetworkConfig, TrainConfig
from bid_ros.learning.training import TrainResult, train

__all__ = ["AugmentConfig", "NetworkConfig", "TrainConfig", "TrainResult", "export", "train"]
