"""Training and export of policies. It needs the extra ``train``."""

from bid_ros.core.extras import extra

with extra("train", "training"):
    from bid_ros.learning.bundling import export, export_again
    from bid_ros.learning.config import AugmentConfig, NetworkConfig, TrainConfig, VqBetConfig
    from bid_ros.learning.consistency import DistillConfig
    from bid_ros.learning.correction import CorrectionConfig, CorrectionResult, train_correction
    from bid_ros.learning.distillation import distill
    from bid_ros.learning.training import TrainResult, train

__all__ = [
    "AugmentConfig",
    "CorrectionConfig",
    "CorrectionResult",
    "DistillConfig",
    "NetworkConfig",
    "TrainConfig",
    "TrainResult",
    "VqBetConfig",
    "distill",
    "export",
    "export_again",
    "train",
    "train_correction",
]
