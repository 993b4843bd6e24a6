"""A gripper on its own thread: its commands block for a second, the arm's must not."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bid_ros.errors import ArmError

POLL_S = 0.02
# A command that ended without its effect is given again, but not more often than this.
RETRY_S = 1.0


class Running(Protocol):
    """A gripper command in progress."""

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` s; return whether the command has ended."""
        ...

    def get(self) -> bool:
        """Return whether the ended command succeeded, or raise what went wrong."""
        ...


class GripperDevice(Protocol):
    """What :class:`GripperThread` needs of a gripper. Only its thread calls these, so they may block."""

    def width(self) -> float:
        """Return the measured opening in m."""
        ...

    def begin_open(self) -> Running:
        """Begin to open."""
        ...

    def begin_close(self) -> Running:
        """Begin to close and squeeze whatever is between the fingers."""
        ...


@dataclass(frozen=True)
class GripperThresholds:
    """Two widths in m that turn a continuous width into open and closed, with hysteresis between them.

    A policy's width column is noisy. Between the two nothing changes, so noise never triggers a command.
    """

    close_below: float
    open_above: float

    def __post_init__(self) -> None:
        if not 0 < self.close_below < self.open_above:
            raise ArmError(
                f"gripper: close_below is {self.close_below} m and open_above {self.open_above} m; "
                "valid is 0 < close_below < open_above"
            )

    def wants_open(self, width: float, before: bool | None) -> bool | None:
        """Return whether ``width`` asks for open; ``before`` if it lies between the thresholds."""
        if width >= self.open_above:
            return True
        if width <= self.close_below:
            return False
        return before


class GripperThread:
    """Carries out the newest width asked for. A request that arrives during a command waits until that has ended.

    Args:
        device: the gripper.
        thresholds: when to open and close.
        errors: exception types by which the device says that it is lost.
        on_error: called once with the exception that ended the thread, unless :meth:`stop` did.
    """

    def __init__(
        self,
        device: GripperDevice,
        thresholds: GripperThresholds,
        errors: tuple[type[Exception], ...],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._device = device
        self._thresholds = thresholds
        self._errors = errors
        self._on_error = on_error
        self._open: bool | None = None
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._width = math.nan
        self._busy = False
        self._thread = threading.Thread(target=self._run, name="gripper", daemon=True)

    @property
    def width(self) -> float:
        """Newest measured opening in m, NaN before the first reading."""
        return self._width

    @property
    def busy(self) -> bool:
        """Whether a command is running."""
        return self._busy

    def start(self) -> None:
        """Read the width once and start the thread; raises what the device raises."""
        self._width = self._device.width()
        self._thread.start()

    def request(self, width: float) -> None:
        """Ask for an opening in m; returns at once."""
        wanted = self._thresholds.wants_open(width, self._open)
        if wanted is not self._open:
            self._open = wanted
            self._wake.set()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the thread; a running command is left to the gripper, which finishes it."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        done: bool | None = None
        ended = -math.inf
        try:
            while not self._stop.is_set():
                self._width = self._device.width()
                wanted = self._open
                retry = self._missed(wanted) and time.monotonic() - ended > RETRY_S
                if wanted is not None and (wanted is not done or retry):
                    self._carry_out(wanted)
                    done, ended = wanted, time.monotonic()
                self._wake.wait(POLL_S)
                self._wake.clear()
        except self._errors as error:
            # Whoever ended the thread also closes the device under it; that is no fault.
            if not self._stop.is_set():
                self._on_error(error)

    def _carry_out(self, wanted: bool) -> None:
        self._busy = True
        try:
            command = self._device.begin_open() if wanted else self._device.begin_close()
            while not command.wait(POLL_S):
                if self._stop.is_set():
                    return
                self._width = self._device.width()
            command.get()
            self._width = self._device.width()
        finally:
            self._busy = False

    def _missed(self, wanted: bool | None) -> bool:
        """Whether the fingers are where the opposite of ``wanted`` would put them."""
        if wanted is None:
            return False
        return self._width < self._thresholds.close_below if wanted else self._width > self._thresholds.open_above
