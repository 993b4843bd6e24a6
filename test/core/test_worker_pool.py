"""The pool gives the same results whoever works, takes jobs one by one, and ends with one sentence.

Over Ray: test/bench/test_sweep.py and test/evaluation/test_run.py.
"""

from __future__ import annotations

import os

import pytest
from pool_workers import counting, doubled, ending, environment, failing

from bid_ros.core.errors import BidError
from bid_ros.core.worker_pool import THREADS, WAITING, WorkerPool


class Counting:
    """Jobs that count how many were taken before their results came back."""

    def __init__(self, count: int) -> None:
        self.taken, self.back, self.most, self._count = 0, 0, 0, count

    def __iter__(self):
        for number in range(self._count):
            self.taken += 1
            self.most = max(self.most, self.taken - self.back)
            yield number


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_are_taken_only_when_someone_can_do_them(workers):
    jobs, found = Counting(20), []
    for result in WorkerPool(workers).run(jobs, doubled):
        jobs.back += 1
        found.append(result)
    assert sorted(found) == [2 * number for number in range(20)]
    assert jobs.most <= (1 if workers == 1 else workers + WAITING)


def test_workers_compute_with_one_thread(monkeypatch):
    monkeypatch.setenv(THREADS[0], "7")
    monkeypatch.delenv(THREADS[1], raising=False)
    assert list(WorkerPool(2).run(THREADS, environment)) == ["1"] * len(THREADS)
    assert (os.environ[THREADS[0]], THREADS[1] in os.environ) == ("7", False)


def test_a_worker_that_dies_is_one_sentence():
    with pytest.raises(BidError, match="a worker process ended unexpectedly; run the same command to go on"):
        list(WorkerPool(2).run(range(3), ending))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_workers_report_arrives(workers):
    reported = []
    assert sorted(WorkerPool(workers).run(range(5), counting, reported.append)) == [0, 1, 2, 3, 4]
    assert sum(reported) == 10


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_job_is_its_own(workers):
    found = []
    with pytest.raises(BidError, match="is odd; valid is an even number"):
        found.extend(WorkerPool(workers).run([0, 2, 4, 5], failing))
    assert WorkerPool(workers).here is (workers == 1)


@pytest.mark.parametrize("workers", [0, 2000])
def test_an_impossible_number_of_workers_is_refused(workers):
    with pytest.raises(BidError, match=f"workers is {workers}; valid is 1 to 1024"):
        WorkerPool(workers)
