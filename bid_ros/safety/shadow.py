"""Shadow: judges what a policy asks for while the arm holds, or somebody else moves it. It passes nothing on."""

from collections import deque
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.percentiles import CountedValues
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.safety.beginning import between
from bid_ros.safety.gate import Admission, Gate
from bid_ros.safety.verdict import Action, Verdict

AHEAD_NS: Final = NANOSECONDS // 2
"""After this time the way that the policy wanted is held against the way that the tool was moved."""
STILL_M: Final = 0.005
"""A tool that moved less in this time was not driven, so it agrees with nobody."""
RECENT: Final = 64
"""So many frames are known again. One that comes back after more counts anew; a policy decides on the newest."""
WANTED: Final = 256
"""So many wishes of the policy wait for their time, at most: at 100 chunks a second those of 2.5 s."""


class Way:
    """The way of the tool that chunks describe, each followed until the next one comes.

    Args:
        task: layout of the chunks.
        arm: of a task that commands joints, else None.

    Attributes:
        length_m: of the way, m. The last chunk is not in it: nobody knows for how long it would be followed.
        chunks: how many there were.
    """

    def __init__(self, task: Task, arm: ArmModel | None) -> None:
        self._columns, self._joints, self._arm = task.columns("position"), task.columns("joints"), arm
        self._newest: tuple[ActionChunk, Array, int] | None = None
        self._sum = sha256()
        self.length_m, self.chunks = 0.0, 0

    @property
    def digest(self) -> str:
        """Hash of every chunk so far: equal digests are equal chunks, bit for bit."""
        return self._sum.hexdigest()

    def places(self, chunk: ActionChunk) -> Array:
        """Return the tool's positions ``(H, 3)`` m of a chunk."""
        if self._columns is not None:
            return chunk.actions[:, self._columns]
        assert self._arm is not None and self._joints is not None, "a task commands the tool's pose or joints"
        return self._arm.forward(chunk.actions[:, self._joints])[0]

    def go(self, chunk: ActionChunk, now_ns: int) -> Array:
        """Follow a chunk from now on. Return its positions ``(H, 3)`` m."""
        if self._newest is not None:
            before, places, since_ns = self._newest
            self.length_m += _length(places, before.position_at(since_ns), before.position_at(now_ns))
        places = self.places(chunk)
        self._newest, self.chunks = (chunk, places, now_ns), self.chunks + 1
        self._sum.update(np.array([chunk.stamp_ns, chunk.dt_ns], dtype="<i8").tobytes())
        self._sum.update(np.append(chunk.actions.ravel(), chunk.scale).astype("<f8").tobytes())
        return places

    def rest(self) -> None:
        """Follow nothing: an episode is over."""
        self._newest = None


@dataclass
class Broken:
    """Chunks that broke one rule in one way.

    Attributes:
        rule: of the envelope.
        action: what safety does about it: warn, scale or stop.
        chunks: how many.
        reason: of the first of them.
    """

    rule: str
    action: str
    chunks: int
    reason: str


class Shadow:
    """Judges chunks of a policy and keeps count; somebody else says where the arm is.

    Each chunk is judged as the first one of a motion, unless :meth:`executed` says that the one before was followed:
    an arm that holds is not where the chunk before would have brought it.

    It needs no more memory after hours than after a minute: values are counted, see
    :class:`bid_ros.core.percentiles.CountedValues`, which also says how exact the percentiles of the report are.

    Args:
        task, arm, slow: as :class:`bid_ros.safety.gate.Gate`.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None, slow: float = 1.0) -> None:
        self._gate, self._way = Gate(task, arm, slow), Way(task, arm)
        self._broken: dict[tuple[str, str], Broken] = {}
        self._judged = self._slowed = self._refused = 0
        self._from_tool, self._ahead = CountedValues(), CountedValues()  # mm
        self._ages, self._apart = CountedValues(), CountedValues()  # ms and mm
        self._frames, self._stamps = 0, deque[int](maxlen=RECENT)
        self._gap_ns, self._last_ns = 0, 0
        self._low, self._high = np.full(3, np.inf), np.full(3, -np.inf)
        # When, where the tool was, where it shall be.
        self._wanted: deque[tuple[int, Array, Array]] = deque(maxlen=WANTED)

    def holds(self, opening: float | None) -> None:
        """Take what the gripper measures, as :meth:`bid_ros.safety.gate.Gate.holds`."""
        self._gate.holds(opening)

    def judge(
        self,
        chunk: ActionChunk,
        now_ns: int,
        tool_position: ArrayLike | None,
        joints: ArrayLike | None = None,
        tool_rotation: ArrayLike | None = None,
    ) -> Admission:
        """Return what would become of a chunk. The arguments are those of :meth:`bid_ros.safety.gate.Gate.admit`."""
        found = self._gate.admit(chunk, now_ns, tool_position, joints, tool_rotation)
        self._noted(chunk, now_ns)
        self._found(found.verdict)
        self._slowed += found.verdict.ok and found.pace is not None
        if not found.verdict.ok:
            return found
        places = self._way.go(found.chunk, now_ns)
        self._low, self._high = np.minimum(self._low, places.min(0)), np.maximum(self._high, places.max(0))
        if tool_position is not None:
            tool = np.asarray(tool_position, dtype=np.float64)
            self._from_tool.add(1e3 * float(np.linalg.norm(_at(places, found.chunk.position_at(now_ns)) - tool)))
            self._ahead.add(1e3 * float(np.linalg.norm(places[-1] - tool)))
            at_ns = min(chunk.stamp_ns + AHEAD_NS, found.chunk.end_ns - chunk.dt_ns)
            self._wanted.append((at_ns, tool, _at(places, found.chunk.position_at(at_ns))))
        return found

    def refuse(self, verdict: Verdict) -> None:
        """Note what is no chunk of the task, or not the policy's."""
        self._judged += 1
        self._found(verdict)

    def executed(self, chunk: ActionChunk) -> None:
        """Note that a chunk was followed: the next one must not jump away from it."""
        self._gate.passed(chunk)

    def measured(self, at_ns: int, tool_position: ArrayLike) -> None:
        """Take where the tool was measured, m, base frame, at a time in ns of the chunks' clock."""
        while self._wanted and self._wanted[0][0] <= at_ns:
            _, before, wanted = self._wanted.popleft()
            tool = np.asarray(tool_position, dtype=np.float64)
            if np.linalg.norm(tool - before) > STILL_M:
                self._apart.add(1e3 * float(np.linalg.norm(tool - wanted)))

    def rest(self) -> None:
        """Take notice that an episode is over: what comes next begins anew."""
        self._way.rest()
        self._wanted.clear()
        self._gate.forget()
        self._last_ns = 0

    def report(self) -> dict[str, Any]:
        """Return what would have happened, for JSON; null where nothing was measured."""
        seen = np.isfinite(self._low).all()
        return {
            "chunks": self._judged,
            "passed": self._way.chunks,
            "slowed": self._slowed,
            "refused": self._refused,
            "rules": [vars(item) for item in self._broken.values()],
            "travel_m": self._way.length_m,
            "from_tool_mm": self._from_tool.percentiles(),
            "ahead_mm": self._ahead.percentiles(),
            "low_m": self._low.tolist() if seen else None,
            "high_m": self._high.tolist() if seen else None,
            "age_ms": self._ages.percentiles(),
            "frames": self._frames,
            "longest_gap_ms": self._gap_ns / 1e6,
            "moved": self._apart.count,
            "apart_mm": self._apart.percentiles(),
            "digest": self._way.digest,
        }

    def _noted(self, chunk: ActionChunk, now_ns: int) -> None:
        self._judged += 1
        self._ages.add((now_ns - chunk.stamp_ns) / 1e6)
        if self._last_ns:
            self._gap_ns = max(self._gap_ns, chunk.stamp_ns - self._last_ns)
        self._last_ns = chunk.stamp_ns
        if chunk.stamp_ns not in self._stamps:
            self._stamps.append(chunk.stamp_ns)
            self._frames += 1

    def _found(self, verdict: Verdict) -> None:
        self._refused += not verdict.ok
        if verdict.ok and verdict.action is Action.NONE:
            return
        key = verdict.rule, verdict.action.value
        self._broken.setdefault(key, Broken(*key, 0, verdict.reason)).chunks += 1


def shadow_table(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of a report for a terminal: name and text."""
    counts = f"{report['passed']} of {report['chunks']} would have passed, {report['slowed']} of them slowed"
    rows = [("shadow", f"{counts}; {report['refused']} refused")]
    for item in report["rules"]:
        rows.append(("", f"{item['action']} {item['chunks']} by rule {item['rule']}: {item['reason']}"))
    rows.append(("would go", f"{report['travel_m']:.3f} m; {_text(report['ahead_mm'], 'mm')} ahead of the tool"))
    if report["low_m"]:
        sides = zip("xyz", report["low_m"], report["high_m"], strict=True)
        rows.append(("", ", ".join(f"{axis} {low:.3f} to {high:.3f}" for axis, low, high in sides) + " m"))
    rows.append(("from tool", f"{_text(report['from_tool_mm'], 'mm')} from the measured tool to the action for now"))
    frames = f"{report['frames']}, at most {report['longest_gap_ms']:.0f} ms apart"
    rows.append(("frames", f"{frames}; {_text(report['age_ms'], 'ms')} old when their chunk was judged"))
    if report["moved"]:
        apart = f"{_text(report['apart_mm'], 'mm')} beside the policy's wish of {AHEAD_NS / NANOSECONDS:g} s before"
        rows.append(("as moved", f"{apart}, {report['moved']} times"))
    return rows


def _text(values: dict[str, float | None], unit: str) -> str:
    known = [f"{name} {value:.1f}" for name, value in values.items() if value is not None]
    return f"{'  '.join(known)} {unit}" if known else "not measured"


def _at(places: Array, row: float) -> Array:
    """Return the place ``(3,)`` at a fractional row."""
    return between(places[int(row) :], row - int(row))


def _length(places: Array, begin: float, end: float) -> float:
    """Return the length of the way between two fractional rows, m."""
    inner = places[int(begin) + 1 : int(np.ceil(end))]
    way = np.concatenate([_at(places, begin)[None], inner, _at(places, end)[None]])
    return float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())
