"""``bid train``: from a data set to checkpoints of a policy."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.tasks import task_of
from bid_ros.core.errors import BidError
from bid_ros.core.settings import parse_settings

OPTIONS: Final = ("steps", "weak_steps", "batch", "seed", "device")
FLOW: Final = "flow"
FAMILIES: Final = {"diffusion": "diffusion", FLOW: "diffusion", "vqbet": "vqbet", "act": "act"}
"""The section of the settings that each family reads."""
FLOW_STEPS: Final = 5  # of Euler; a divisor of the training's 100 levels
EPILOG: Final = """settings, each with its default:
  network.widths=[32,64,128]   channels of the denoiser per level
  network.condition=128        size of the observation's encoding
  augment.state=0              training offset on vectors, as a share of half their range
  augment.angles=0             training offset on observed joints and rotations, rad
  augment.history=0            prevents standing still: history repeats the newest observation in this share of samples
  action_reference=tool        where positions count from: tool or base
  assign_noise=false           pair the noise with the nearest actions of a batch, so that samples show more strategies
  diffusion.prediction=sample  what the denoiser returns: sample, the clean chunk, or epsilon, the noise
  vqbet.codes=16               codes of each of the two layers
  vqbet.width=128, vqbet.layers=4, vqbet.heads=4   size of the transformer
  vqbet.sequential=true        draw the second code given the first one
  vqbet.offset_codes=true      learn offsets for the demonstrated chunk's codes; drawn: for drawn codes, as published
  vqbet.offset_weight=10       weight of the actions' error
  vqbet.temperature=0.5        temperature at which codes are drawn
  act.width=128, act.encoder_layers=2, act.decoder_layers=2, act.heads=4   size of the transformer
  act.style_weight=10          weight that keeps a demonstration's style near a standard normal one
docs/how-to/train.md names the others."""

if TYPE_CHECKING:
    from bid_ros.core.task import Task
    from bid_ros.recording.dataset import Dataset


def add_parser(verbs: Any) -> None:
    """Add ``train``."""
    train = verbs.add_parser(
        "train",
        help="train a policy",
        description="Train a policy, strong and early weak checkpoint: a diffusion policy, one that predicts codes\n"
        "(VQ-BeT), or one that predicts a single chunk (ACT). Running the command again resumes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("dataset", help="data set of bid data build, or of another format (bid data info)")
    train.add_argument("--task", default="", help="name or path of the task file (default: what the data are of)")
    train.add_argument(
        "-o", "--out", default="data/training", help="folder of checkpoints, log and loss plot (default data/training)"
    )
    train.add_argument("--steps", type=int, default=8000, help="training steps of the strong policy (default 8000)")
    train.add_argument(
        "--weak-steps", type=int, default=0, help="step of the weak checkpoint (default a tenth of --steps)"
    )
    train.add_argument("--batch", type=int, default=64, help="windows a step (default 64)")
    train.add_argument("--seed", type=int, default=0, help="seed of weights, order and noise (default 0)")
    train.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    train.add_argument("--family", default="diffusion", help="diffusion, flow, vqbet or act (default diffusion)")
    train.add_argument(
        "--simulated-delay",
        type=int,
        default=0,
        metavar="D",
        help="train for decisions that arrive up to D steps late (default 0)",
    )
    train.add_argument(
        "--roll-forward",
        action="store_true",
        help="with --simulated-delay: roll the observed state forward, instead of giving the policy the rows that are "
        "executed meanwhile",
    )
    add_settings(train, "network.widths=[64,128]; see below")
    train.add_argument("--json", action="store_true", help="print the last losses as JSON")
    train.set_defaults(run=run_train)


def add_settings(parser: argparse.ArgumentParser, such: str) -> None:
    """Add ``--set``, the settings of a training that have no option of their own."""
    parser.add_argument(
        "--set",
        dest="settings",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help=f"other settings, such as {such}",
    )


def given_settings(texts: Sequence[str], options: Collection[str]) -> dict[str, Any]:
    """Return the settings of ``--set`` as a nested mapping.

    Args:
        texts: each ``NAME=VALUE``; dots in a name lead into a section, a value is JSON, or a text.
        options: names that are options of their own.

    Raises:
        BidError: a text has another form, or names an option.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise BidError(f"--set is '{text}'; valid is NAME=VALUE, such as network.condition=64")
        if name in options:
            raise BidError(f"--set names '{name}', which is an option: --{name.replace('_', '-')} {value}")
        *sections, last = name.split(".")
        place = found
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise BidError(f"--set gives {section} a value and {name} too; valid is one of them")
        if last in place:
            raise BidError(f"--set gives {name} twice; valid is once")
        place[last] = _value(value)
    return found


def _value(text: str) -> Any:
    """Return a number, list, truth or text, as JSON reads it. Another text is itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_train(options: argparse.Namespace) -> int:
    """Train a policy."""
    from bid_ros.learning import TrainConfig, train

    given = given_settings(options.settings, (*OPTIONS, "family"))
    _check_family(options.family, given)
    named_sections = {section: values for section, values in given.items() if section in FAMILIES.values()}
    named = {name: getattr(options, name) for name in OPTIONS} | {"family": options.family}
    if options.family == FLOW:
        # A flow is a diffusion policy but for what is noised and sampled.
        given["diffusion"] = _flow(given.get("diffusion", {}))
        named["family"] = "diffusion"
    if options.simulated_delay or options.roll_forward:
        delays = {"simulated_delay": options.simulated_delay, "roll_forward": options.roll_forward}
        given["diffusion"] = {**given.get("diffusion", {}), **delays}
    config = parse_settings(TrainConfig, named | given, "bid train")
    _check_read(options.family, named_sections)
    dataset, task = load_training_data(options.dataset, options.task)
    result = train(config, dataset, Path(options.out), task)
    if options.json:
        print(json.dumps({**vars(result), "out": str(result.out)}))
    return 0


def _check_family(family: str, given: Mapping[str, Any]) -> None:
    """Raise BidError if there is no such family, or ``--set`` gives its section a value."""
    if family not in FAMILIES:
        raise BidError(f"--family is '{family}'; valid is one of {', '.join(FAMILIES)}")
    for section in sorted(given.keys() & set(FAMILIES.values())):
        if not isinstance(given[section], dict):
            raise BidError(f"--set gives {section} the value {given[section]}; valid are its settings, {section}.NAME")


def _check_read(family: str, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise BidError if ``--set`` names what only another family reads."""
    for section, values in sections.items():
        if section != FAMILIES[family]:
            valid = " or ".join(name for name, its in FAMILIES.items() if its == section)
            raise BidError(
                f"--set names {section}.{next(iter(values), '')}, which the family {family} does not read; "
                f"valid is --family {valid}, or to leave it out"
            )


def _flow(given: dict[str, Any]) -> dict[str, Any]:
    """Return how a flow is noised and sampled. Raises BidError if it is told what to predict."""
    if "prediction" in given:
        raise BidError("diffusion.prediction is for --family diffusion; a flow learns velocities")
    return {"sampling_steps": FLOW_STEPS, **given, "sampler": FLOW, "prediction": "velocity"}


def load_training_data(path: str, named: str) -> tuple[Dataset, Task]:
    """Return a data set of any format, and its task, which ``named`` may name. Raises BidError if one is not valid."""
    from bid_ros.commands.data import dataset_task
    from bid_ros.formats import load_dataset
    from bid_ros.recording.dataset import Dataset

    if Path(path).suffix == ".npz" or not Path(path).exists():
        dataset = Dataset.load(path)
        return dataset, task_of(named, dataset.task, path)
    task = dataset_task(path, named)
    return load_dataset(path, task), task
