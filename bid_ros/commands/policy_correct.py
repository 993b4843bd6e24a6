"""``bid policy correct``: a head that corrects the actions of a policy's chunks while they are executed."""

import argparse
from typing import Any

from bid_ros.commands.train import add_settings, given_settings, load_training_data
from bid_ros.core.settings import parse_settings


def add_correct(parts: Any) -> None:
    """Add ``bid policy correct``."""
    parser = parts.add_parser(
        "correct",
        help="train a head that corrects the actions of old decisions",
        description="Train a small network that corrects each action of a chunk by what was observed\n"
        "since the chunk was decided (A2C2). The policy stays as it is. bid bench uses the head:\n"
        "--correction FOLDER. The policy node does not use it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", help="bundle folder of a diffusion policy or a flow")
    parser.add_argument("dataset", help="data set of bid data build, or of another format (bid data info)")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the data are of)")
    parser.add_argument("-o", "--out", required=True, help="folder of the head")
    add_settings(parser, "steps=4000, batch=512, samples=4, width=256, learning_rate=0.001 and seed=0")
    parser.set_defaults(run=run_correct)


def run_correct(options: argparse.Namespace) -> int:
    """Train a correction head."""
    from bid_ros.learning import CorrectionConfig, train_correction
    from bid_ros.policy.bundle import load_bundle

    config = parse_settings(CorrectionConfig, given_settings(options.settings, ()), "bid policy correct")
    dataset, task = load_training_data(options.dataset, options.task)
    result = train_correction(load_bundle(options.bundle, task), dataset, task, options.out, config)
    print(
        f"{result.out}: on held-out episodes an action is {result.before:.3f} spreads from the demonstration, "
        f"{result.after:.3f} with the correction"
    )
    return 0
