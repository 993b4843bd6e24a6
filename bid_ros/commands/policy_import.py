"""``bid policy import``: a policy that another project trained becomes a bundle."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.tasks import task_path
from bid_ros.core.errors import BidError
from bid_ros.core.settings import load_settings
from bid_ros.core.task import load_task

if TYPE_CHECKING:
    from bid_ros.core.task import Task
    from bid_ros.importing.policy import ImportedPolicy, ImportOptions, NetworkFeature
    from bid_ros.policy.spaces.config import Space

FORMER_ARGUMENTS: Final = ("lerobot", "diffusion_policy")


def add_import(parts: Any) -> None:
    """Add ``bid policy import``."""
    parser = parts.add_parser(
        "import",
        help="turn a policy of another project into a bundle",
        description="Read a checkpoint of another project, without that project and without running its code, and "
        "write it as a bundle. Its networks are compared with PyTorch as they are exported. Of LeRobot 0.1 to 0.6: "
        "types act, diffusion, multi_task_dit and vqbet. Of the published Diffusion Policy: U-Net and transformer, "
        "with low-dimensional, hybrid and multi-image observations. Of the published ACT: weights with "
        "dataset_stats.pkl beside them. A line says how many samples and steps fit a decision on this computer.",
    )
    parser.add_argument(
        "checkpoint",
        help="a folder that LeRobot saved a policy to, or a file (.ckpt) of the published Diffusion Policy or ACT",
    )
    parser.add_argument("--task", required=True, help="name or path of the task file, or of a system's folder")
    parser.add_argument("-o", "--out", required=True, help="folder of the bundle; an old bundle there is replaced")
    parser.add_argument("--weak", default="", help="an earlier checkpoint of the same training, as the weak policy")
    parser.add_argument(
        "--also",
        nargs="+",
        default=[],
        metavar="CHECKPOINT",
        help="for a policy that draws no samples (act): further checkpoints, each adds a candidate to choose among",
    )
    parser.add_argument(
        "--space",
        default="",
        help="file that describes the columns of inputs and actions (default: section data of the task)",
    )
    parser.add_argument("--sampler", default="", help="ddim or ddpm; of a flow euler or rk4 (default: its own)")
    parser.add_argument("--sampling-steps", type=int, help="steps a sample (default: the checkpoint's own)")
    parser.add_argument("--clip", default="", help="folder of the CLIP of a policy that reads texts")
    parser.add_argument(
        "--ignore-field",
        action="append",
        default=[],
        metavar="NAME",
        help="a field of the checkpoint's configuration that bid does not know, and that changes nothing; may be "
        "given again",
    )
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, convert, compare and write."""
    from bid_ros.core.extras import check_extra

    check_extra("train", "bid policy import", "torch", "onnx", "safetensors")
    from bid_ros.importing.fit import measure_fit
    from bid_ros.importing.policy import ImportOptions
    from bid_ros.importing.write_bundle import write_imported
    from bid_ros.policy.registry import most_samples
    from bid_ros.policy.spaces.config import Space

    if options.sampling_steps is not None and options.sampling_steps < 1:
        raise BidError(f"--sampling-steps is {options.sampling_steps}; valid is 1 or more")
    task = load_task(task_path(options.task))
    space = load_settings(Space, options.space, "space file") if options.space else None
    given = ImportOptions(
        options.sampler,
        options.sampling_steps,
        task.description,
        options.clip,
        _cameras(task, space),
        tuple(options.ignore_field),
    )
    strong = _read(options.checkpoint, given)
    weak = _read(options.weak, given) if options.weak else None
    also = [_read(path, given) for path in options.also]
    for note in strong.notes:
        print(f"note: {note}", file=sys.stderr)
    bundle = write_imported(strong, weak, options.out, task, space, also)
    report = {
        "bundle": str(bundle.path),
        "sha256": bundle.sha256,
        "type": strong.kind,
        "weak": weak is not None,
        "candidates": most_samples(bundle),
        "difference_to_pytorch": bundle.provenance["difference_to_pytorch"],
    }
    fit = measure_fit(bundle, task, strong)
    report["fit"] = {**asdict(fit), "fitting": fit.fitting}
    print(json.dumps(report) if options.json else f"{_sentence(report)}\n{fit.sentence()}")
    return 0


def _sentence(report: dict[str, Any]) -> str:
    found = [value for roles in report["difference_to_pytorch"].values() for value in roles.values()]
    policies = "strong and weak policy" if report["weak"] else "strong policy alone"
    if report["candidates"] is not None:
        policies = "one chunk a decision" if report["candidates"] == 1 else f"{report['candidates']} candidates"
    return (
        f"wrote {report['bundle']}, {policies} of type {report['type']}; the graphs differ from PyTorch by "
        f"{max(found):.1e} at most"
    )


def _cameras(task: "Task", space: "Space | None") -> "tuple[NetworkFeature, ...]":
    """Return the images of a policy whose checkpoint names none: those of the space, or all cameras of the task."""
    from bid_ros.importing.original_act import HEIGHT, WIDTH
    from bid_ros.importing.policy import NetworkFeature

    if space is not None and space.observation:
        given = [(item.name, item.size or (HEIGHT, WIDTH)) for item in space.observation if item.camera]
    else:
        keys = {} if task.data is None else task.data.observation
        given = [(keys.get(item.name, item.name), (HEIGHT, WIDTH)) for item in task.cameras]
    return tuple(NetworkFeature(name, (*size, 3)) for name, size in given)


def _read(path: str, options: "ImportOptions") -> "ImportedPolicy":
    """Read a checkpoint of LeRobot, which is a folder, or of another project, which is a file. Raises BidError."""
    if path in FORMER_ARGUMENTS:
        raise BidError(f"'{path}' is not needed: bid policy import CHECKPOINT tells the projects apart by itself")
    if Path(path).is_file():
        from bid_ros.importing.diffusion_policy.reading import read_policy as read_file
        from bid_ros.importing.original_act import read_original

        return read_original(path, options) or read_file(path, options)
    from bid_ros.importing.lerobot.reading import read_policy as read_folder

    return read_folder(path, options)
