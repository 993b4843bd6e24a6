"""``bid serve``: sample a bundle for other computers."""

import argparse
import json
import signal
import ssl
import sys
import threading
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.tasks import task_of
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import bundled_task, load_bundle
from bid_ros.policy.registry import start_policy
from bid_ros.policy.remote.dial import VARIABLE, read_key
from bid_ros.policy.remote.server import PolicyServer
from bid_ros.policy.remote.service import PolicyService
from bid_ros.system.priority import raise_priority
from bid_ros.teleop.page_server import SELF, own_certificate

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
PORT: Final = 8000  # as openpi's
SEED: Final = 0  # of the noise, for clients that send none
PRIORITY: Final = 7  # steps of niceness, as a policy node has: a decision that waits for other programs is missed


def add_parser(verbs: Any) -> None:
    """Add ``serve``."""
    parser = verbs.add_parser(
        "serve",
        help="let other computers sample from a bundle, over openpi's websocket protocol",
        description="Serve the policy of a bundle until Ctrl-C. `bid remote` writes a bundle that points to this "
        "server; clients of openpi get one chunk an answer. Needs no ROS. Without a key, whoever reaches the port may "
        "ask.",
    )
    parser.add_argument("bundle", help="folder of a policy bundle")
    parser.add_argument("--task", default="", help="name or path of the task file (default: what the bundle is of)")
    shown = "address to serve on; 0.0.0.0: every network (default 127.0.0.1, this computer alone)"
    parser.add_argument("--host", default=LOOPBACK[0], help=shown)
    parser.add_argument("--port", type=int, default=PORT, help=f"port to serve on; 0: any free one (default {PORT})")
    key = f"file with a key that clients have to send (default: the variable {VARIABLE}; without both, none)"
    parser.add_argument("--api-key-file", default="", metavar="FILE", help=key)
    certificate = "encrypt (wss://) with a certificate and its key in PEM form; self: make one of this computer's own"
    parser.add_argument("--certificate", default="", metavar="FILE", help=certificate)
    parser.add_argument("--runtime", default="auto", help="network runtime (default auto)")
    parser.add_argument("--threads", type=int, default=1, help="inference threads (default 1)")
    parser.add_argument("--samples", type=int, default=16, help="N to be ready for (default 16)")
    parser.add_argument("--json", action="store_true", help="print the report at the end as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal, then report."""
    check_range("", "port", options.port, 0, 65535, BidError)
    check_range("", "samples", options.samples, 1, MOST_SAMPLES, BidError)
    key, tls = read_key(options.api_key_file), encryption(options.certificate)
    task = task_of(options.task, bundled_task(options.bundle), options.bundle)
    bundle = load_bundle(options.bundle, task)
    policy = start_policy(bundle, task, options.samples, options.runtime, options.threads)
    raise_priority(PRIORITY, every_thread=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    service = PolicyService(policy, bundle, task)
    server = PolicyServer(service, options.host, options.port, SEED, _say, key, tls)
    try:
        _say(described(bundle, task, policy.runtime, policy.has_weak, server))
        _say(access(options, bool(key)))
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
        f"  at {server.address}; it ends with Ctrl-C",
        f"  observations: {seen}",
        f"  chunks: {task.horizon} rows of {task.action_dim} values, {task.rate_hz:g} Hz",
    ]
    return "\n".join(lines)


def access(options: argparse.Namespace, keyed: bool) -> str:
    """Return who may ask, in one line."""
    if options.host in LOOPBACK:
        reach = "  this computer alone reaches it"
    else:
        reach = f"  {'encrypted' if options.certificate else 'not encrypted'}"
    return f"{reach}; {'clients have to send the key' if keyed else 'no key is asked for: whoever reaches it may ask'}"


def encryption(certificate: str) -> ssl.SSLContext | None:
    """Return the settings of TLS for a file with a certificate and its key; None without one.

    Raises:
        BidError: the file cannot be read, or holds no certificate and its key.
    """
    if not certificate:
        return None
    key = None
    if certificate == SELF:
        certificate, key = own_certificate()
        _say(f"  its certificate, for `bid remote --certificate`: {certificate}")
    if not Path(certificate).is_file():
        raise BidError(f"there is no file {certificate}; valid is one in PEM form")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise BidError(
            f"{certificate} holds no certificate with its key ({error.strerror or error}); valid is PEM form"
        ) from error
    return context


def summary(report: dict[str, Any]) -> str:
    """Return the report as one line."""
    text = f"{report['answered']} questions answered, {report['refused']} refused"
    if report["dropped"]:
        text += f", {report['dropped']} came too late for their clients"
    if "answer_ms_p50" not in report:
        return text
    return f"{text}; an answer took p50 {report['answer_ms_p50']} ms, p99 {report['answer_ms_p99']} ms"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
