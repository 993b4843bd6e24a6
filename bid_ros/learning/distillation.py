"""Distils a bundle into one that samples in a few denoising steps. Distillation can be resumed."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from tqdm import tqdm

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.task import Task
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.bundling import write_variant
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.consistency import DistillConfig, Distiller, student_settings
from bid_ros.learning.families import bundle_networks, training_of
from bid_ros.learning.networks import PolicyNetworks, TrainedEncoder
from bid_ros.learning.replacing import check_replaceable
from bid_ros.learning.run_folder import RunFolder, command_line, source_commit
from bid_ros.learning.training import keep_freed_memory
from bid_ros.policy.base import Bundle
from bid_ros.recording.dataset import Dataset

CHECKPOINT_EVERY: Final = 500
ENCODED: Final = 64  # windows a call
AUGMENTATIONS: Final = 3  # of each window, beside the recorded one


def distill(
    bundle: Bundle,
    dataset: Dataset,
    run: str | Path,
    out: str | Path,
    task: Task,
    config: DistillConfig,
    progress: bool = True,
) -> Bundle:
    """Distil the strong and the weak policy of a bundle into one that samples in ``sampling_steps`` denoising steps.

    The strong encoder stays as it is. With ``share_encoder`` the weak policy uses it too. The same call resumes an
    interrupted run.

    Args:
        bundle: a diffusion policy that ``bid policy export`` wrote.
        dataset: demonstrations of its task: those of its training, or others.
        run: folder of the checkpoints.
        out: folder of the new bundle. An old bundle is replaced; anything else is refused.
        task: task of both.
        config: settings.
        progress: whether to print a progress line on the standard error stream.

    Raises:
        RecordingError: the data set does not fit the task.
        BundleError: the bundle is distilled already, was not written by ``bid policy export``, or has fewer noise
            levels than ``config``; or ``out`` is not a bundle, or is the bundle itself.
        BidError: ``run`` holds another distillation, or a checkpoint that does not fit.
    """
    keep_freed_memory()
    trained = _training_of(bundle, config)
    if Path(out).resolve() == bundle.path.resolve():
        raise BundleError(f"{out} is the bundle to distil; valid is another folder")
    check_replaceable(Path(out))
    data = TrainingData(dataset, task, bundle.action_reference, bundle)
    folder = _begin(run, bundle, dataset, task, config)
    students = _students(bundle, data, trained, config, folder, task, progress)
    sampling = student_settings(bundle.settings, config)
    provenance = _provenance(bundle, dataset, config)
    return write_variant(bundle, out, task, students, sampling, provenance)


def _training_of(bundle: Bundle, config: DistillConfig) -> TrainConfig:
    if bundle.family != "diffusion" or bundle.settings.sampler != "ddim":
        raise BundleError(f"bundle {bundle.path} is not a diffusion policy that is sampled by ddim, so it cannot teach")
    if bundle.settings.simulated_delay:
        raise BundleError(
            f"bundle {bundle.path} was trained for delays, which a student would not know; valid is one of bid train "
            "without --simulated-delay"
        )
    trained = training_of(bundle)
    if config.levels > bundle.settings.train_steps:
        raise BundleError(f"levels is {config.levels}; valid for this bundle is up to {bundle.settings.train_steps}")
    return trained


def _begin(run: str | Path, bundle: Bundle, dataset: Dataset, task: Task, config: DistillConfig) -> RunFolder:
    folder = RunFolder(run)
    folder.begin(
        {
            "config": asdict(config),
            "task": task.name,
            "task_signature": task.signature(),
            "data_sha256": dataset.sha256,
            "bundle_sha256": bundle.sha256,
        }
    )
    if folder.about().get("bundle_sha256") != bundle.sha256:
        raise BidError(f"{run} holds the distillation of another bundle; resume with the same, or use another folder")
    return folder


def _students(
    bundle: Bundle,
    data: TrainingData,
    trained: TrainConfig,
    config: DistillConfig,
    folder: RunFolder,
    task: Task,
    progress: bool,
) -> dict[str, PolicyNetworks]:
    """Train the strong, then the weak student; return each with its encoder."""
    students: dict[str, PolicyNetworks] = {}
    conditions: torch.Tensor | None = None
    for strength, networks in bundle_networks(bundle, task).items():
        own, actions = encode_windows(networks.encoder, data, trained)
        initial = None
        if config.share_encoder and conditions is not None:
            networks.encoder, initial = students["strong"].encoder, students["strong"].denoiser
        else:
            conditions = own
        distiller = Distiller(networks.denoiser, bundle.settings, config, conditions, actions, own, initial)
        _train(distiller, config, folder, strength, progress)
        networks.denoiser = distiller.averaged
        students[strength] = networks
    return students


def _train(distiller: Distiller, config: DistillConfig, folder: RunFolder, strength: str, progress: bool) -> None:
    """Train one student to its end, from its last checkpoint on."""
    if folder.has(strength):
        folder.restore(strength, distiller.restore)
    bar = tqdm(
        desc=strength, total=config.steps, initial=distiller.step, disable=not progress, unit="step", file=sys.stderr
    )
    with bar:
        while distiller.step < config.steps:
            loss = distiller.advance()
            bar.update()
            if distiller.step % CHECKPOINT_EVERY == 0 or distiller.step == config.steps:
                if not np.isfinite(loss):
                    raise BidError(f"distillation diverged at step {distiller.step}; give a lower learning rate")
                folder.log({"strength": strength, "step": distiller.step, "loss": loss})
                bar.set_postfix(loss=f"{loss:.5f}")
                folder.save(strength, distiller.state())


def encode_windows(
    encoder: TrainedEncoder, data: TrainingData, trained: TrainConfig, recorded: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the conditions ``(K, W, C)`` of all windows, and their normalised chunks ``(W, H, D)``.

    The first of the K conditions of a window is as recorded, unless ``recorded`` is false; :data:`AUGMENTATIONS` more
    are augmented as in the training of the teacher.
    """
    conditions, chunks = list[torch.Tensor](), list[torch.Tensor]()
    encoder.eval()
    with torch.no_grad():
        for copy in range(0 if recorded else 1, 1 + AUGMENTATIONS):
            parts = []
            for first in range(0, len(data), ENCODED):
                windows = np.arange(first, min(first + ENCODED, len(data)))
                batch = data.batch(windows, torch.device("cpu"), trained.augment if copy else None, seed=first + copy)
                parts.append(encoder(batch.images, batch.vectors))
                if not conditions:
                    chunks.append(batch.actions)
            conditions.append(torch.cat(parts))
    return torch.stack(conditions), torch.cat(chunks)


def _provenance(bundle: Bundle, dataset: Dataset, config: DistillConfig) -> dict[str, Any]:
    return {
        **bundle.provenance,
        "distillation": {
            "commit": source_commit(),
            "bundle": bundle.name,
            "bundle_sha256": bundle.sha256,
            "data_sha256": dataset.sha256,
            "data_episodes": dataset.episodes,
            "command": command_line(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "config": asdict(config),
        },
    }
