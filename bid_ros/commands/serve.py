"""``bid serve``: sample a bundle for other computers."""

import argparse
import json
import signal
import sys
import threading
from typing import Any, Final

from bid_ros.commands.tasks import task_of
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import bundled_task, load_bundle
from bid_ros.policy.registry import start_policy
from bid_ros.policy.remote.server import PolicyServer
from bid_ros.policy.remote.service import MOST, PolicyService
from bid_ros.system.priority import raise_priority

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
PORT: Final = 8000  # as openpi's
PRIORITY: Final = 7  # steps of niceness, as a policy node has: a decision that waits for other programs is missed


def add_parser(verbs: Any) -> None:
    """Add ``serve``."""
    parser = verbs.add_parser(
        "serve",
        help="sample a bundle for other computers, over openpi's websocket protocol",
        description="Serve the policy of a bundle until Ctrl-C. `bid remote` writes a bundle that points to this "
        "server; clients of openpi get one chunk an answer. Needs no ROS. There is no password: whoever reaches the "
        "port may ask.",
    )
    parser.add_argument("bundle", help="folder of a policy bundle")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the bundle is of)")
    shown = "address to serve on; 0.0.0.0: every network (default 127.0.0.1, this computer alone)"
    parser.add_argument("--host", default=LOOPBACK[0], help=shown)
    parser.add_argument("--port", type=int, default=PORT, help=f"0: any free one (default {PORT})")
    parser.add_argument("--runtime", default="auto", help="network runtime (default auto)")
    parser.add_argument("--threads", type=int, default=1, help="inference threads (default 1)")
    parser.add_argument("--engines", default="", help="folder of compiled engines (default ~/.cache/bid_ros/engines)")
    parser.add_argument("--samples", type=int, default=16, help="N to be ready for (default 16)")
    parser.add_argument("--seed", type=int, default=0, help="of the noise, for clients that send none (default 0)")
    parser.add_argument("--json", action="store_true", help="print the report at the end as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal, then report."""
    check_range("", "port", options.port, 0, 65535, BidError)
    check_range("", "samples", options.samples, 1, MOST, BidError)
    check_range("", "seed", options.seed, 0, 2**31 - 1, BidError)
    task = task_of(options.task, bundled_task(options.bundle), options.bundle)
    bundle = load_bundle(options.bundle, task)
    policy = start_policy(bundle, task, options.samples, options.runtime, options.threads, options.engines)
    raise_priority(PRIORITY, every_thread=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server = PolicyServer(PolicyService(policy, bundle, task), options.host, options.port, options.seed, say=_say)
    try:
        _say(described(bundle, task, policy.runtime, policy.has_weak, server))
        ended.wait()
    finally:
        server.close()
    report = server.report()
    print(json.dumps(report) if options.json else summary(report))
    return 0


def described(bundle: Bundle, task: Task, runtime: str, weak: bool, server: PolicyServer) -> str:
    """Return what is served and where, in a few lines."""
    seen = ", ".join(f"{item.name} {(task.observation_steps, *item.shape)}" for item in task.observation)
    policies = "strong and weak policy" if weak else "strong policy"
    lines = [
        f"serving {bundle.label} of task {task.name} ({policies}, runtime {runtime})",
        f"  at ws://{server.host}:{server.port}; it ends with Ctrl-C",
        f"  observations: {seen}",
        f"  chunks: {task.horizon} rows of {task.action_dim} values, {task.rate_hz:g} Hz",
    ]
    if server.host not in LOOPBACK:
        lines.append("  whoever reaches this port may ask: there is no password and no encryption")
    return "\n".join(lines)


def summary(report: dict[str, Any]) -> str:
    """Return the report as one line."""
    text = f"{report['answered']} questions answered, {report['refused']} refused"
    if "answer_ms_p50" not in report:
        return text
    return f"{text}; an answer took p50 {report['answer_ms_p50']} ms, p99 {report['answer_ms_p99']} ms"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
