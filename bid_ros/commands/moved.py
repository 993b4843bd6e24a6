"""Commands and options that have another name today. Each old one is answered with a sentence, of ``moved.json``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError

TABLE: Final = Path(__file__).with_name("moved.json")


def check_moved(words: Sequence[str]) -> None:
    """Raise BidError if a command line has a verb or an option that has another name today.

    Args:
        words: the command line without ``bid``.
    """
    moved = json.loads(TABLE.read_text())
    named = [" ".join(words[:2]), *words[:1]]
    for command in named:
        if command in moved["commands"]:
            raise BidError(f"bid {command} {moved['commands'][command]}")
    command = next((name for name in named if name in moved["options"]), "")
    options = moved["options"].get(command, {})
    for flag in (word.split("=", 1)[0] for word in words):
        if flag in options:
            raise BidError(f"bid {command} has no {flag} any more: {options[flag]}")
