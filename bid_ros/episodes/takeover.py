"""Who moves the arm in an episode in which a person may take over from the policy: never both."""

from enum import Enum
from typing import Final

from bid_ros.core.chunk import NANOSECONDS

POLICY, PERSON, NOBODY = "policy", "teleop", ""
SILENCE_NS: Final = 300_000_000  # of the switch, after which its device counts as gone
FRESH_NS: Final = 150_000_000  # of the arm's state: an older one does not tell whether it rests
REST_NS: Final = 100_000_000  # for which the set-point stands still before somebody else gets the arm


class Phase(Enum):
    """What happens now."""

    POLICY = "the policy drives"
    TAKING = "the arm brakes for the person"
    PERSON = "the person drives"
    RETURNING = "the arm brakes for the policy"
    LOST = "the device is gone: hold its switch once it is back"


class Takeover:
    """Decides who is granted the arm. It reads no clock: every time is a steady one in integer nanoseconds.

    A person who holds the dead man's switch gets the arm, once it rests. Whoever lets go of it gives it back, once it
    rests and the switch was open for a while. A device that falls silent leaves the arm to nobody: the policy does not
    go on without its supervisor until the switch was held again.

    Args:
        return_s: s for which the switch must be open before the policy gets the arm back.

    Attributes:
        phase: what happens now.
        count: how often a person took over.
    """

    def __init__(self, return_s: float) -> None:
        self._return_ns = round(return_s * NANOSECONDS)
        self.begin(0)

    def begin(self, now_ns: int) -> None:
        """Begin an episode: the policy drives, and a device that was not heard counts as heard now."""
        self.phase, self.count = Phase.POLICY, 0
        self._held, self._heard_ns, self._open_ns = False, now_ns, now_ns
        self._moved_ns, self._stated_ns = now_ns, now_ns

    def switch(self, held: bool, now_ns: int) -> None:
        """Take whether the dead man's switch is held."""
        if held or self._held:
            self._open_ns = now_ns
        self._held, self._heard_ns = held, now_ns

    def stated(self, moves: bool, now_ns: int) -> None:
        """Take a state of the arm: whether its set-point moves."""
        self._stated_ns = now_ns
        if moves:
            self._moved_ns = now_ns

    def source(self, now_ns: int) -> str:
        """Return who may move the arm: ``policy``, ``teleop``, or nobody, which is empty."""
        before = self.phase
        self.phase = self._next(now_ns)
        if self.phase is not before:
            # What was at rest before may begin to move in this moment.
            self._moved_ns = max(self._moved_ns, now_ns)
            self.count += self.phase is Phase.TAKING
        return {Phase.POLICY: POLICY, Phase.PERSON: PERSON, Phase.RETURNING: PERSON}.get(self.phase, NOBODY)

    def _next(self, now_ns: int) -> Phase:
        # An arm of which nothing is heard may move.
        rests = self._stated_ns - self._moved_ns >= REST_NS and now_ns - self._stated_ns <= FRESH_NS
        if now_ns - self._heard_ns > SILENCE_NS:
            return Phase.LOST
        if self.phase in (Phase.POLICY, Phase.LOST):
            return Phase.TAKING if self._held else self.phase
        if self.phase is Phase.TAKING:
            return Phase.PERSON if rests else Phase.TAKING
        if self._held:
            return Phase.PERSON
        back = rests and now_ns - self._open_ns >= self._return_ns
        return Phase.POLICY if self.phase is Phase.RETURNING and back else Phase.RETURNING
