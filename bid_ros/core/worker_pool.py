"""A pool of workers: this process, several processes, or a Ray cluster. All give the same results."""

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

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra

WAITING: Final = 2  # jobs that wait for a worker: it need not wait for the reader
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_POLL_S: Final = 0.5  # between two looks at the work that was reported
Job = TypeVar("Job")
Result = TypeVar("Result")
Report = Callable[[float], object]
"""Called with the work that has been done since the last call."""


@dataclass(frozen=True)
class WorkerPool:
    """Does jobs. Every worker computes with one thread.

    Attributes:
        workers: processes on this machine; 1 does everything in this one.
        ray: address of a Ray cluster that works instead, empty for none; ``local`` starts one here. An actor takes one
            CPU. Every node needs this package, and the files that are read at the same path; jobs are sent.

    Raises:
        BidError: the number of workers is outside its range.
    """

    workers: int = 1
    ray: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 1024:
            raise BidError(f"workers is {self.workers}; valid is 1 to 1024")

    @property
    def here(self) -> bool:
        """Whether this process does the jobs."""
        return self.workers == 1 and not self.ray

    def run(
        self,
        jobs: Iterable[Job],
        make: Callable[[Report], Callable[[Job], Result]],
        report: Report = lambda work: None,
    ) -> Iterator[Result]:
        """Do the jobs. They are taken one by one, so only those in work or next are in memory.

        Args:
            jobs: what is to be done.
            make: makes what does a job, once a worker, and not before there is a job. It is given what reports work.
            report: called in this process with the work that the workers report.

        Yields:
            The results in the order in which they are done.

        Raises:
            BidError: a process died, a job failed with such an error, the package ray is not installed, or the
                cluster cannot be reached.
        """
        if self.ray:
            yield from _on_ray(jobs, make, report, self.ray)
        elif self.workers == 1:
            work = None
            for job in jobs:
                work = work or make(report)
                yield work(job)
        else:
            yield from _in_processes(jobs, make, report, self.workers)


class _Current:
    """What a process of the pool keeps between jobs."""

    make: Callable[[Report], Callable[[Any], Any]]
    reported: Any
    work: Callable[[Any], Any] | None = None


def _begin(make: Callable[[Report], Callable[[Any], Any]], reported: Any) -> None:
    """Remember how to make the worker, and end with the process that asked for it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _Current.make, _Current.reported = make, reported


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _report(work: float) -> None:
    with _Current.reported.get_lock():
        _Current.reported.value += work


def _do(job: Any) -> Any:
    if _Current.work is None:  # not before there is a job: what goes wrong is then the error of this job
        _Current.work = _Current.make(_report)
    return _Current.work(job)


def _in_processes(
    jobs: Iterable[Job], make: Callable[[Report], Callable[[Job], Result]], report: Report, workers: int
) -> Iterator[Result]:
    # Started afresh: a process that was forked from one with inference threads may hang.
    context = multiprocessing.get_context("spawn")
    total, seen = context.Value("d", 0.0), 0.0
    pool = ProcessPoolExecutor(workers, context, _begin, (make, total))
    waiting: set[Future[Any]] = set()

    def results(most: int) -> Iterator[Any]:
        """Give results until at most so many jobs are left."""
        nonlocal waiting, seen
        while len(waiting) > most:
            done, waiting = wait(waiting, _POLL_S, FIRST_COMPLETED)
            now = total.get_obj().value  # without its lock, which a worker that was killed may hold
            report(now - seen)
            seen = now
            # Those that failed come last: what the others found is kept.
            for future in sorted(done, key=lambda item: item.exception() is not None):
                yield future.result()

    try:
        with _one_thread():
            for job in jobs:
                waiting.add(pool.submit(_do, job))
                yield from results(workers + WAITING - 1)
            yield from results(0)
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


@contextmanager
def _ray_cluster(address: str) -> Iterator[Any]:
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
        raise BidError(f"a job failed on Ray: {' '.join(str(error).split())[:300]}") from error
    finally:
        ray.shutdown()


class _Actor:
    """A worker on a cluster."""

    def __init__(self, make: Callable[[Report], Callable[[Any], Any]], report: Report) -> None:
        self._work = make(report)

    def do(self, job: Any) -> Any:
        return self._work(job)


def _on_ray(
    jobs: Iterable[Job], make: Callable[[Report], Callable[[Job], Result]], report: Report, address: str
) -> Iterator[Result]:
    with _ray_cluster(address) as ray:
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        reported = ray.util.queue.Queue(actor_options={"num_cpus": 0})
        remote = ray.remote(num_cpus=1)(_Actor)
        free, busy = list[Any](), dict[Any, Any]()

        def results(most: int) -> Iterator[Any]:
            """Give results until at most so many jobs are left."""
            while len(busy) > most:
                done, _ = ray.wait(list(busy), num_returns=1, timeout=_POLL_S)
                for work in reported.get_nowait_batch(reported.qsize()):
                    report(work)
                for item in done:
                    free.append(busy.pop(item))
                    yield ray.get(item)

        for job in jobs:
            yield from results(count - 1)
            actor = free.pop() if free else remote.remote(make, reported.put)
            busy[actor.do.remote(job)] = actor
        yield from results(0)
