"""``bid dataset``, ``bid train``, ``bid export`` and ``bid distill``: from bags to a policy bundle."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.tasks import task_file_of_bags, task_of
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task, load_task

TRAIN_OPTIONS: Final = ("steps", "batch", "seed", "device", "action_reference", "assign_noise")
VQBET_OPTIONS: Final = ("codes", "width", "layers", "heads", "offset_codes", "offset_weight", "temperature")
DISTILL_OPTIONS: Final = ("sampling_steps", "levels", "steps", "batch", "learning_rate", "seed")
FLOW: Final = "flow"
FLOW_STEPS: Final = 5  # of Euler; a divisor of the training's 100 levels

if TYPE_CHECKING:
    from bid_ros.policy.diffusion.sampler import DiffusionConfig
    from bid_ros.recording.build_dataset import BagReport
    from bid_ros.recording.dataset import Dataset


def add_parser(verbs: Any) -> None:
    """Add the four verbs."""
    dataset = verbs.add_parser("dataset", help="turn bags into a data set")
    dataset.add_argument("bags", nargs="+", help="bags, or folders that hold runs with a bag")
    dataset.add_argument("--task", default="", help="name or path of the task file (default: what the bags are of)")
    dataset.add_argument("--out", default="data/dataset.npz", help="file to write (default data/dataset.npz)")
    dataset.set_defaults(run=run_dataset)

    train = verbs.add_parser(
        "train",
        help="train a policy",
        description="Train a policy, strong and early weak checkpoint: a diffusion policy, or one that predicts codes "
        "(VQ-BeT). Running the command again resumes.",
    )
    train.add_argument("dataset", help="data set of bid dataset, or of another format (bid data info)")
    train.add_argument("--task", default="", help="name or path of the task file (default: what the data are of)")
    train.add_argument("--out", default="data/training", help="folder of checkpoints, log and loss plot")
    train.add_argument("--steps", type=int, default=8000, help="training steps of the strong policy (default 8000)")
    train.add_argument(
        "--weak-steps", type=int, default=0, help="step of the weak checkpoint (default a tenth of --steps)"
    )
    train.add_argument("--batch", type=int, default=64)
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--device", default="auto", help="auto, cpu or cuda")
    widths = [32, 64, 128]
    train.add_argument("--widths", type=int, nargs="+", default=widths, help="channels of the denoiser per level")
    train.add_argument("--condition", type=int, default=128, help="size of the observation's encoding (default 128)")
    train.add_argument(
        "--state-noise", type=float, default=0.0, help="training offset on vectors, as a share of half their range"
    )
    train.add_argument(
        "--angle-noise", type=float, default=0.0, help="training offset on observed joints and rotations, rad"
    )
    train.add_argument(
        "--history-dropout",
        type=float,
        default=0.0,
        help="prevents standing still: history repeats the newest observation in this fraction of the samples",
    )
    train.add_argument("--action-reference", default="tool", help="where positions count from: tool (default) or base")
    train.add_argument(
        "--prediction",
        default="",
        help="what the denoiser of --family diffusion learns to return: sample, the clean chunk (default), or epsilon, "
        "the noise",
    )
    train.add_argument(
        "--assign-noise",
        action="store_true",
        help="pair the noise with the nearest actions of a batch, so that samples show more strategies",
    )
    _add_vqbet(train)
    train.set_defaults(run=run_train)

    _add_export(verbs)
    _add_distill(verbs)


def _add_vqbet(train: argparse.ArgumentParser) -> None:
    train.add_argument("--family", default="diffusion", help="diffusion, flow or vqbet (default diffusion)")
    options = train.add_argument_group("with --family vqbet")
    options.add_argument("--codes", type=int, default=16, help="codes of each of the two layers (default 16)")
    options.add_argument("--width", type=int, default=128, help="of the transformer (default 128)")
    options.add_argument("--layers", type=int, default=4, help="of the transformer (default 4)")
    options.add_argument("--heads", type=int, default=4, help="of each layer's attention (default 4)")
    options.add_argument(
        "--independent-codes",
        action="store_true",
        help="draw the second code without regard to the first",
    )
    options.add_argument(
        "--offset-codes",
        default="true",
        help="whose offsets are learnt: of the true codes (default), or of drawn ones, as published",
    )
    options.add_argument("--offset-weight", type=float, default=10.0, help="of the actions' error (default 10)")
    options.add_argument("--temperature", type=float, default=0.5, help="of drawn codes (default 0.5)")


def _add_export(verbs: Any) -> None:
    export = verbs.add_parser(
        "export",
        help="export checkpoints to a policy bundle",
        description="Export checkpoints to a policy bundle. A bundle of an older version can be exported again, with "
        "the same weights.",
    )
    export.add_argument("training", help="folder that bid train wrote, or a bundle to export again")
    export.add_argument("--task", default="", help="name or path of the task file (default: what the run is of)")
    export.add_argument(
        "--out",
        default="",
        help="bundle folder to write (default: models/ and the task's name; of a bundle: its own)",
    )
    export.add_argument(
        "--sampling-steps",
        type=int,
        help="denoising steps a sample; fewer decide faster (default: the training run's, 8)",
    )
    export.add_argument("--temperature", type=float, help="of the codes of VQ-BeT (default: the training run's)")
    export.add_argument(
        "--no-weak", action="store_true", help="leave the weak policy out: half the size, and BID without negatives"
    )
    export.set_defaults(run=run_export)


def _add_distill(verbs: Any) -> None:
    parser = verbs.add_parser(
        "distill",
        help="make a bundle sample in two denoising steps",
        description="Distil a diffusion policy, strong and weak, into one that samples in a few denoising steps "
        "(consistency distillation). Running the command again resumes.",
    )
    parser.add_argument("bundle", help="bundle folder that bid export wrote")
    parser.add_argument("dataset", help="data set of bid dataset, or of another format (bid data info)")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the data are of)")
    parser.add_argument("--out", required=True, help="folder of the new bundle")
    parser.add_argument("--run", dest="folder", default="data/distillation", help="folder of checkpoints and log")
    parser.add_argument("--sampling-steps", type=int, default=2, help="denoising steps a sample (default 2)")
    parser.add_argument("--levels", type=int, default=8, help="noise levels of the teacher's sampling (default 8)")
    parser.add_argument("--steps", type=int, default=6000, help="training steps of each student (default 6000)")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=5e-4, help="peak (default 0.0005)")
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run_distill)


def run_dataset(options: argparse.Namespace) -> int:
    """Build the data set."""
    from bid_ros.formats.bag import bags_below
    from bid_ros.recording.build_dataset import build_dataset  # takes a second to import

    bags = [bag for path in options.bags for bag in bags_below(Path(path))]
    if not bags:
        raise BidError(
            f"there is no bag in {', '.join(options.bags)}; valid are bags, or folders that hold runs with one"
        )
    task = load_task(task_file_of_bags(options.task, bags))
    out = Path(options.out)
    dataset = build_dataset(bags, task, progress=_report, cache=out.parent / "parts")
    dataset.save(out)
    print(f"{out}: {dataset.episodes} episodes, {dataset.rows} rows, sha256 {dataset.sha256}", file=sys.stderr)
    return 0


def _report(report: BagReport) -> None:
    print(f"{report.path}: {report.used} of {report.episodes} episodes, {report.rows} rows", file=sys.stderr)
    for reason in report.reasons:
        print(f"  {reason}", file=sys.stderr)


def run_train(options: argparse.Namespace) -> int:
    """Train a policy."""
    from bid_ros.learning import AugmentConfig, NetworkConfig, TrainConfig, VqBetConfig, train

    vqbet = {name: getattr(options, name) for name in VQBET_OPTIONS}
    config = TrainConfig(
        **{name: getattr(options, name) for name in TRAIN_OPTIONS},
        family="diffusion" if options.family == FLOW else options.family,
        weak_steps=options.weak_steps or max(1, options.steps // 10),
        network=NetworkConfig(widths=tuple(options.widths), condition=options.condition),
        augment=AugmentConfig(state=options.state_noise, angles=options.angle_noise, history=options.history_dropout),
        diffusion=_sampling(options),
        vqbet=VqBetConfig(**vqbet, sequential=not options.independent_codes),
    )
    dataset, task = _dataset(options)
    train(config, dataset, Path(options.out), task)
    return 0


def _sampling(options: argparse.Namespace) -> DiffusionConfig:
    """Return how the policy is noised and sampled. A flow is a diffusion policy but for that."""
    from bid_ros.policy.diffusion.sampler import DiffusionConfig

    if options.family != FLOW:
        return DiffusionConfig(prediction=options.prediction or "sample")
    if options.prediction:
        raise BidError("--prediction is for --family diffusion; a flow learns velocities")
    return DiffusionConfig(sampler=FLOW, prediction="velocity", sampling_steps=FLOW_STEPS)


def _dataset(options: argparse.Namespace) -> tuple[Dataset, Task]:
    """Return the data set of any format that the command names, and its task."""
    from bid_ros.commands.datasets import dataset_task
    from bid_ros.formats import load_dataset
    from bid_ros.recording.dataset import Dataset

    path = options.dataset
    if Path(path).suffix == ".npz" or not Path(path).exists():
        dataset = Dataset.load(path)
        return dataset, task_of(options.task, dataset.task, path)
    task = dataset_task(path, options.task)
    return load_dataset(path, task), task


def run_export(options: argparse.Namespace) -> int:
    """Export a bundle."""
    from bid_ros.learning import export
    from bid_ros.learning.run_folder import RunFolder
    from bid_ros.policy.bundle import MANIFEST

    source = Path(options.training)
    if (source / MANIFEST).is_file():
        return _export_again(source, options)
    task = task_of(options.task, str(RunFolder(source).about()["task"]), options.training)
    out = Path(options.out or f"models/{task.name}")
    how = {"sampling_steps": options.sampling_steps, "temperature": options.temperature}
    export(source, out, task, weak=not options.no_weak, **how)
    return 0


def _export_again(source: Path, options: argparse.Namespace) -> int:
    """Export a bundle again."""
    from bid_ros.learning import export_again
    from bid_ros.policy.bundle import bundled_task, load_bundle

    if options.no_weak:
        raise BidError("--no-weak is for a training run; a bundle is exported again as it is")
    task = task_of(options.task, bundled_task(source), options.training)
    bundle = load_bundle(source, task)
    export_again(bundle, options.out or source, task, options.sampling_steps, options.temperature)
    return 0


def run_distill(options: argparse.Namespace) -> int:
    """Distil a bundle."""
    from bid_ros.learning import DistillConfig, distill
    from bid_ros.policy.bundle import load_bundle

    config = DistillConfig(**{name: getattr(options, name) for name in DISTILL_OPTIONS})
    dataset, task = _dataset(options)
    distill(load_bundle(options.bundle, task), dataset, options.folder, options.out, task, config)
    return 0
