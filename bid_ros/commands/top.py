"""``bid top``: how a running system is, in the terminal."""

import argparse
import json
import sys
import threading
import time
from typing import Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.robot import NAMESPACE
from bid_ros.core.errors import BidError
from bid_ros.core.topics import check_namespace
from bid_ros.system.folder import System, find_system
from bid_ros.tasks.topics import system_topics

LISTEN_S: Final = 4.0  # for one snapshot: heartbeats and diagnostics come once a second


def add_parser(verbs: Any) -> None:
    """Add ``top``."""
    parser = verbs.add_parser(
        "top",
        help="watch rates, latencies, losses and the state of safety in the terminal",
        description="Show how a running system is, twice a second: state of safety and arm, decoder and N, latencies "
        "of the decisions, losses of the candidates, rate and silence of every topic and node, and what the nodes say "
        "of themselves. Nothing waits for it; nodes may come and go. The screen needs the extra `view`.",
        epilog="--seconds and --json need no extra. Their exit status is 1 if nothing was heard.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("--namespace", default="", help=NAMESPACE)
    parser.add_argument("--json", action="store_true", help="listen for a while, print once as JSON, end")
    parser.add_argument(
        "--seconds", type=float, help=f"listen for so long, print once, end (default of --json: {LISTEN_S:g})"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Watch a system; return 1 if a snapshot has nothing."""
    seconds = LISTEN_S if options.seconds is None else options.seconds
    if not 0.1 <= seconds <= 3600:
        raise BidError(f"--seconds is {seconds:g}; valid is 0.1 to 3600")
    system, namespace = find_system(options.system), check_namespace(options.namespace)
    if options.seconds is None and not options.json:
        return _screen(system, namespace)
    return _once(system, namespace, seconds, options.json)


def _once(system: System, namespace: str, seconds: float, as_json: bool) -> int:
    from bid_ros.nodes.following import follow
    from bid_ros.views.vitals import Vitals, vitals_text

    topics, ended = system_topics(system.task), threading.Event()
    vitals = Vitals(topics)
    timer = threading.Timer(seconds, ended.set)
    timer.daemon = True
    timer.start()
    follow(topics, vitals.add, namespace, ended, images=False)
    said = vitals.snapshot(time.time_ns())
    print(json.dumps(said) if as_json else vitals_text(said))
    if any(item["silent_s"] is not None for item in said["topics"].values()):
        return 0
    print(f"nothing was heard in namespace {namespace or '/'} in {seconds:g} s", file=sys.stderr)
    return 1


def _screen(system: System, namespace: str) -> int:
    from bid_ros.views.top_screen import TopScreen  # first: a missing extra is said before anything starts

    if not sys.stdout.isatty():
        raise BidError("standard output is no terminal; valid is a terminal, or --seconds or --json")
    from bid_ros.nodes.following import follow
    from bid_ros.views.vitals import Vitals

    topics, ended, problems = system_topics(system.task), threading.Event(), list[BaseException]()
    vitals = Vitals(topics)

    def listen() -> None:
        try:
            follow(topics, vitals.add, namespace, ended, images=False)
        except BaseException as error:  # the thread that shows it raises it
            problems.append(error)

    listener = threading.Thread(target=listen, name="listener", daemon=True)
    listener.start()
    title = f"{system.task.name}  {namespace or '/'}"
    TopScreen(title, lambda: vitals.snapshot(time.time_ns()), listener.is_alive).run()
    ended.set()
    listener.join()
    if problems:
        raise problems[0]
    return 0
