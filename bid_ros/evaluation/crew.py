"""Who judges the episodes: this process, a pool of processes, or a Ray cluster. All give the same numbers."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bid_ros.bench.workers import end_with_parent, ray_cluster
from bid_ros.core.errors import BidError

WAITING: Final = 2  # jobs that wait for a worker: it need not wait for the reader
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Crew:
    """Who does the jobs. Every worker computes with one thread.

    Attributes:
        workers: processes on this machine; 1 does everything in this one.
        ray: address of a Ray cluster that works instead, empty for none; ``local`` starts one here. An actor takes one
            CPU. Every node needs this package and the bundle at the same path; episodes are sent.

    Raises:
        BidError: the number of workers is outside its range.
    """

    workers: int = 1
    ray: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 1024:
            raise BidError(f"workers is {self.workers}; valid is 1 to 1024")

    def run(self, jobs: Iterable[Job], make: Callable[[], Callable[[Job], Result]]) -> Iterator[Result]:
        """Do the jobs. They are taken one by one, so only those in work or next are in memory.

        Args:
            jobs: what is to be done.
            make: makes what does a job, once a worker, and not before there is a job.

        Yields:
            The results in the order in which they are done.

        Raises:
            BidError: a process died, a job failed with such an error, the package ray is not installed, or the
                cluster cannot be reached.
        """
        if self.ray:
            yield from _on_ray(jobs, make, self.ray)
        elif self.workers == 1:
            work = None
            for job in jobs:
                work = work or make()
                yield work(job)
        else:
            yield from _in_processes(jobs, make, self.workers)


class _Current:
    """What a process of the pool keeps between jobs."""

    make: Callable[[], Callable[[Any], Any]]
    work: Callable[[Any], Any] | None = None


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    """Remember how to make the worker, and end with the process that asked for it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=end_with_parent, daemon=True).start()
    _Current.make = make


def _do(job: Any) -> Any:
    if _Current.work is None:  # not before there is a job: what goes wrong is then the error of this job
        _Current.work = _Current.make()
    return _Current.work(job)


def _in_processes(jobs: Iterable[Job], make: Callable[[], Callable[[Job], Result]], workers: int) -> Iterator[Result]:
    # Started afresh: a process that was forked from one with inference threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _begin, (make,))
    waiting: set[Future[Any]] = set()
    try:
        with _one_thread():
            for job in jobs:
                waiting.add(pool.submit(_do, job))
                if len(waiting) >= workers + WAITING:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
    except BrokenProcessPool as error:
        raise BidError("a worker process ended unexpectedly; run the same command to go on") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start meanwhile compute with one thread each: libraries read this when they are imported."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Actor:
    """A worker on a cluster."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._work = make()

    def do(self, job: Any) -> Any:
        return self._work(job)


def _on_ray(jobs: Iterable[Job], make: Callable[[], Callable[[Job], Result]], address: str) -> Iterator[Result]:
    with ray_cluster(address) as ray:
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(num_cpus=1)(_Actor)
        free = list[Any]()
        busy = dict[Any, Any]()
        for job in jobs:
            if not free and len(busy) == count:
                yield _first_done(ray, busy, free)
            actor = free.pop() if free else remote.remote(make)
            busy[actor.do.remote(job)] = actor
        while busy:
            yield _first_done(ray, busy, free)


def _first_done(ray: Any, busy: dict[Any, Any], free: list[Any]) -> Any:
    done, _ = ray.wait(list(busy), num_returns=1)
    free.append(busy.pop(done[0]))
    return ray.get(done[0])
