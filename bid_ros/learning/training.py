"""Trains a policy from a data set. Training can be resumed."""

import ctypes
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from bid_ros.core.errors import BidError
from bid_ros.core.plot_style import COLORS, INK, clean, figure_of, save
from bid_ros.core.task import Task
from bid_ros.learning.act.trainer import ActTrainer
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.run_folder import RunFolder, command_line, source_commit
from bid_ros.learning.trainer import DiffusionTrainer, Trainer
from bid_ros.learning.vqbet.trainer import VqBetTrainer
from bid_ros.learning.windows import action_spread, held_out_episodes
from bid_ros.policy.committed import rolled_features
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.recording.dataset import Dataset

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD: Final = -1
M_TOP_PAD: Final = -2
M_MMAP_MAX: Final = -4
LARGEST: Final = 2**31 - 1
TRAINERS: Final[dict[str, Callable[..., Trainer]]] = {
    "diffusion": DiffusionTrainer,
    "vqbet": VqBetTrainer,
    "act": ActTrainer,
}


def keep_freed_memory() -> bool:
    """Tell the C library not to return freed memory to the system. Return whether it accepted.

    A training step on the CPU allocates and frees the same tens of megabytes again and again. The kernel clears every
    returned page when it is next used, which took up to half of a step's time. The setting holds for the rest of the
    process. It works with glibc only; elsewhere nothing happens.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, LARGEST), (M_TOP_PAD, 2**26))
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in settings)


def check_delay(settings: DiffusionConfig, task: Task) -> None:
    """Raise BidError if a policy of a task cannot be trained for the simulated delay."""
    most = task.horizon - task.observation_steps
    if settings.simulated_delay > most:
        raise BidError(
            f"simulated_delay is {settings.simulated_delay}; valid for task '{task.name}' is up to {most}: a "
            f"prediction has {most + 1} rows to execute, and the last must be left to decide"
        )
    if settings.roll_forward and not rolled_features(task):
        raise BidError(
            f"roll_forward is true, but task '{task.name}' observes nothing as it is commanded "
            f"({', '.join(item.name for item in task.action)}), so no state can be rolled forward; valid is false"
        )


def plot_log(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Draw the losses of a log, training and held out, and the error of the guessed goal if there is one.

    Args:
        rows: lines of ``log.jsonl``.
        path: PNG file to write.
    """
    lines = list(rows)
    panels = 2 if any("val_goal_mm" in row for row in lines) else 1
    figure = figure_of(6 * panels, 4)
    axes = figure.subplots(1, panels, squeeze=False)
    left = axes[0, 0]
    for key, label in (("loss", "training"), ("val_loss", "held-out episodes, averaged weights")):
        _curve(left, lines, key, label)
    what = "denoising loss, normalised units"
    for key, named in (("code_loss", "loss of codes and offsets"), ("style_loss", "mean error, normalised units")):
        what = named if any(key in row for row in lines) else what
    left.set(xlabel="step", ylabel=what, yscale="log")
    if panels == 2:
        _curve(axes[0, 1], lines, "val_goal_mm", "held-out episodes, averaged weights")
        axes[0, 1].set(xlabel="step", ylabel="error of the guessed goal, mm", yscale="log")
    for axis in axes[0]:
        clean(axis)
        if axis.lines:
            axis.legend(frameon=False, fontsize=9, labelcolor=INK)
    save(figure, path)


def _curve(axis: Any, rows: list[Mapping[str, Any]], key: str, label: str) -> None:
    points = [(row["step"], row[key]) for row in rows if key in row]
    if points:
        axis.plot(*zip(*points, strict=True), label=label, color=COLORS[len(axis.lines)])


@dataclass(frozen=True)
class TrainResult:
    """The result of a training run.

    Attributes:
        out: its folder.
        steps: steps of the strong policy.
        resumed_from: step at which this call began; 0 for a new run.
        val_loss: last denoising loss on held-out episodes. None if none are held out.
        val_goal_mm: last mean error of the predicted goal on them, mm. None for a task without a goal.
    """

    out: Path
    steps: int
    resumed_from: int
    val_loss: float | None
    val_goal_mm: float | None


def train(
    config: TrainConfig, dataset: str | Path | Dataset, out: str | Path, task: Task, progress: bool = True
) -> TrainResult:
    """Train the strong policy, and keep the weak one on the way. The same call resumes an interrupted run.

    Args:
        config: settings.
        dataset: data set, or a file that ``bid data build`` made.
        out: folder of the run, see :mod:`bid_ros.learning.run_folder`.
        task: task of the data.
        progress: whether to print a progress line on the standard error stream.

    Raises:
        RecordingError: the data set is missing, damaged, or does not fit the task.
        BidError: ``out`` holds a run with another configuration, task or data, a checkpoint is damaged, the networks
            or the simulated delay do not fit the task, or there is no GPU for device ``cuda``.
    """
    device = _device(config)
    check_delay(config.diffusion, task)
    data_set = dataset if isinstance(dataset, Dataset) else Dataset.load(dataset)
    simulated = config.diffusion.simulated_delay if config.diffusion.roll_forward else 0
    data = TrainingData(data_set, task, config.action_reference, longest_delay=simulated)
    # Hold out whole demonstrations: the pieces of one demonstration that a gap cut are very similar.
    owner = data_set.demonstrations
    held = held_out_episodes(int(owner[-1]) + 1, config.validation_share, config.seed)[owner]
    training, validation = (np.flatnonzero(mask) for mask in (~held[data.owners], held[data.owners]))
    if len(training) == 0:
        raise BidError("every window of the data set is held out for validation; lower validation_share")
    trainer: Trainer = TRAINERS[config.family](task, data, training, validation, config, device)
    folder = RunFolder(out)
    folder.begin(_about(config, data_set, data, task, held), trains=True)
    if folder.has("checkpoint"):
        folder.restore("checkpoint", trainer.restore, device)
    first = trainer.step
    folder.log_rows(until=first or -1)
    if not first and (prepared := trainer.prepare()):
        folder.log({"step": 0} | prepared)
    if first < config.steps or not folder.has("strong"):
        _loop(trainer, folder, config, first, progress)
    last: dict[str, float] = next((row for row in reversed(folder.log_rows()) if "val_loss" in row), {})
    return TrainResult(folder.path, config.steps, first, last.get("val_loss"), last.get("val_goal_mm"))


def _loop(trainer: Trainer, folder: RunFolder, config: TrainConfig, first: int, progress: bool) -> None:
    bar = tqdm(total=config.steps, initial=first, disable=not progress, unit="step", mininterval=0.5, file=sys.stderr)
    began, sums, count = time.monotonic(), dict[str, float](), 0
    with bar:
        while trainer.step < config.steps:
            rate = trainer.learning_rate
            for name, value in trainer.advance().items():
                sums[name] = sums.get(name, 0.0) + value
            count += 1
            step = trainer.step
            if step % config.log_every == 0 or step == config.steps:
                row = {name: value / count for name, value in sums.items()}
                if not np.isfinite(row["loss"]):
                    raise BidError(f"training diverged at step {step}: the loss is {row['loss']}; lower learning_rate")
                speed = count * config.batch / (time.monotonic() - began)
                folder.log({"step": step} | row | {"learning_rate": rate, "samples_per_s": speed})
                bar.set_postfix({name: f"{value:.4f}" for name, value in row.items()} | {"samples/s": f"{speed:.0f}"})
                began, sums, count = time.monotonic(), {}, 0
            _keep(trainer, folder, config)
            bar.update()
    # Last, because its existence means that the run is complete.
    folder.save("strong", {"step": trainer.step, "weights": trainer.averaged.state_dict()})


def _keep(trainer: Trainer, folder: RunFolder, config: TrainConfig) -> None:
    """Validate and write files, if they are due after a step."""
    step, last = trainer.step, trainer.step == config.steps
    if step % config.validate_every == 0 or last:
        values = trainer.validate()
        if values:
            folder.log({"step": step} | values)
        plot_log(folder.log_rows(), folder.path / "loss.png")
    if step == config.weak_at:
        folder.save("weak", {"step": step, "weights": trainer.averaged.state_dict()})
    if step % config.checkpoint_every == 0 or last:
        folder.save("checkpoint", trainer.state())


def _device(config: TrainConfig) -> torch.device:
    keep_freed_memory()
    if config.threads:
        torch.set_num_threads(config.threads)
    if config.device == "cuda" and not torch.cuda.is_available():
        raise BidError("device is 'cuda', but PyTorch sees no GPU here; valid here are auto, cpu")
    return torch.device("cuda" if config.device != "cpu" and torch.cuda.is_available() else "cpu")


def _about(
    config: TrainConfig, dataset: Dataset, data: TrainingData, task: Task, held: NDArray[np.bool_]
) -> dict[str, Any]:
    return {
        "config": asdict(config),
        "task": task.name,
        "task_signature": task.signature(),
        "data_sha256": dataset.sha256,
        "data_rows": dataset.rows,
        "data_episodes": dataset.episodes,
        "held_out_episodes": np.flatnonzero(held).tolist(),
        "observation": {name: item.to_dict() for name, item in data.observation.items()},
        "action": data.action.to_dict(),
        "action_spread": action_spread(dataset, task).tolist(),
        "commit": source_commit(),
        "command": command_line(),
        "torch": str(torch.__version__),
    }
