"""The gate: lets a chunk pass, slows it down so that it keeps the limits, or refuses it."""

from dataclasses import dataclass, replace
from typing import Final

from numpy.typing import ArrayLike

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.slowing import Pace
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task
from bid_ros.safety.envelope import MAX_HORIZONS, Envelope
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


@dataclass(frozen=True, eq=False)
class Admission:
    """What becomes of a chunk.

    Attributes:
        verdict: on the chunk as it was asked for.
        chunk: what to forward if the verdict is ok: the chunk, slowed down where a rule asks for that.
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
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        self._envelope = Envelope(task, arm)
        self._task, self._above = task, task.limits.above
        self._actions = {rule: Action(getattr(self._above, rule)) for rule in ORDERS}

    def admit(
        self, chunk: ActionChunk, now_ns: int, tool_position: ArrayLike | None, joints: ArrayLike | None = None
    ) -> Admission:
        """Return what becomes of a chunk. The arguments are those of :meth:`bid_ros.safety.envelope.Envelope.check`."""
        found = self._judged(chunk, now_ns, tool_position, joints)
        if found.action is not Action.SCALE:
            return Admission(found, chunk)
        row = int(chunk.position_at(now_ns))
        steps = chunk.horizon - 1 - row
        most = int(steps / self._above.least_scale + 1e-9)

        def tried(stretched: int) -> ActionChunk | None:
            slower = self._paced(chunk, Pace(row, steps, stretched))
            verdict = self._judged(slower, now_ns, tool_position, joints)
            return slower if verdict.ok and verdict.action is not Action.SCALE else None

        best = tried(most) if most > steps else None
        if best is None:
            return Admission(_unsaved(found, self._above.least_scale), chunk)
        fewest = steps  # steps that are known not to do
        while most - fewest > 1:
            middle = (fewest + most) // 2
            slower = tried(middle)
            fewest, most, best = (middle, most, best) if slower is None else (fewest, middle, slower)
        reason = f"{found.reason}; slowed down to {best.scale:.2f} of its speed"
        return Admission(replace(found, reason=reason), best, Pace(row, steps, most))

    def _judged(
        self, chunk: ActionChunk, now_ns: int, tool_position: ArrayLike | None, joints: ArrayLike | None
    ) -> Verdict:
        """Return the verdict of the most restrictive rule. One to slow the chunk, or to warn, is ok."""
        broken = []
        for verdict in self._envelope.refusals(chunk, now_ns, tool_position, joints):
            action = self._actions.get(verdict.rule, Action.STOP)
            if action is Action.STOP:
                return verdict
            broken.append(replace(verdict, ok=True, action=action))
        slower = [verdict for verdict in broken if verdict.action is Action.SCALE]
        return min(slower or broken, key=_needed, default=ACCEPTED)

    def _paced(self, chunk: ActionChunk, pace: Pace) -> ActionChunk:
        """Return a chunk at a pace. Of a path that would need more rows than a chunk may have, the end is left out."""
        rows = min(pace.row + pace.stretched + 1, MAX_HORIZONS * self._task.horizon)
        return replace(chunk, actions=pace.slowed(chunk.actions, self._task, rows), scale=pace.scale)


def _needed(verdict: Verdict) -> float:
    """Return the scale that the rule of a verdict asks for on a smooth path."""
    share: float = (verdict.limit / verdict.measured) ** (1.0 / ORDERS[verdict.rule])
    return share


def _unsaved(verdict: Verdict, least: float) -> Verdict:
    """Return the refusal of a chunk that no slowing saves."""
    reason = f"{verdict.reason}, which {least:g} of the speed does not keep either"
    return replace(verdict, ok=False, action=Action.STOP, reason=reason)
