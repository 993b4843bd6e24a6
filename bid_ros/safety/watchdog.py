"""Latched stop: heartbeats, refusals and robot faults become one state. Only a reset clears a stop."""

import math
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from bid_ros.core.checks import check_range
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.deadline import Deadlines
from bid_ros.core.margins import Margins
from bid_ros.safety.grants import Lapse
from bid_ros.safety.verdict import ACCEPTED, Action, Verdict, refused

# A loaded computer now and then produces a late chunk, or one for which the arm's pose is unknown. It is safe not to
# forward it: the previous chunk still covers now, and the arm stops by itself when that ends. Any other refusal means
# that the sender asked for what it must never ask for. Such a sender is not trusted further.
PARTNER: Final = "partner"
"""Rule of a stop that follows that of another arm. It is no cause for that one, or neither could be reset."""
TOLERATED: Final = frozenset({"time", "measurement"})


class State(Enum):
    """What may be forwarded: nothing yet (WAITING), accepted chunks (RUNNING), nothing until a reset (STOPPED)."""

    WAITING = "waiting"
    RUNNING = "running"
    STOPPED = "stopped"


class Watchdog:
    """State machine of the safety node. It reads no clock: every time is a steady one in integer nanoseconds.

    It starts in WAITING and lets nothing pass until every required node has been heard and none is overdue. Then it is
    armed. Silence, a fault of the robot or a refusal latches a stop. The first cause is kept. Only :meth:`reset` leaves
    the stop.

    Args:
        deadlines: longest silence in s of each required node, at least one node.
        late_limit: number of tolerated refusals in a row that latch a stop; 1 or more.
        settle_s: s for which every required node must be heard without a gap before the watchdog is armed, 0 to 60.
            While a system starts, loading processes disturb each other, and nothing moves yet.

    Attributes:
        granted: whether anybody was ever in charge of the arm. Before that nothing moves, and silence only means that
            nodes still load: it leads back to WAITING and latches nothing.
        cause: what stopped it. Its rule is that of a refusal, ``heartbeat:NAME``, ``grant``, ``publisher``,
            ``partner`` or ``fault``; it is ``ACCEPTED``, which has none, unless STOPPED.
        margins: how near the silence of each required node came to its limit, while somebody was in charge.

    Raises:
        ValueError: an argument is outside its range.
    """

    def __init__(self, deadlines: Mapping[str, float], late_limit: int = 5, settle_s: float = 0.0) -> None:
        if late_limit < 1:
            raise ValueError(f"late_limit is {late_limit}; valid is 1 or more")
        check_range("", "settle_s", settle_s, 0, 60, ValueError)
        self._late_limit, self._settle_s = late_limit, settle_s
        self._deadlines, self._missing = Deadlines(deadlines), list(deadlines)
        self.granted = True
        self._armed = False
        self._complete_ns: int | None = None
        self.cause = self._newest = ACCEPTED
        self._announced, self._explained = True, False
        self._fault = self._stranger = ""
        self._partners: dict[str, str] = {}
        self.margins = Margins()
        self._late = 0

    @property
    def state(self) -> State:
        """State at the last call that took a time."""
        if self.stopped:
            return State.STOPPED
        return State.RUNNING if self._armed else State.WAITING

    @property
    def stopped(self) -> bool:
        """Whether a stop is latched."""
        return not self.cause.ok

    @property
    def reason(self) -> str:
        """One sentence: why it stopped, or which nodes it waits for. Empty while RUNNING."""
        if self.stopped or self._armed:
            return self.cause.reason
        return f"waiting for {', '.join(self._missing)}" if self._missing else "waiting for all nodes to settle"

    @property
    def verdict(self) -> Verdict:
        """What stopped it. Before a stop: the newest chunk's verdict."""
        return self.cause if self.stopped else self._newest

    @property
    def action(self) -> Action:
        """What :attr:`verdict` does."""
        if self.stopped:
            return Action.STOP
        return self._newest.action if self._newest.ok else Action.WARN

    def beat(self, name: str, steady_ns: int, judged_ns: int | None = None) -> None:
        """Note a heartbeat. Names that are not required are ignored.

        Args:
            name: of the node that is alive.
            steady_ns: when its heartbeat arrived.
            judged_ns: when silence is judged, at most; earlier where this process was held up. None: it was not.
        """
        if name in self._deadlines.limits:
            # Check the silence before the beat that ends it. So a gap between two ticks is noticed too.
            self._advance(steady_ns if judged_ns is None else min(steady_ns, judged_ns))
            self._deadlines.beat(name, steady_ns)

    def arm_fault(self, reason: str, steady_ns: int) -> bool:
        """Note the robot's fault; an empty text means none. Returns as :meth:`tick`."""
        self._fault = reason
        return self.tick(steady_ns)

    def keep(self, name: str) -> None:
        """From now on only the silence of this required node latches a stop: all others may end.

        Raises:
            KeyError: the node is not required.
        """
        self._deadlines.keep(name)

    def lapse(self, lapse: Lapse | None) -> None:
        """Stop because of a grant that nobody renewed; None changes nothing."""
        if lapse is not None:
            self._latch(refused("grant", str(lapse), measured=lapse.limit_s, limit=lapse.limit_s))

    def stranger(self, reason: str) -> None:
        """Stop because somebody else publishes what moves the arm; an empty text means that nobody does."""
        self._stranger = reason
        if reason:
            self._latch(refused("publisher", reason))

    def partner(self, arm: str, reason: str) -> None:
        """Stop because another arm of the same policy stopped of itself; an empty text: it does not, or only for us."""
        self._partners[arm] = reason
        if reason:
            self._latch(refused(PARTNER, f"the arm '{arm}' stopped: {reason}"))

    def judge(self, verdict: Verdict, steady_ns: int) -> bool:
        """Count a verdict and return whether the chunk may be forwarded now."""
        self._advance(steady_ns)
        self._newest = verdict
        if verdict.ok:
            self._late = 0
            return self.state is State.RUNNING
        if verdict.rule not in TOLERATED:
            self._latch(verdict)
        elif self.state is State.RUNNING:
            self._late += 1
            if self._late >= self._late_limit:
                reason = f"{self._late} chunks in a row were refused, the last because {verdict.reason}"
                self._latch(refused(verdict.rule, reason, verdict.measured, verdict.limit, verdict.row))
        return False

    def explain(self, name: str, problem: str) -> bool:
        """Add what a node says of itself to the stop that its silence latched. Return whether that is news.

        Args:
            name: of the node.
            problem: what it says; empty: nothing.
        """
        if not problem or self._explained or self.cause.rule != f"heartbeat:{name}":
            return False
        self._explained = True
        self.cause = replace(self.cause, reason=f"{self.cause.reason}; it says: {problem}")
        return True

    def tick(self, steady_ns: int) -> bool:
        """Check silence and faults at ``steady_ns``. Return True once for each new stop."""
        self._advance(steady_ns)
        if self._armed and self.granted:
            self._deadlines.note(self.margins, steady_ns)
        news = not self._announced
        self._announced = True
        return news

    def reset(self, steady_ns: int) -> str:
        """Leave the stop. Return an empty text, or why the reset is refused: the cause still holds."""
        if self._fault:
            return f"not reset: the robot reports a fault: {self._fault}"
        if self._stranger:
            return f"not reset: {self._stranger}"
        expired = self._deadlines.expired(steady_ns) if self._armed else None
        if expired is not None:
            return f"not reset: {expired}"
        self.cause = self._newest = ACCEPTED
        self._announced = True
        self._late = 0
        self._advance(steady_ns)
        # What this arm stopped for is gone. So from here on it only follows the other, which can be reset then, even
        # where each had a cause of its own.
        for arm, why in self._partners.items():
            self.partner(arm, why)
        return f"not reset: {self.cause.reason}" if self.cause.rule == PARTNER else ""

    def _advance(self, steady_ns: int) -> None:
        if self._fault:
            self._latch(refused("fault", f"the robot reports a fault: {self._fault}"))
        if not self._armed:
            ages, limits = self._deadlines.ages(steady_ns), self._deadlines.limits
            self._missing = [name for name, limit in limits.items() if not ages.get(name, math.inf) <= limit]
            if self._missing:
                self._complete_ns = None
                return
            self._complete_ns = steady_ns if self._complete_ns is None else self._complete_ns
            self._armed = steady_ns - self._complete_ns >= self._settle_s * NANOSECONDS
            return
        expired = self._deadlines.expired(steady_ns)
        if expired is not None and not self.granted:
            self._armed, self._missing, self._complete_ns = False, [expired.name], None
        elif expired is not None:
            self._latch(refused(f"heartbeat:{expired.name}", str(expired), expired.age_s, expired.limit_s))

    def _latch(self, cause: Verdict) -> None:
        if not self.stopped:
            self.cause = cause
            self._announced = self._explained = False
