"""Who runs the units: this process, a pool of processes, or a Ray cluster. All give the same numbers."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.bench.grid import Unit
from bid_ros.bench.rollout import Event, UnitDone, load_policy, run_unit
from bid_ros.bench.scene import Setup
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra

_POLL_S: Final = 0.5


def run_here(units: Sequence[Unit], setup: Setup, policy: BatchPolicy) -> Iterator[Event]:
    """Run the units one after the other in this process."""
    for unit in units:
        yield from run_unit(unit, setup, policy)


class _Process:
    """What a process of the pool keeps between units."""

    setup: Setup
    policy: BatchPolicy
    events: Any

    @classmethod
    def begin(cls, setup: Setup, events: Any) -> None:
        """Load the policy once, and end with the process that asked for it, however that ends."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        cls.setup, cls.events, cls.policy = setup, events, load_policy(setup)

    @classmethod
    def run(cls, unit: Unit) -> None:
        """Run a unit and send what happens."""
        for event in run_unit(unit, cls.setup, cls.policy):
            cls.events.put(event)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def run_in_processes(units: Sequence[Unit], setup: Setup, workers: int) -> Iterator[Event]:
    """Run the units in ``workers`` processes; events come in the order they happen.

    Raises:
        BidError: a process died, or a unit failed with such an error.
    """
    # Started afresh: a process that was forked from one with inference threads may hang.
    context = multiprocessing.get_context("spawn")
    events: Any = context.Queue()
    pool = ProcessPoolExecutor(workers, context, _Process.begin, (setup, events))
    futures = [pool.submit(_Process.run, unit) for unit in units]
    left = len(units)
    try:
        while left:
            try:
                event: Event = events.get(timeout=_POLL_S)
            except queue.Empty:
                _raise_failure(futures)
                continue
            left -= isinstance(event, UnitDone)
            yield event
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _raise_failure(futures: Sequence[Future[None]]) -> None:
    for future in futures:
        if future.done() and not future.cancelled():
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                raise BidError("a worker process of the bench ended unexpectedly; run the same command to go on")
            if error is not None:
                raise error


def run_on_ray(units: Sequence[Unit], setup: Setup, address: str) -> Iterator[Event]:
    """Run the units on a Ray cluster, an actor per CPU; every node needs this package, the bundle and the scene.

    Args:
        units: what to run.
        setup: where from.
        address: of the cluster's head, ``auto``, or ``local`` to start one here.

    Raises:
        BidError: the package ray is not installed, or the cluster cannot be reached.
    """
    with extra("ray", "--ray"):
        ray: Any = importlib.import_module("ray")

    local: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        # No log_to_driver: the workers' prints would tear the progress line.
        ray.init(address=address, log_to_driver=False, configure_logging=False, **local)
    except Exception as error:  # of no class of its own where its processes start too slowly
        raise BidError(f"no Ray cluster answers at {address}: {' '.join(str(error).split())}") from error
    try:
        yield from _from_actors(ray, units, setup)
    finally:
        ray.shutdown()


class _Actor:
    """Runs units on a node of the cluster."""

    def __init__(self, setup: Setup) -> None:
        self._setup, self._policy = setup, load_policy(setup)

    def run(self, unit: Unit) -> Iterator[Event]:
        """Run a unit."""
        yield from run_unit(unit, self._setup, self._policy)


def _from_actors(ray: Any, units: Sequence[Unit], setup: Setup) -> Iterator[Event]:
    """Keep every actor busy with one unit; its events stream back."""
    count = max(1, min(len(units), int(ray.cluster_resources().get("CPU", 1))))
    remote = ray.remote(num_cpus=1)(_Actor)
    waiting = list(reversed(units))
    busy: dict[Any, Any] = {}

    def start(actor: Any) -> None:
        if waiting:
            busy[actor.run.options(num_returns="streaming").remote(waiting.pop())] = actor

    for _ in range(count):
        start(remote.remote(setup))
    while busy:
        ready, _ = ray.wait(list(busy), num_returns=1)
        try:
            event: Event = ray.get(next(ready[0]))
        except StopIteration:
            start(busy.pop(ready[0]))
            continue
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, BidError):
                raise cause from error
            raise BidError(f"a unit failed on Ray: {' '.join(str(error).split())[:300]}") from error
        yield event
