"""``bid remote``: write a small bundle that points to a policy server."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bid_ros.commands.serve import LOOPBACK
from bid_ros.commands.tasks import task_of
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.policy.remote.config import TIMEOUT_MS, RemoteConfig
from bid_ros.policy.remote.dial import VARIABLE, parse_address, read_key
from bid_ros.policy.remote.pointing import ask_metadata, write_remote_bundle
from bid_ros.policy.remote.wire import own_words

CONNECT_S: Final = 5.0
LIMITS_S: Final = (0.001, 60.0)  # of a decision


def add_parser(verbs: Any) -> None:
    """Add ``remote``."""
    parser = verbs.add_parser(
        "remote",
        help="write a bundle that points to a policy server: `bid serve`, or one of openpi",
        description="Ask a policy server what it serves, and write a bundle that points to it. Use that bundle like "
        "any other. For a server that only speaks openpi's protocol, give --task, and --key for the names of features.",
    )
    parser.add_argument("address", help="HOST:PORT, ws://HOST:PORT or wss://HOST:PORT")
    parser.add_argument("folder", help="folder of the new bundle")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the server says)")
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_MS / 1000,
        help=f"s after which a decision is given up (default {TIMEOUT_MS / 1000:g}; above 0.3 the heartbeat pauses)",
    )
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="FEATURE=KEY",
        help="for a server of openpi: what it calls a feature, such as wrist=observation/wrist_image; several times",
    )
    prompt = "for a server of openpi: the instruction (default: the description of the task; '' for none)"
    parser.add_argument("--prompt", help=prompt)
    key = f"file with the key that the server asks for (default: the variable {VARIABLE}); the bundle names the file"
    parser.add_argument("--api-key-file", default="", metavar="FILE", help=key)
    certificate = "for wss://: trust the server with this certificate alone (default: what this computer trusts)"
    parser.add_argument("--certificate", default="", metavar="FILE", help=certificate)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask, write, and say what was written."""
    address = parse_address(options.address)
    key_file, certificate = _path(options.api_key_file), _path(options.certificate)
    if options.certificate and not address.startswith("wss:"):
        raise BidError(f"--certificate is given, but {address} is not encrypted; valid is an address wss://HOST:PORT")
    check_range("", "--timeout", options.timeout, *LIMITS_S, BidError)
    plain = RemoteConfig(address, 1000 * options.timeout, api_key_file=key_file, certificate=certificate)
    said = own_words(ask_metadata(plain, CONNECT_S))
    if said and (options.key or options.prompt):
        raise BidError(f"{address} is a server of bid serve, which knows its features; leave --key and --prompt out")
    if not said and not options.task:
        raise BidError(f"{address} does not say of which task it is; name the file with --task")
    task = task_of(options.task, str(said.get("task", "")), address)
    names = [item.name for item in task.observation]
    keys = dict(_pair(text, names) for text in options.key)
    prompt = task.description if options.prompt is None else options.prompt
    settings = replace(plain, keys=keys, prompt="" if said else prompt)
    bundle = write_remote_bundle(Path(options.folder), task, settings, said)
    if read_key(settings.api_key_file) and in_clear(address):
        print(f"the key goes to {address} unencrypted; wss:// or a tunnel hides it", file=sys.stderr)
    served = f"{said['name']}@{str(said['sha256'])[:12]}" if said else "a server of openpi"
    report = {"bundle": str(bundle.path), "serves": served, "task": task.name, "weak": bundle.weak is not None}
    if options.json:
        print(json.dumps(report))
    else:
        samples = "strong and weak samples" if report["weak"] else "strong samples"
        print(f"{bundle.path} points to {served} at {address}: {samples}, task {task.name}")
    return 0


def in_clear(address: str) -> bool:
    """Return whether what is sent to an address can be read on a network."""
    return address.startswith("ws:") and urlsplit(address).hostname not in LOOPBACK


def _path(text: str) -> str:
    """Return a path that means the same wherever it is read."""
    return str(Path(text).expanduser().resolve()) if text else ""


def _pair(text: str, names: list[str]) -> tuple[str, str]:
    name, _, key = text.partition("=")
    if name not in names or not key:
        raise BidError(f"--key is '{text}'; valid is FEATURE=KEY, with a feature of {', '.join(names)}")
    return name, key
