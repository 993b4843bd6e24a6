"""Train a policy that predicts joints in minutes: the image encoders are those of a policy that predicts poses.

The encoders are kept as they are, so each image is encoded once and a step costs milliseconds. What follows them, and
the denoiser, are trained from scratch. ``bid policy export`` makes the run a bundle::

    bid demos config/joints/franka_place --lockstep data/joints.npz
    python scripts/train_joints.py config/joints/franka_place data/joints.npz --out data/joints_run
    bid policy export data/joints_run --out models/franka_place_joints
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import bid_ros.learning.trainer as training_step
from bid_ros.core.task import load_task
from bid_ros.learning import training
from bid_ros.learning.batch import Batch, TrainingData, scale_images
from bid_ros.learning.config import AugmentConfig, TrainConfig
from bid_ros.learning.families import bundle_networks
from bid_ros.learning.networks import PolicyNetworks, TrainedEncoder
from bid_ros.policy.bundle import load_bundle
from bid_ros.recording.dataset import Dataset, joined
from bid_ros.system.folder import find_system

AT_ONCE = 64


class KeptEncoder(TrainedEncoder):
    """An encoder whose images are encoded already: it gets key points ``(B, To, 2 * keypoints)`` in their place."""

    def features(self, images: Mapping[str, torch.Tensor], vectors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return key points and vectors side by side."""
        return self.join([images[name].flatten(0, 1) for name in self.cameras], vectors)


class KeptImages(TrainingData):
    """Training data whose images are encoded once.

    Args:
        points: per camera ``(T, 2 * keypoints)``, of every row.
        dataset, task, reference: as in the base class.
    """

    points: Mapping[str, NDArray[np.float32]] = {}

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._images = {}

    def batch(
        self, windows: NDArray[np.int64], device: torch.device, augment: AugmentConfig | None = None, seed: int = 0
    ) -> Batch:
        """Return the samples of windows, with key points in the place of images."""
        made = super().batch(windows, device, augment, seed)
        seen = self._rows[windows][:, : self._steps]
        return replace(made, images={name: torch.from_numpy(part[seen]) for name, part in self.points.items()})


def encoded(networks: PolicyNetworks, dataset: Dataset) -> dict[str, NDArray[np.float32]]:
    """Return the key points ``(T, 2 * keypoints)`` of every image of a data set."""
    found = {}
    with torch.no_grad():
        for name, encoder in zip(networks.encoder.cameras, networks.encoder.images, strict=True):
            images, parts = dataset.observations[name], []
            for first in range(0, len(images), AT_ONCE):
                some = scale_images(torch.from_numpy(images[first : first + AT_ONCE]))
                parts.append(encoder(some.permute(0, 3, 1, 2)).numpy())
            found[name] = np.concatenate(parts)
    return found


def main(arguments: list[str]) -> int:
    """Train. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", help="folder of a system whose task commands joints")
    parser.add_argument("data", nargs="+", help="data sets of its demonstrations")
    parser.add_argument("--out", required=True, help="folder of the run; the same command goes on with it")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--angle-noise", type=float, default=0.03, help="rad, on observed joints and rotations")
    options = parser.parse_args(arguments)
    system = find_system(options.system)
    task = system.task
    of_poses = load_task(system.file("../../franka_place/task.yaml"))
    pretrained = bundle_networks(load_bundle(Path("models/franka_place"), of_poses), of_poses)["strong"]
    dataset = joined([Dataset.load(file) for file in options.data])
    points = encoded(pretrained, dataset)
    noise = AugmentConfig(angles=options.angle_noise)
    config = TrainConfig(steps=options.steps, batch=options.batch, threads=1, device="cpu", weak_steps=0, augment=noise)

    class Networks(PolicyNetworks):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.encoder.__class__ = KeptEncoder
            self.encoder.images.load_state_dict(pretrained.encoder.images.state_dict())
            self.encoder.images.requires_grad_(False)

    class Data(KeptImages):
        pass

    Data.points = points
    training_step.PolicyNetworks, training.TrainingData = Networks, Data  # type: ignore[misc]
    result = training.train(config, dataset, options.out, task)
    print(f"{result.steps} steps; loss of what was held out {result.val_loss}; run {result.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
