"""Takes the samples of a policy's observation, and refuses those that cannot be used, with a reason."""

import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import foreign_stamp
from bid_ros.core.errors import ObservationError
from bid_ros.core.observation import ObservationBuffer
from bid_ros.core.task import Task

# So many equal images in a row are no chance once the tool has moved this far in the meantime, m. At 96 px across a
# metre that is two pixels.
EQUAL: Final = 3
SEEN_M: Final = 0.02


@dataclass
class _Run:
    """Equal images in a row: checksum, number, begin (ns), and where the tool was at the first and at the last."""

    mark: int
    count: int
    since_ns: int
    first: NDArray[np.float64] | None
    last: NDArray[np.float64] | None


class Intake:
    """Fills the buffer of a policy's observations.

    Refused are samples of another shape or type, samples whose stamps are of another clock, and images that stay the
    same though the tool moves: a camera that sees the arm is then frozen. The last needs no noise, so it holds in a
    simulation too. It needs a task that observes the tool's position.

    Args:
        task: what is observed.
        buffer: takes what is not refused.
        live: samples are of now. Those of a recording keep their stamps.
    """

    def __init__(self, task: Task, buffer: ObservationBuffer, live: bool = True) -> None:
        self._buffer, self._live = buffer, live
        self._images = {item.name for item in task.observation if item.kind == "image"}
        self._position = next((item.name for item in task.observation if item.kind == "position"), None)
        self._tool: NDArray[np.float64] | None = None
        self._runs: dict[str, _Run] = {}
        self._refused: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """Why the newest sample of a feature was refused; empty if all could be used. Any thread may ask."""
        return next(iter(tuple(self._refused.values())), "")

    def take(self, name: str, stamp_ns: int, value: NDArray[Any], now_ns: int) -> str:
        """Take a sample. Return why it is refused, and empty if it is not.

        Args:
            name, stamp_ns, value: as :meth:`bid_ros.core.observation.ObservationBuffer.add`.
            now_ns: wall time now, ns.
        """
        try:
            reason = self._doubt(name, stamp_ns, value, now_ns) if self._live else ""
            if not reason:
                self._buffer.add(name, stamp_ns, value)
                self._refused.pop(name, None)
                return ""
        except ObservationError as error:
            reason = str(error)
        return self.refuse(name, reason)

    def refuse(self, name: str, reason: str) -> str:
        """Note why a sample cannot be used; return it as one sentence."""
        what = self._what(name)
        self._refused[name] = reason if reason.startswith(what) else f"{what} cannot be used: {reason}"
        return self._refused[name]

    def _what(self, name: str) -> str:
        return f"images of '{name}'" if name in self._images else f"samples of '{name}'"

    def _doubt(self, name: str, stamp_ns: int, value: NDArray[Any], now_ns: int) -> str:
        if reason := foreign_stamp(self._what(name), stamp_ns, now_ns):
            return reason
        if name == self._position:
            self._tool = np.array(value, dtype=np.float64)
        return self._frozen(name, value, now_ns) if name in self._images else ""

    def _frozen(self, name: str, image: NDArray[Any], now_ns: int) -> str:
        mark, run = zlib.crc32(np.ascontiguousarray(image).data), self._runs.get(name)
        if run is None or run.mark != mark:
            self._runs[name] = _Run(mark, 1, now_ns, self._tool, self._tool)
            return ""
        # An image shows where the tool was a little before it came. So the newest place of the tool does not count yet.
        moved = 0.0 if run.first is None or run.last is None else float(np.linalg.norm(run.last - run.first))
        run.count, run.first, run.last = run.count + 1, self._tool if run.first is None else run.first, self._tool
        if run.count < EQUAL or moved < SEEN_M:
            return ""
        what, passed_s = self._what(name), (now_ns - run.since_ns) / NANOSECONDS
        return f"{what} have not changed for {passed_s:.1f} s, though the tool moved by {1e3 * moved:.0f} mm: frozen"
