"""Who runs the units: this process, a pool of processes, or a Ray cluster. All give the same numbers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.bench.grid import Unit
from bid_ros.bench.rollout import UnitDone, load_policy, run_unit
from bid_ros.bench.scene import Setup
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra

_POLL_S: Final = 0.5
Advance = Callable[[float], object]
"""Called with the work that has been done, or need not be, since the last call."""


@dataclass(frozen=True)
class Crew:
    """Who runs the units.

    Attributes:
        workers: processes on this machine; 1 runs everything in this one.
        ray: address of a Ray cluster that runs them instead, empty for none; ``local`` starts one here. An actor takes
            one CPU. Every node needs this package, the bundle and the scene.
    """

    workers: int = 1
    ray: str = ""

    def run(self, units: Sequence[Unit], setup: Setup, policy: BatchPolicy, advance: Advance) -> Iterator[UnitDone]:
        """Run the units; they come in the order in which they are done.

        Raises:
            BidError: a process died, a unit failed with such an error, the package ray is not installed, or the
                cluster cannot be reached.
        """
        if self.ray and units:
            yield from _run_on_ray(units, setup, self.ray, advance)
        elif self.workers == 1 or len(units) < 2:
            for unit in units:
                yield run_unit(unit, setup, policy, advance)
        else:
            yield from _run_in_processes(units, setup, min(self.workers, len(units)), advance)


class _Worker:
    """What a process or an actor keeps between units."""

    current: _Worker  # of a process of the pool

    def __init__(self, setup: Setup, advance: Advance) -> None:
        self._setup, self._policy, self._advance = setup, load_policy(setup), advance

    def run(self, unit: Unit) -> UnitDone:
        return run_unit(unit, self._setup, self._policy, self._advance)


def _begin(setup: Setup, total: Any) -> None:
    """Load the policy once, and end with the process that asked for it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=end_with_parent, daemon=True).start()

    def advance(work: float) -> None:
        with total.get_lock():
            total.value += work

    _Worker.current = _Worker(setup, advance)


def _run_current(unit: Unit) -> UnitDone:
    return _Worker.current.run(unit)


def end_with_parent() -> None:
    """End this process, a worker's, as soon as the process that started it has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_in_processes(units: Sequence[Unit], setup: Setup, workers: int, advance: Advance) -> Iterator[UnitDone]:
    # Started afresh: a process that was forked from one with inference threads may hang.
    context = multiprocessing.get_context("spawn")
    total, seen = context.Value("d", 0.0), 0.0
    pool = ProcessPoolExecutor(workers, context, _begin, (setup, total))
    waiting = {pool.submit(_run_current, unit) for unit in units}
    try:
        while waiting:
            done, waiting = wait(waiting, _POLL_S, FIRST_COMPLETED)
            now = total.get_obj().value  # without its lock, which a worker that was killed may hold
            advance(now - seen)
            seen = now
            # Those that failed come last: what the others found is kept.
            for future in sorted(done, key=lambda item: item.exception() is not None):
                yield future.result()
    except BrokenProcessPool as error:
        raise BidError("a worker process of the bench ended unexpectedly; run the same command to go on") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def ray_cluster(address: str) -> Iterator[Any]:
    """Connect to a Ray cluster and give the module ``ray``.

    Args:
        address: of the cluster; ``local`` starts one here.

    Raises:
        BidError: the package ray is not installed, the cluster cannot be reached, or something fails on it.
    """
    with extra("ray", "--ray"):
        import ray
        import ray.util.queue
    local: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        # No log_to_driver: the workers' prints would tear the progress line.
        ray.init(address=address, log_to_driver=False, configure_logging=False, **local)
    except Exception as error:  # of no class of its own where its processes start too slowly
        raise BidError(f"no Ray cluster answers at {address}: {' '.join(str(error).split())}") from error
    try:
        yield ray
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, BidError):
            raise cause from error
        raise BidError(f"a unit failed on Ray: {' '.join(str(error).split())[:300]}") from error
    finally:
        ray.shutdown()


def _run_on_ray(units: Sequence[Unit], setup: Setup, address: str, advance: Advance) -> Iterator[UnitDone]:
    with ray_cluster(address) as ray:
        count = max(1, min(len(units), int(ray.cluster_resources().get("CPU", 1))))
        advanced = ray.util.queue.Queue(actor_options={"num_cpus": 0})
        remote = ray.remote(num_cpus=1)(_Worker)
        pool = ray.util.ActorPool([remote.remote(setup, advanced.put) for _ in range(count)])
        for unit in units:
            pool.submit(lambda actor, unit: actor.run.remote(unit), unit)
        while pool.has_next():
            with suppress(TimeoutError):
                yield pool.get_next_unordered(timeout=_POLL_S)
            for work in advanced.get_nowait_batch(advanced.qsize()):
                advance(work)
