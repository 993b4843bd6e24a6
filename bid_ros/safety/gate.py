"""The gate: lets a chunk pass, slows it down so that it keeps the limits, or refuses it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.slowing import Pace
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.verdict import ACCEPTED, Action, Verdict

ORDERS: Final = {
    "speed": 1,
    "acceleration": 2,
    "jerk": 3,
    "turn_rate": 1,
    "turn_acceleration": 2,
    "joint_speed": 1,
    "joint_acceleration": 2,
}
"""Rules that a slower motion keeps: by which power of the scale their values fall on a smooth path."""

UNSLOWED: Final = ("gripper_rate",)
"""Rules that a slower motion breaks too, so they only warn or stop."""

SLOWED_SOURCE: Final = "policy"
"""The source that goes on from where the arm is. One that follows a clock would only be cut off behind it."""
Measured = tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]  # the tool's position, joints, its rotation
TINY: Final = 1e-9  # of a step: rounding


@dataclass(frozen=True, eq=False)
class Admission:
    """What becomes of a chunk.

    Attributes:
        verdict: on the chunk as it was asked for.
        chunk: what to forward if the verdict is ok: the chunk, slowed down where a rule or the run asks for that.
        pace: how it was slowed; None: it was not.
    """

    verdict: Verdict
    chunk: ActionChunk
    pace: Pace | None = None


class Gate:
    """Judges chunks by the envelope, and does what the task says of a broken limit: warn, slow the chunk, or stop.

    The most restrictive rule wins. A chunk is slowed in time from the row that holds *now*, so what is executed does
    not jump. Its path is kept, and its ``dt`` too: the slower motion is laid onto the same grid, and judged anew by the
    whole envelope. What is forwarded keeps every limit, apart from those that only warn. The scale is the largest
    that a search finds. A chunk that even the least scale does not save is refused.

    Args:
        task: as for :class:`bid_ros.safety.envelope.Envelope`, whose errors it raises.
        arm: likewise.
        slow: largest factor of the speed of a policy's chunks, above 0 and up to 1.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None, slow: float = 1.0) -> None:
        self._envelope, self._task, self._slow = Envelope(task, arm), task, slow
        self._least = task.limits.above.least_scale
        self._actions = {rule: Action(getattr(task.limits.above, rule)) for rule in (*ORDERS, *UNSLOWED)}
        self._before: ActionChunk | None = None

    def passed(self, chunk: ActionChunk) -> None:
        """Remember what was forwarded: the next chunk must not jump away from it, if it is of the same source.

        After another source has moved the arm, a source begins anew.
        """
        self._before = chunk

    def forget(self, source: str = "") -> None:
        """Forget what was forwarded of a source, or of all: what it commands next begins anew."""
        if self._before is not None and source in ("", self._before.source):
            self._before = None

    def holds(self, opening: float | None) -> None:
        """Take what the gripper measures, as :meth:`bid_ros.safety.envelope.Envelope.holds`."""
        self._envelope.holds(opening)

    def admit(
        self,
        chunk: ActionChunk,
        now_ns: int,
        tool_position: ArrayLike | None,
        joints: ArrayLike | None = None,
        tool_rotation: ArrayLike | None = None,
    ) -> Admission:
        """Return what becomes of a chunk. The arguments are those of :meth:`bid_ros.safety.envelope.Envelope.check`."""
        measured = tool_position, joints, tool_rotation
        malformed = self._envelope.malformed(chunk)
        if malformed is not None:
            return Admission(malformed, chunk)
        row, fastest = int(chunk.position_at(now_ns)), self._slow if chunk.source == SLOWED_SOURCE else 1.0
        steps = chunk.horizon - 1 - row

        def slowed(stretched: int) -> Admission:
            pace = Pace(row, steps, stretched) if stretched > steps else None
            return Admission(ACCEPTED, chunk if pace is None else self._paced(chunk, pace), pace)

        def broken(found: Admission) -> Iterator[Verdict]:
            return self._broken(found.chunk, now_ns, measured)

        fewest = ceil(steps / fastest - TINY)
        first = slowed(fewest)
        first = replace(first, verdict=_most_restrictive(list(broken(first))))
        if first.verdict.action is not Action.SCALE:
            return first
        return self._searched(first, slowed, broken, fewest, int(steps / (fastest * self._least) + TINY))

    def _searched(
        self,
        first: Admission,
        slowed: Callable[[int], Admission],
        broken: Callable[[Admission], Iterator[Verdict]],
        fewest: int,
        most: int,
    ) -> Admission:
        """Return the fastest admission of more than ``fewest`` steps, those of ``first``, up to ``most``.

        One that breaks a limit is left at the first, so most of those that are too fast cost little.
        """
        verdict = first.verdict
        if most <= fewest or not _keeps(broken(found := slowed(most))):
            return Admission(_unsaved(verdict, self._least), first.chunk)
        while most - fewest > 1:
            middle = (fewest + most) // 2
            other = slowed(middle)
            fewest, most, found = (fewest, middle, other) if _keeps(broken(other)) else (middle, most, found)
        reason = f"{verdict.reason}; slowed down to {found.chunk.scale:.2f} of its speed"
        return replace(found, verdict=replace(verdict, reason=reason))

    def _broken(self, chunk: ActionChunk, now_ns: int, measured: Measured) -> Iterator[Verdict]:
        """Yield the verdict of each broken limit, with what is done about it; the first that stops is the last."""
        before = self._before
        if before is not None and before.source != chunk.source:
            before = None
        for verdict in self._envelope.refusals(chunk, now_ns, *measured, before):
            action = self._actions.get(verdict.rule, Action.STOP)
            yield replace(verdict, ok=action is not Action.STOP, action=action)
            if action is Action.STOP:
                return

    def _paced(self, chunk: ActionChunk, pace: Pace) -> ActionChunk:
        with np.errstate(over="ignore", invalid="ignore"):  # of what is huge; the envelope refuses infinity
            actions = pace.slowed(chunk.actions, self._task, pace.row + pace.stretched + 1)
        return replace(chunk, actions=actions, scale=pace.scale)


def _keeps(broken: Iterator[Verdict]) -> bool:
    """Whether no limit is broken but those that only warn."""
    return all(verdict.action is Action.WARN for verdict in broken)


def _most_restrictive(broken: list[Verdict]) -> Verdict:
    """Return the verdict of the most restrictive rule. One to slow the chunk, or to warn, is ok."""
    if broken and not broken[-1].ok:
        return broken[-1]
    slower = [verdict for verdict in broken if verdict.action is Action.SCALE]
    return min(slower or broken, key=_needed, default=ACCEPTED)


def _needed(verdict: Verdict) -> float:
    """Return the scale that the rule of a verdict asks for on a smooth path."""
    share: float = (verdict.limit / verdict.measured) ** (1.0 / ORDERS.get(verdict.rule, 1))
    return share


def _unsaved(verdict: Verdict, least: float) -> Verdict:
    """Return the refusal of a chunk that no slowing saves."""
    reason = f"{verdict.reason}; the chunk breaks a limit even at {least:g} of its speed"
    return replace(verdict, ok=False, action=Action.STOP, reason=reason)
