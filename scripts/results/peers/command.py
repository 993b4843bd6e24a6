"""A decision beside the eager procedure of the published code, and beside the machine's floor."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.tasks import task_path
from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.task import Task, load_task
from bid_ros.system.folder import FILE, find_system, shipped_systems

if TYPE_CHECKING:
    from results.peers.comparison import Comparison, Peer, Setup

DESCRIPTION = """\
Times decisions of Bidirectional Decoding: as this package makes them, and as the published code and LeRobot do: eager
PyTorch with the same weights, an observation encoded for every sample, strong and weak samples apart, the scheduler in
Python. All alternate in one run. The second table says what a decision takes at least on this machine: its
multiply-adds and bytes, over the rates that were measured between the decisions."""


def main() -> int:
    """Read the options, compare, print the tables. Return the exit status."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("system", nargs="?", default="franka_place", help=f"{SYSTEM_HELP}, or pusht")
    parser.add_argument("--bundle", default="", help="folder of another policy of the same task")
    parser.add_argument("--full-size", action="store_true", help="U-Net 512, 1024, 2048 and ResNet-18, random weights")
    parser.add_argument("--samples", type=int, default=16, help="N, of the strong and of the weak policy (default 16)")
    parser.add_argument("--decisions", type=int, default=100, help="of each procedure (default 100)")
    parser.add_argument("--warm-up", type=int, default=5, help="decisions before these (default 5)")
    parser.add_argument(
        "--peers",
        default="ddim,ddim:10,ddpm:100",
        metavar="NAME[:STEPS],...",
        help="procedures, of ddim and ddpm; without STEPS: the steps of the bundle (default ddim,ddim:10,ddpm:100)",
    )
    parser.add_argument("--runtime", default="auto", help="of this package: auto, openvino or onnx")
    parser.add_argument("--threads", type=int, default=1, help="of both (default 1)")
    parser.add_argument("--plot", default="", metavar="FILE", help="draw the medians, for example peers.png")
    parser.add_argument("--json", action="store_true", help="print everything as JSON instead of the tables")
    options = parser.parse_args()
    from results.peers.report import markdown, plot

    with tempfile.TemporaryDirectory() as folder:
        result = _compare(options, Path(folder))
    print(json.dumps(result.to_dict()) if options.json else markdown(result))
    if options.plot:
        plot(result, Path(options.plot))
        print(f"picture: {options.plot}", file=sys.stderr)
    return 0


def _compare(options: argparse.Namespace, folder: Path) -> "Comparison":
    from results.peers.comparison import compare_peers

    peers = [_peer(text) for text in options.peers.split(",") if text.strip()]
    if options.warm_up < 0:
        raise BidError(f"--warm-up is {options.warm_up}; valid is 0 or more")
    return compare_peers(_setup(options, folder), peers, options.decisions, options.warm_up)


def _setup(options: argparse.Namespace, folder: Path) -> "Setup":
    from bid_ros.learning.families import bundle_networks
    from bid_ros.policy.bundle import load_bundle
    from results.peers.comparison import Setup
    from results.peers.eager import Networks

    task = load_task(task_path(options.system))
    if options.full_size:
        bundle, networks = _full_size(folder, task)
    else:
        bundle = load_bundle(_bundle(options.system, options.bundle), task)
        networks = [Networks(item.encoder, item.denoiser) for item in bundle_networks(bundle, task).values()]
    return Setup(bundle, networks, task, options.samples, options.runtime, options.threads)


def _full_size(folder: Path, task: Task) -> Any:
    from bid_ros.policy.diffusion.sampler import DiffusionConfig
    from results.peers.full_size import parameters, write_full_size

    bundle, networks = write_full_size(folder, task, DiffusionConfig())
    encoder, denoiser = parameters(networks[0])
    print(f"a policy: encoder {encoder / 1e6:.1f} M, denoiser {denoiser / 1e6:.1f} M parameters", file=sys.stderr)
    return bundle, networks


def _bundle(system: str, asked: str) -> Path:
    if asked:
        return Path(asked)
    if system in shipped_systems() or (Path(system) / FILE).is_file():
        return find_system(system).bundle()
    return share("models", system)


def _peer(text: str) -> "Peer":
    from results.peers.comparison import Peer

    name, _, steps = text.strip().partition(":")
    if name not in ("ddim", "ddpm") or not (steps == "" or steps.isdecimal()):
        raise BidError(f"--peers has '{text.strip()}'; valid is ddim or ddpm, with :STEPS or without")
    return Peer(name, int(steps or 0))  # type: ignore[arg-type]  # checked above


if __name__ == "__main__":
    sys.exit(main())
