"""Show what each real-time measure does to decisions at 10 Hz, alone and beside two processes that only compute.

Usage: real-time SYSTEM [--rounds 6] [--decisions 50] [--bundle BUNDLE]. Settings alternate in rounds. Each is a
process of its own, which decides ten times a second, as the policy node does. The time is from when a decision was due
to its end.

Settings: plain; frozen, the garbage collector ignores all that was there before the first decision; locked, mlockall;
pinned, to one core; nice, niceness -10; real-time, SCHED_RR of the thread that decides. Some need privileges.
"""

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from computing import computing

from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy
from bid_ros.system.folder import find_system
from bid_ros.system.priority import raise_priority
from results.timing import stream_of_noise

PERIOD_S: Final = 0.1
ALL_PAGES: Final = 3  # MCL_CURRENT | MCL_FUTURE
FIRST: Final = 5  # decisions that do not count


def freeze() -> None:
    """Let the garbage collector ignore what is there. Print what a full collection takes before and after."""
    gc.collect()
    took = [collection_ms()]
    gc.freeze()
    took.append(collection_ms())
    print(f"a full collection takes {took[0]:.1f} ms, frozen {took[1]:.3f} ms", file=sys.stderr)


def collection_ms() -> float:
    """Return the duration of a full collection."""
    begin = time.perf_counter()
    gc.collect()
    return 1e3 * (time.perf_counter() - begin)


def lock() -> None:
    """Keep all pages in memory."""
    if ctypes.CDLL(None, use_errno=True).mlockall(ALL_PAGES):
        raise PermissionError(ctypes.get_errno(), "mlockall")


SETTINGS: Final[dict[str, Callable[[], None]]] = {
    "plain": lambda: None,
    "frozen": freeze,
    "locked": lock,
    "pinned": lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}),
    "nice": lambda: (os.nice(-10), raise_priority(0))[1],
    "real-time": lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5)),
}


def decide(system_name: str, folder: str, setting: str, decisions: int) -> list[float]:
    """Return how long after it was due each decision ended, ms."""
    import bid_ros.nodes.policy_node  # noqa: F401  for the objects and threads that a node has

    system = find_system(system_name)
    task = system.task
    bundle = load_bundle(folder or f"models/{task.name}", task)
    policy = load_policy(bundle, task, "auto", 1)
    policy.warm_up(16)
    maker = DecisionMaker(policy, bundle_decoder("bid", bundle, task, 16, 1), task)
    observations = list(islice(stream_of_noise(task, np.random.default_rng(0)), FIRST + decisions))
    SETTINGS[setting]()
    ended, due = [], time.monotonic()
    for observation in observations:
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))
        maker.decide(observation)
        ended.append(1e3 * (time.monotonic() - due))
    return ended[FIRST:]


def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the times of all settings, in alternating rounds."""
    found: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for _ in range(options.rounds):
        for name, times in found.items():
            command = [sys.executable, str(Path(__file__).parent), "real-time", options.system]
            command += ["--setting", name, "--bundle", options.bundle]
            command += ["--decisions", str(options.decisions)]
            # A session of its own, as `bid up` starts a node.
            done = subprocess.run(command, stdout=subprocess.PIPE, start_new_session=True, check=False)
            times += json.loads(done.stdout) if done.returncode == 0 else []
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--decisions", type=int, default=50)
    parser.add_argument("--bundle", default="", help="folder (default: the system's)")
    parser.add_argument("--setting", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.setting:
        with suppress(PermissionError):
            print(json.dumps(decide(options.system, options.bundle, options.setting, options.decisions)))
            return
        sys.exit("this user may not")
    print("| setting | beside | p50 | p99 | max ms |\n|---|---|---|---|---|")
    for beside in (0, 2):
        with computing(beside, apart=True):
            for name, times in measure(options).items():
                if not times:
                    print(f"| {name} | {beside} processes | this user may not | | |")
                    continue
                p50, p99, most = np.quantile(times, [0.5, 0.99, 1.0])
                print(f"| {name} | {beside} processes | {p50:.1f} | {p99:.1f} | {most:.1f} |", flush=True)


if __name__ == "__main__":
    main()
