"""Arguments that several verbs share. They are made from the declaration of a run's arguments."""

import argparse
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from bid_ros.core.errors import BidError
from bid_ros.decoding import split_decoders
from bid_ros.system.run import RunArguments, argument_fields, argument_kind

SYSTEM_HELP = "a system's folder, or the name of a shipped one: franka_place or ur5_pick"
ARMS_HELP = f"{SYSTEM_HELP}; or of two arms: franka_place_two"
DEFAULT = re.compile(r" \(default: [^)]*\)")
Arguments = TypeVar("Arguments")
# Arguments of a run of a policy, in the twin or in a rehearsal.
POLICY_ARGUMENTS = ("decoder", "samples", "action_horizon", "decision_rate", "moving", "episodes", "seed", "bundle")


class WithDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Says the default of every option that has one, unless its help says it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        said = action.default in (None, "", False) or "default" in (action.help or "")
        return action.help if said else super()._get_help_string(action)


def add_run_arguments(
    parser: argparse.ArgumentParser,
    only: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    printed: str = "run.json",
    of: type[Any] = RunArguments,
) -> None:
    """Add the arguments of a run, as ``--robot-ip`` and so on, and ``--json``.

    Args:
        parser: parser of the verb.
        only: names of the arguments to add; empty: all.
        defaults: values that replace the declared ones.
        printed: what ``--json`` prints.
        of: dataclass of the arguments.
    """
    for item in argument_fields(of):
        if only and item.name not in only:
            continue
        kind, default = argument_kind(item.name, of), (defaults or {}).get(item.name, item.default)
        shown = "" if default in (None, "", ()) else f" (default {_shown(default)})"
        text = item.metadata["help"]
        if shown:
            text = DEFAULT.sub("", text)  # another verb's
        options: dict[str, Any] = {"default": default, "help": text + shown}
        if kind is bool:
            options["action"] = argparse.BooleanOptionalAction
        elif kind is tuple:
            options["nargs"] = "+"
        else:
            options["type"] = kind
        flags = [f"--{item.name.replace('_', '-')}"]
        parser.add_argument(*(["-o"] if item.name == "out" else []), *flags, **options)
    parser.add_argument("--json", action="store_true", help=f"print {printed} on standard output")


def _shown(default: Any) -> str:
    """Return a default as a person would type it."""
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"{default:g}" if isinstance(default, float) else str(default)


def run_arguments(options: argparse.Namespace) -> RunArguments:
    """Return the arguments of the run. Raises BidError if a value is outside its range."""
    return given_arguments(options, RunArguments)


def given_arguments(options: argparse.Namespace, of: type[Arguments]) -> Arguments:
    """Return the arguments of a dataclass. Raises BidError if a value is outside its range."""
    given: dict[str, Any] = {}
    for item in argument_fields(of):
        if hasattr(options, item.name):
            value = getattr(options, item.name)
            given[item.name] = tuple(value) if isinstance(value, list) else value
    return of(**given)


def add_decoders(parser: Any, **options: Any) -> None:
    """Add ``--decoder``, which takes a comma list of decoders, each with its settings, and gives a tuple."""
    parser.add_argument("--decoder", type=split_decoders, **options)


def add_list(parser: Any, flag: str, kind: Callable[[str], Any], **options: Any) -> None:
    """Add an option that takes a comma list and gives a tuple. Parsing raises BidError for another value."""

    def parse(text: str) -> tuple[Any, ...]:
        try:
            return tuple(kind(part.strip()) for part in text.split(","))
        except ValueError as error:
            raise BidError(f"{flag} is '{text}'; valid is a comma list of numbers") from error

    parser.add_argument(flag, type=parse, **options)
