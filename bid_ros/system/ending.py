"""How the process of a node is asked to end, and that it ends for certain."""

import contextlib
import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, NoReturn

from bid_ros.core.orphan import wake_when_orphaned

TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGHUP})  # what a terminal sends to every process in it
SIGNALS: Final = TERMINAL | {signal.SIGTERM}
HUNG_S: Final = 30.0  # without a sign of life
LONG_S: Final = 60.0  # a recovery of a robot takes no longer: stop, clear, leave, start the driver, connect, clear
END_S: Final = 15.0  # from being asked to end to the end
SUPERVISOR: Final = "BID_SUPERVISOR"  # process id of the front end
ALIVE: Final = "BID_ALIVE"  # file descriptor of the front end for signs of life


class Ending:
    """Notes that the process shall end: by SIGINT, SIGTERM or SIGHUP, or because its supervisor is gone.

    A signal interrupts nothing, so a second or third one skips no step of an orderly end. Two things end the process
    by force, both outside Python and so even while its lock is held: no sign of life for ``HUNG_S``, and more than
    ``END_S`` after it was asked to end. Each writes to standard error where every thread was.

    A SIGTERM that comes after that sets ``hurried``: whom this process outlives has ended, whatever the graph says.

    Make one in the main thread, before any other thread is there. Threads and processes that are started later block
    the signals of a terminal, so Ctrl-C does not end what this process still needs: it ends its children itself. A
    frozen process is woken when its supervisor is gone.

    Attributes:
        present: that of this process; None before there is one.
    """

    present: "Ending | None" = None

    def __init__(self) -> None:
        Ending.present = self
        wake_when_orphaned()
        self.asked = self.hurried = False
        self._status = 0
        self._on_asked: Callable[[int], None] | None = None
        self._lock = threading.Lock()
        self._alive = int(os.environ.get(ALIVE, "-1"))
        if self._alive >= 0:
            os.set_blocking(self._alive, False)
        noted, self._note = os.pipe()
        os.set_blocking(self._note, False)
        signal.set_wakeup_fd(self._note, warn_on_full_buffer=False)
        for kind in SIGNALS:
            signal.signal(kind, lambda *_: None)  # the wakeup descriptor has noted it
        signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL)
        threading.Thread(target=self._watch, args=(noted, _supervisor()), name="ending", daemon=True).start()

    def commit(self, on_asked: Callable[[int], None]) -> None:
        """From now on end in order: ``on_asked`` gets the exit status, in any thread.

        Until then there is nothing to lose, and whoever asks ends the process at once.
        """
        with self._lock:
            self._on_asked = on_asked

    def alive(self) -> None:
        """Give a sign of life; from the first one on they have to come at least every ``HUNG_S``."""
        with self._lock:
            if not self.asked:
                faulthandler.dump_traceback_later(HUNG_S, exit=True)
        if self._alive >= 0:
            with contextlib.suppress(OSError):
                os.write(self._alive, b".")

    def finish(self, status: int) -> NoReturn:
        """End the process now. Destructors and other threads may no longer disturb: what matters has been closed."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)

    def _watch(self, noted: int, supervisor: int) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL)  # they wait until here, also if a front end blocked them
        poll = select.poll()
        poll.register(noted, select.POLLIN)
        if supervisor >= 0:
            poll.register(supervisor, select.POLLIN)
        found = {descriptor for descriptor, _ in poll.poll()}
        if noted not in found:
            self._status = 1
            _drop_output()
        with self._lock:
            self.asked = True
            if self._on_asked is None:
                os._exit(self._status)
            faulthandler.dump_traceback_later(END_S, exit=True)
        self._on_asked(self._status)
        seen = b""  # numbers of signals, the first of which asked for the end
        while data := os.read(noted, 64):
            seen += data
            self.hurried = signal.SIGTERM in seen[1:]


def alive_during(work: Callable[[], None], limit_s: float = LONG_S, sign_s: float = 1.0) -> None:
    """Do what may rightly take longer than ``HUNG_S``, in a thread of its own, and return when it is done.

    Args:
        work: has limits of its own. What it raises is raised.
        limit_s: s in which this process gives signs of life. What takes longer hangs, and counts so ``HUNG_S`` later.
        sign_s: s between two signs.
    """
    end = time.monotonic() + limit_s
    with ThreadPoolExecutor(1, "work") as pool:
        done = pool.submit(work)
        while not done.done():
            if Ending.present is not None and time.monotonic() < end:
                Ending.present.alive()
            wait([done], sign_s)
        done.result()


def _supervisor() -> int:
    """Return a descriptor that tells the end of the supervisor, -1 if there is none."""
    supervisor = int(os.environ.get(SUPERVISOR, "0"))
    if not supervisor:
        return -1
    try:
        return os.pidfd_open(supervisor)
    except ProcessLookupError:
        os._exit(1)  # it is gone already, and nothing has begun


def _drop_output() -> None:
    """Let prints go nowhere: who read them is gone, and a broken pipe must not disturb the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
