"""Policies that are not rebuilt as bundles: what to do with a checkpoint of each instead.

They have billions of weights and read texts. So they stay in their own environment, on a computer with a GPU, and
answer there: :mod:`bid_ros.policy.remote` asks them in openpi's protocol.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError

PAGE: Final = "docs/how-to/import-a-policy.md"
ASK: Final = "then a bundle asks it: bid remote HOST:8000 BUNDLE --task TASK --prompt TEXT --key FEATURE=NAME"
IN_LEROBOT: Final = (
    f"serve it from LeRobot's own environment in openpi's protocol, by the twenty lines of {PAGE}; {ASK}. LeRobot's "
    "asynchronous server is not asked: it speaks pickle, which runs code"
)
TYPES: Final[Mapping[str, str]] = {
    "smolvla": "SmolVLA",
    "pi0": "pi0",
    "pi0_fast": "pi0-FAST",
    "pi0fast": "pi0-FAST",
    "pi05": "pi0.5",
    "groot": "GR00T",
    "xvla": "X-VLA",
    "wall_x": "Wall-X",
}
"""Types of LeRobot's configurations, and the names that people know."""
ONE_ACTION: Final = ("tdmpc", "sac")
OPENPI: Final = (
    f"serve it in openpi's own environment: uv run scripts/serve_policy.py policy:checkpoint --policy.config=NAME "
    f"--policy.dir={{folder}}; {ASK}"
)
GROOT: Final = (
    f"serve it from its own environment in openpi's protocol, as {PAGE} shows for LeRobot; {ASK}. Its own server "
    "speaks ZeroMQ, which bid does not"
)


def check_rebuilt(path: str | Path) -> None:
    """Say what to do with a policy that no importer rebuilds. Anything else is left to the importers.

    Args:
        path: folder of a checkpoint, or the folder above its ``pretrained_model``.

    Raises:
        BidError: it is such a policy, and the sentence says how to run it; or a data set.
    """
    for folder in (Path(path), Path(path) / "pretrained_model"):
        if said := _advice(folder):
            raise BidError(said)


def _advice(folder: Path) -> str:
    config = _config(folder / "config.json")
    kind, model = str(config.get("type", "")), str(config.get("model_type", ""))
    if kind in TYPES:
        return f"{folder} is a policy of type {kind} ({TYPES[kind]}), which is not rebuilt as a bundle: {IN_LEROBOT}"
    if kind in ONE_ACTION:
        return f"{folder} is a policy of type {kind}, which predicts one action and no chunk: BID has nothing to choose"
    if model.lower().startswith(("gr00t", "groot")):
        return f"{folder} is a policy of Isaac GR00T ({model}), which is not rebuilt as a bundle: {GROOT}"
    if (folder / "meta" / "info.json").is_file():
        return f"{folder} is a data set of LeRobot, no policy: bid data info {folder} says what it holds"
    if (folder / "assets").is_dir() and ((folder / "params").is_dir() or (folder / "model.safetensors").is_file()):
        return f"{folder} is a checkpoint of openpi, which is not rebuilt as a bundle: {OPENPI.format(folder=folder)}"
    return ""


def _config(path: Path) -> Mapping[str, object]:
    """Return a configuration; empty if there is none: what is wrong with it, the importers say."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
