"""Verbs and options that have another name today. Each old one is answered with a sentence."""

from collections.abc import Mapping, Sequence
from typing import Final

from bid_ros.core.errors import BidError

VERBS: Final[Mapping[str, str]] = {
    "dataset": "data build",
    "import": "policy import",
    "export": "policy export",
    "distill": "policy distill",
    "compile": "policy compile",
    "video": "episodes video",
    "repair": "episodes repair",
    "table": "episodes table",
    "motion": "episodes motion",
}
SCRIPTS: Final[Mapping[str, str]] = {f"bench {name}": f"python scripts/results {name}" for name in ("peers", "system")}
"""Verbs that are scripts of a checkout today."""
_DECODERS: Final = {
    "mode-size": "bid:mode_size=2",
    "decay": "bid:decay=0.3",
    "metric": "bid:metric=l1",
    "trim": "bid:variant=paper,trim=nearest",
    "ema-weight": "ema:ema_weight=0.3",
    "warm-start": "warmstart:warm_start=clean",
}
_SETTINGS: Final = {
    "widths": "network.widths=[32,64,128]",
    "condition": "network.condition=128",
    "state-noise": "augment.state=0.1",
    "angle-noise": "augment.angles=0.01",
    "history-dropout": "augment.history=0.3",
    "action-reference": "action_reference=base",
    "prediction": "diffusion.prediction=epsilon",
    "assign-noise": "assign_noise=true",
    "independent-codes": "vqbet.sequential=false",
    **{
        name: f"vqbet.{name.replace('-', '_')}=VALUE"
        for name in ("codes", "width", "layers", "heads", "offset-codes", "offset-weight", "temperature")
    },
}
_UP: Final = "bid up has it: bid up SYSTEM --driver DEVICE"
_BY_UP: Final = "bid up has it: bid up SYSTEM --driver policy --takeover DEVICE --human"
_LEVEL: Final = "bid up and bid replay have it"
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "train": {f"--{name}": f"give it as: --set {value}" for name, value in _SETTINGS.items()},
    "bench pusht": {f"--{name}": f"say it in the list: --decoder {text}" for name, text in _DECODERS.items()},
    "policy distill": {
        "--levels": "give it as: --set levels=8",
        "--batch": "give it as: --set batch=256",
        "--learning-rate": "give it as: --set learning_rate=0.0005",
    },
    "policy import": {
        "--name": "a bundle has the name of its folder, --out",
        "--text": "it is the description of the task, in its file",
    },
    "policy compile": {"--engines": "set the variable BID_ENGINES to their folder"},
    "serve": {
        "--engines": "set the variable BID_ENGINES to their folder",
        "--seed": "clients that send no noise get that of seed 0",
        "--certificate-key": "append the key to the file of --certificate",
    },
    "up": {
        "--image-codec": "set image_codec of the recorder in nodes.yaml or with --parameters",
        "--acts": "it is --driver",
        "--person": "it is --human",
        "--no-person": "it is --no-human",
    },
    "check": {
        **dict.fromkeys(("--samples", "--action-horizon"), "bid up has it, or system.yaml"),
        "--acts": "it is --driver",
    },
    "teleop": dict.fromkeys(("--seed", "--timeout", "--log-level"), _UP),
    "record": dict.fromkeys(("--decoder", "--samples", "--action-horizon", "--log-level"), _BY_UP),
    "retrace": {
        "--episode": "name the episode N of a bag BAG:N",
        "--log-level": _LEVEL,
        "--parameters": "set them in nodes.yaml",
        "--record": "a retraced motion is always recorded",
        "--no-record": "a retraced motion is always recorded",
    },
    "remote": {"--connections": "a policy has one connection: leave it out"},
    "top": {"--once": "--seconds S listens for S seconds, prints once and ends"},
    "evaluate": {"--shown": "the page shows 12 episodes"},
    "data convert": {"--quality": "give it after the form: --images video:18"},
    **{f"episodes {name}": {"--json": "it writes the file that -o names"} for name in ("sheet", "plot", "page")},
}


def check_moved(words: Sequence[str]) -> None:
    """Raise BidError if a command line has a verb or an option that has another name today.

    Args:
        words: the command line without ``bid``.
    """
    if not words:
        return
    verb = words[0]
    if verb in VERBS:
        raise BidError(f"bid {verb} is now: bid {VERBS[verb]}")
    if (two := " ".join(words[:2])) in SCRIPTS:
        raise BidError(f"bid {two} is a script of a checkout of bid_ros now: {SCRIPTS[two]}")
    path = next((name for name in (" ".join(words[:2]), verb) if name in OPTIONS), None)
    for word in words if path else ():
        flag = word.split("=", 1)[0]
        if path and flag in OPTIONS[path]:
            raise BidError(f"bid {path} has no {flag} any more: {OPTIONS[path][flag]}")
