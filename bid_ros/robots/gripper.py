"""A gripper on its own thread: its commands block for a second, and the arm must not wait for them."""

import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from bid_ros.core.errors import ArmError
from bid_ros.core.settings import Positive, settings

POLL_S = 0.02
# A command without effect is given again, but not more often than this.
RETRY_S = 1.0


HasEnded = Callable[[], bool]
"""Returns whether a gripper command has ended, without waiting for that, or raises its error."""


class GripperDevice(Protocol):
    """The gripper interface for :class:`GripperThread`. Only its thread calls these methods, so they may block."""

    def width(self) -> float:
        """Return the measured opening in m."""

    def begin_open(self) -> HasEnded:
        """Begin to open. Return what tells the end of the command."""

    def begin_close(self) -> HasEnded:
        """Begin to close, and squeeze an object between the fingers. Return what tells the end of the command."""


@settings(error=ArmError)
class GripperThresholds:
    """Two widths in m that turn a continuous width into open and closed, with hysteresis between them.

    The width of a policy is noisy. Between the two thresholds nothing changes, so noise triggers no command.

    Attributes:
        close_below: a smaller width means closed, m.
        open_above: a larger width means open, m.
    """

    close_below: Positive
    open_above: Positive

    def __post_init__(self) -> None:
        if not self.close_below < self.open_above:
            raise ArmError(
                f"gripper: close_below is {self.close_below} m and open_above {self.open_above} m; "
                "valid is close_below < open_above"
            )

    def check_reached(self, open_width: float) -> None:
        """Raise ArmError if no opening up to ``open_width``, m, means open: the gripper would close and stay closed."""
        if self.open_above > open_width:
            raise ArmError(
                f"gripper_thresholds: open_above is {self.open_above:g} m, and the gripper opens to {open_width:g} m; "
                "valid is up to that"
            )

    def wants_open(self, width: float, before: bool | None) -> bool | None:
        """Return whether ``width`` means open; ``before`` if it lies between the thresholds."""
        if width >= self.open_above:
            return True
        if width <= self.close_below:
            return False
        return before


class GripperThread:
    """Executes the newest requested width. A request during a command waits until the command has ended.

    Args:
        device: the gripper.
        thresholds: when to open and close.
        errors: exception types that mean that the device is lost.
        on_error: called once with the exception that ended the thread, unless :meth:`stop` ended it.

    Attributes:
        width: newest measured opening in m, NaN before the first reading; busy: whether a command is running.
        fault: message of that exception; empty without one. It stays: a new connection needs a new thread.
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
        self.width = math.nan
        self.busy = False
        self.fault = ""
        self._thread = threading.Thread(target=self._run, name="gripper", daemon=True)

    def start(self) -> None:
        """Read the width once and start the thread. Raises the errors of the device."""
        self.width = self._device.width()
        self._thread.start()

    def request(self, width: float) -> None:
        """Command an opening in m. Returns at once."""
        wanted = self._thresholds.wants_open(width, self._open)
        if wanted is not self._open:
            self._open = wanted
            self._wake.set()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the thread. The gripper finishes a running command."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        done: bool | None = None
        ended = -math.inf
        try:
            while not self._stop.is_set():
                self.width = self._device.width()
                wanted = self._open
                retry = self._had_no_effect(wanted) and time.monotonic() - ended > RETRY_S
                if wanted is not None and (wanted is not done or retry):
                    self._carry_out(wanted)
                    done, ended = wanted, time.monotonic()
                self._wake.wait(POLL_S)
                self._wake.clear()
        except self._errors as error:
            # Who ends the thread also closes the device under it. That is not a fault.
            if not self._stop.is_set():
                self._report_lost(error)

    def _report_lost(self, error: Exception) -> None:
        self.fault = str(error)
        self._on_error(error)

    def _carry_out(self, wanted: bool) -> None:
        self.busy = True
        try:
            command = self._device.begin_open() if wanted else self._device.begin_close()
            while not command():
                if self._stop.wait(POLL_S):
                    return
                self.width = self._device.width()
            self.width = self._device.width()
        finally:
            self.busy = False

    def _had_no_effect(self, wanted: bool | None) -> bool:
        """Whether the fingers are where the opposite of ``wanted`` puts them."""
        if wanted is None:
            return False
        return self.width < self._thresholds.close_below if wanted else self.width > self._thresholds.open_above
