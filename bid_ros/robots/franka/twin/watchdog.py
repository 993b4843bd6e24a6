"""The robot's watchdog over its client: too many commands lost in a row end the motion."""

from dataclasses import dataclass
from typing import Final

HISTORY: Final = 100  # commands over which the success rate is told
_FULL: Final = (1 << HISTORY) - 1


@dataclass(frozen=True)
class Patience:
    """What a robot forgives the computer of its client.

    Attributes:
        lost: commands lost in a row after which the arm brakes. One is due in each cycle, so it is a time in ms, too.
        ended: commands lost in a row that end the motion. Until then it goes on with the next command.
        gaps: True: a torque is compared with the torque of the state that its command answers, not with the command
            before, and only positions and speeds of a motion generator's path are judged. A late command takes the
            client's filter back to an older state.
    """

    lost: int = 20
    ended: int = 20
    gaps: bool = False


# As published: https://frankarobotics.github.io/docs/requirements.html, section Network.
PUBLISHED: Final = Patience()
# Of a twin, whose client shares its cores with everything else.
SHARED: Final = Patience(ended=200, gaps=True)


class CommandWatchdog:
    """Counts the cycles of a motion in which no command came.

    Args:
        patience: when it trips.

    Attributes:
        lost: commands lost in a row until now.
        longest: most commands lost in a row since the start.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._history = _FULL
        self.lost = self.longest = 0

    @property
    def success_rate(self) -> float:
        """Share of the last 100 commands that came."""
        return self._history.bit_count() / HISTORY

    @property
    def brakes(self) -> bool:
        """Whether so many commands are lost that the arm brakes."""
        return self.lost >= self._patience.lost

    def begin(self) -> None:
        """Begin with a motion."""
        self._history, self.lost = _FULL, 0

    def trips(self, came: bool, counted: bool) -> bool:
        """Pass a cycle of a motion; return whether too many commands are lost.

        Args:
            came: whether a new command came since the last cycle.
            counted: whether the client has had its time to answer. It has not where the twin makes up for lost time.
        """
        if came:
            self._history = (self._history << 1 | 1) & _FULL
            self.lost = 0
        elif counted:
            self._history = self._history << 1 & _FULL
            self.lost += 1
            self.longest = max(self.longest, self.lost)
        return self.lost >= self._patience.ended
