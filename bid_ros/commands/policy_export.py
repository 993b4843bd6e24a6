"""``bid policy export``: checkpoints of a training become a policy bundle."""

import argparse
from pathlib import Path
from typing import Any

from bid_ros.commands.tasks import task_of
from bid_ros.core.errors import BidError


def add_export(parts: Any) -> None:
    """Add ``bid policy export``."""
    export = parts.add_parser(
        "export",
        help="export checkpoints to a policy bundle",
        description="Export checkpoints to a policy bundle. A bundle of an older version can be exported again, with "
        "the same weights.",
    )
    export.add_argument(
        "training",
        nargs="+",
        help="folder that bid train wrote, or a bundle to export again. Further folders of the family act, trained on "
        "the same data with other seeds, add candidates to choose among",
    )
    export.add_argument("--task", default="", help="name or path of the task file (default: what the run is of)")
    export.add_argument(
        "-o",
        "--out",
        default="",
        help="bundle folder to write (default: models/ and the task's name; of a bundle: its own)",
    )
    export.add_argument(
        "--sampling-steps",
        type=int,
        help="denoising steps a sample; fewer decide faster (default: the training run's, 8)",
    )
    export.add_argument(
        "--temperature", type=float, help="temperature at which VQ-BeT draws codes (default: the training run's)"
    )
    export.add_argument(
        "--no-weak", action="store_true", help="leave the weak policy out: half the size, and BID without negatives"
    )
    export.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> int:
    """Export a bundle."""
    from bid_ros.learning import export
    from bid_ros.learning.run_folder import RunFolder
    from bid_ros.policy.bundle import MANIFEST

    source, *also = map(Path, options.training)
    if (source / MANIFEST).is_file():
        return _export_again(source, options)
    task = task_of(options.task, str(RunFolder(source).about()["task"]), str(source))
    out = Path(options.out or f"models/{task.name}")
    how = {"sampling_steps": options.sampling_steps, "temperature": options.temperature}
    export(source, out, task, weak=not options.no_weak, also=also, **how)
    return 0


def _export_again(source: Path, options: argparse.Namespace) -> int:
    """Export a bundle again."""
    from bid_ros.learning import export_again
    from bid_ros.policy.bundle import bundled_task, load_bundle

    if options.no_weak or len(options.training) > 1:
        given = "--no-weak" if options.no_weak else options.training[1]
        raise BidError(f"{given} is given with the bundle {source}; valid is the bundle alone, exported again as it is")
    task = task_of(options.task, bundled_task(source), str(source))
    bundle = load_bundle(source, task)
    export_again(bundle, options.out or source, task, options.sampling_steps, options.temperature)
    return 0
