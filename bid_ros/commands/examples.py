"""An example of each verb, which its help shows."""

import argparse
import textwrap
from collections.abc import Iterator
from typing import Final

WIDEST: Final = 120  # characters of a line
EXAMPLES: Final = (
    "up franka_place --episodes 3 --out runs/first",
    "teleop franka_place --device keyboard --out runs/mine",
    "rehearse franka_place --episodes 5",
    "retrace franka_place runs/mine/bag --speed 0.5",
    "reset --namespace /left",
    "operator --namespace /left",
    "record franka_place --device gamepad --episodes 10 --out runs/demos",
    "demos franka_place --count clean=20 --out data/demos",
    "episodes list runs",
    "episodes show runs/first/bag:1",
    "episodes validate runs/demos/episodes",
    "episodes sheet runs/first/bag:1 -o sheet.png",
    "episodes plot runs/first/bag:1 -o plot.png",
    "episodes page runs/demos/episodes -o page",
    "episodes video runs/first/bag --quality 720p --episode 1 -o run.webp",
    "episodes repair runs/first/bag",
    "episodes table runs/first runs/second",
    "episodes motion runs/first/bag --json",
    "episodes trim runs/first/bag:1 --from 0.5 --to 8 -o trimmed",
    "episodes split runs/first/bag -o single",
    "episodes merge runs/first/bag runs/second/bag -o both",
    "episodes delete runs/first/bag:1",
    "episodes restore runs/first/bag",
    "replay runs/first/bag --nodes --decoder vanilla",
    "data build runs/demos/episodes --out data/mine",
    "data convert data/mine data/lerobot --to lerobot_v30",
    "data info data/mine",
    "data map data/so101 --out so101.yaml",
    "train data/mine --steps 8000 --out data/training",
    "policy import checkpoint.ckpt --task my/task.yaml --out models/imported",
    "policy export data/training --out models/mine",
    "policy distill models/mine data/mine --out models/fast",
    "policy correct models/mine data/mine --out models/mine_head",
    "policy compile models/mine --runtime openvino",
    "serve models/mine --port 8000",
    "remote 192.168.1.20:8000 models/served --task my/task.yaml",
    "evaluate franka_place data/mine --decoder vanilla,bid",
    "bench pusht --decoder vanilla,bid --action-horizon 1 --episodes 20",
    "bench diagnostic --noise 0,0.2 --action-horizon 1,7",
    "bench data pusht_cchi_v7_lowdim.npz --out data/pusht.npz",
    "new my_cell --robot ur",
    "check franka_place --robot-ip 172.16.0.2",
    "cameras my_cell wrist --lock",
    "calibrate hand-eye my_cell wrist --drive",
    "accept my_cell --robot-ip 172.16.0.2 --out acceptance",
    "secure franka_place keys/policy.xml",
    "view runs/first/bag --save run.rrd",
    "top franka_place",
    "schema --out schemas",
)


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of every verb that has no others in it."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in inner:
        for found in dict.fromkeys(action.choices.values()):  # an alias is the same parser
            yield from leaves(found)
    if not inner:
        yield parser


def show_examples(parser: argparse.ArgumentParser) -> None:
    """Let the description of every verb end with its example, and that of a verb of verbs with an example of each.

    Descriptions that argparse prints as they are get lines that fit a terminal.
    """
    for verb in leaves(parser):
        for mine in _of(verb)[:1]:
            verb.description = f"{_wrapped(verb.description)}\n\nExample: {mine}".strip()
    for verb in _verbs_of_verbs(parser):
        verb.description = _wrapped(verb.description)
        if not verb.epilog:
            verb.formatter_class = argparse.RawDescriptionHelpFormatter
            verb.epilog = "\n".join(["examples:", *(f"  {text}" for text in _of(verb))])


def _wrapped(description: str | None) -> str:
    return "\n".join(part for line in (description or "").split("\n") for part in textwrap.wrap(line, WIDEST) or [""])


def _verbs_of_verbs(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (verb for verb in action.choices.values() if next(leaves(verb)) is not verb)


def _of(verb: argparse.ArgumentParser) -> list[str]:
    """Return the examples of a verb, as they are typed."""
    return [f"bid {text}" for text in EXAMPLES if f"bid {text} ".startswith(f"{verb.prog} ")]
