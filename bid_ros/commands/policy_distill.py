"""``bid policy distill``: a bundle that samples in fewer denoising steps."""

import argparse
from typing import Any, Final

from bid_ros.commands.train import add_settings, given_settings, load_training_data
from bid_ros.core.settings import parse_settings

OPTIONS: Final = ("sampling_steps", "steps", "seed")


def add_distill(parts: Any) -> None:
    """Add ``bid policy distill``."""
    parser = parts.add_parser(
        "distill",
        help="make a bundle sample in two denoising steps",
        description="Distil a diffusion policy, strong and weak, into one that samples in a few denoising steps "
        "(consistency distillation). Running the command again resumes.",
    )
    parser.add_argument("bundle", help="bundle folder that bid policy export wrote")
    parser.add_argument("dataset", help="data set of bid data build, or of another format (bid data info)")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the data are of)")
    parser.add_argument("-o", "--out", required=True, help="folder of the new bundle")
    parser.add_argument(
        "--run",
        dest="folder",
        default="data/distillation",
        help="folder of checkpoints and log (default data/distillation)",
    )
    parser.add_argument("--sampling-steps", type=int, default=2, help="denoising steps a sample (default 2)")
    parser.add_argument("--steps", type=int, default=6000, help="training steps of each student (default 6000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of order and noise (default 0)")
    add_settings(parser, "levels=8, batch=256 and learning_rate=0.0005")
    parser.set_defaults(run=run_distill)


def run_distill(options: argparse.Namespace) -> int:
    """Distil a bundle."""
    from bid_ros.learning import DistillConfig, distill
    from bid_ros.policy.bundle import load_bundle

    named = {name: getattr(options, name) for name in OPTIONS}
    config = parse_settings(DistillConfig, named | given_settings(options.settings, OPTIONS), "bid policy distill")
    dataset, task = load_training_data(options.dataset, options.task)
    distill(load_bundle(options.bundle, task), dataset, options.folder, options.out, task, config)
    return 0
