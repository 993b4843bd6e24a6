"""Distils a bundle into one that samples in a few network calls. Distillation can be resumed."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from tqdm import tqdm

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.settings import parse_settings
from bid_ros.core.task import Task
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.bundling import replaced, write_graphs
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.distill import DistillConfig, Distiller, student_settings
from bid_ros.learning.encoder import ObservationEncoder
from bid_ros.learning.memory import keep_freed_memory
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.run_folder import RunFolder, source_commit
from bid_ros.learning.weights import read_weights
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.recording.dataset import Dataset

CHECKPOINT_EVERY: Final = 500
ENCODED: Final = 64  # windows a call
LOOKS: Final = 4  # at each window: as recorded, and augmented as in training


def distill(
    bundle: Bundle,
    dataset: Dataset,
    run: str | Path,
    out: str | Path,
    task: Task,
    config: DistillConfig,
    progress: bool = True,
) -> Bundle:
    """Distil the strong and the weak policy of a bundle into one that samples in ``sampling_steps`` network calls.

    The encoders stay as they are. The same call resumes an interrupted run.

    Args:
        bundle: a diffusion policy that ``bid export`` wrote.
        dataset: demonstrations of its task: those of its training, or others.
        run: folder of the checkpoints.
        out: folder of the new bundle. An old bundle is replaced; anything else is refused.
        task: task of both.
        config: settings.
        progress: whether to print a progress line on the standard error stream.

    Raises:
        RecordingError: the data set does not fit the task.
        BundleError: the bundle is distilled already or was not written by ``bid export``, or ``out`` is not a bundle.
        BidError: ``run`` holds another distillation.
    """
    keep_freed_memory()
    trained = _training_of(bundle)
    data = TrainingData(dataset, task, bundle.action_reference, bundle)
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
    with replaced(Path(out)) as new:
        graphs: dict[str, dict[str, str] | None] = {"weak": None}
        differences, sampling = {}, student_settings(bundle.settings, config)
        for strength, networks in _students(bundle, data, trained, config, folder, task, progress):
            graphs[strength], differences[strength] = write_graphs(
                networks.eval(), new, task, trained.network.condition, sampling, strength
            )
        strong, weak = graphs["strong"], graphs["weak"]
        if config.share_encoder and strong is not None and weak is not None:
            (new / weak["encoder"]).unlink()
            weak["encoder"] = strong["encoder"]
        write_bundle_manifest(
            new,
            task,
            name=Path(out).name,
            observation=bundle.observation,
            action=bundle.action,
            action_spread=bundle.action_spread,
            settings=sampling,
            graphs=graphs,
            provenance=_provenance(bundle, dataset, config) | {"difference_to_pytorch": differences},
            action_reference=bundle.action_reference,
        )
    return load_bundle(out, task)


def _training_of(bundle: Bundle) -> TrainConfig:
    if bundle.family != "diffusion" or bundle.settings.sampler != "ddim":
        raise BundleError(f"bundle {bundle.path} is not a diffusion policy that is sampled by ddim, so it cannot teach")
    if "training" not in bundle.provenance:
        raise BundleError(f"bundle {bundle.path} does not say how it was trained; valid is one that bid export wrote")
    return parse_settings(TrainConfig, bundle.provenance["training"], f"bundle {bundle.path}: training")


def _students(
    bundle: Bundle,
    data: TrainingData,
    trained: TrainConfig,
    config: DistillConfig,
    folder: RunFolder,
    task: Task,
    progress: bool,
) -> Iterator[tuple[str, PolicyNetworks]]:
    """Train the strong, then the weak student; return each with its encoder."""
    strong: tuple[PolicyNetworks, torch.Tensor] | None = None
    for strength, files in (("strong", bundle.strong), ("weak", bundle.weak)):
        if files is None:
            continue
        networks = PolicyNetworks(task, trained.network)
        read_weights(files["encoder"], networks.encoder, "encoder.")
        read_weights(files["denoiser"], networks.denoiser)
        taught, actions = encode_windows(networks.encoder, data, trained)
        if strong is None or not config.share_encoder:
            distiller = Distiller(networks.denoiser, bundle.settings, config, taught, actions)
        else:
            begin, conditions = strong
            distiller = Distiller(
                networks.denoiser, bundle.settings, config, conditions, actions, taught, begin.denoiser
            )
            networks.encoder = begin.encoder
        _train(distiller, config, folder, strength, progress)
        networks.denoiser = distiller.averaged
        yield strength, networks
        strong = strong or (networks, taught)


def _train(distiller: Distiller, config: DistillConfig, folder: RunFolder, strength: str, progress: bool) -> None:
    """Train one student to its end, from its last checkpoint on."""
    if folder.has(strength):
        distiller.restore(folder.load(strength))
    bar = tqdm(
        desc=strength, total=config.steps, initial=distiller.step, disable=not progress, unit="step", file=sys.stderr
    )
    with bar:
        while distiller.step < config.steps:
            loss = distiller.advance()
            bar.update()
            if distiller.step % CHECKPOINT_EVERY == 0 or distiller.step == config.steps:
                if not np.isfinite(loss):
                    raise BidError(f"distillation diverged at step {distiller.step}: lower learning_rate")
                folder.log({"strength": strength, "step": distiller.step, "loss": loss})
                bar.set_postfix(loss=f"{loss:.5f}")
                folder.save(strength, distiller.state())


def encode_windows(
    encoder: ObservationEncoder, data: TrainingData, trained: TrainConfig
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the conditions ``(LOOKS, W, C)`` of all windows, and their normalised chunks ``(W, H, D)``.

    The first look at a window is as recorded, the others are augmented as in the training of the teacher.
    """
    looks, chunks = [], []
    encoder.eval()
    with torch.no_grad():
        for look in range(LOOKS):
            parts = []
            for first in range(0, len(data), ENCODED):
                windows = np.arange(first, min(first + ENCODED, len(data)))
                batch = data.batch(windows, torch.device("cpu"), trained.augment if look else None, seed=first + look)
                parts.append(encoder(batch.images, batch.vectors))
                if look == 0:
                    chunks.append(batch.actions)
            looks.append(torch.cat(parts))
    return torch.stack(looks), torch.cat(chunks)


def _provenance(bundle: Bundle, dataset: Dataset, config: DistillConfig) -> dict[str, Any]:
    return {
        **bundle.provenance,
        "distillation": {
            "commit": source_commit(),
            "bundle": bundle.name,
            "bundle_sha256": bundle.sha256,
            "data_sha256": dataset.sha256,
            "data_episodes": dataset.episodes,
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "config": asdict(config),
        },
    }
