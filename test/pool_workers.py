"""What makes workers, where the processes of a pool find it."""

import os
import signal
from functools import partial

from bid_ros.core.errors import BidError


def doubled(report):
    """Return a worker that doubles a number."""
    return partial(int.__mul__, 2)


def environment(report):
    """Return a worker that tells a variable of its environment."""
    return os.environ.get


def ending(report):
    """Return a worker that dies."""
    return lambda job: os.kill(os.getpid(), signal.SIGKILL)


def counting(report):
    """Return a worker that reports the job, a number, as its work."""

    def work(job):
        report(job)
        return job

    return work


def failing(report):
    """Return a worker that refuses odd numbers."""

    def work(job):
        if job % 2:
            raise BidError(f"{job} is odd; valid is an even number")
        return job

    return work
