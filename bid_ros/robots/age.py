"""The age of a robot's states, by the robot's clock and by this computer's clock."""

from typing import Final

# Largest difference in pace of the clocks of robot and computer. If states come later and later by more than this, they
# are delayed on their way.
DRIFT: Final = 5e-4


class StateAge:
    """Measures the age of states. Age: this state's delay minus the smallest delay seen so far.

    The delay is this computer's clock minus the robot's time stamp. The smallest delay may grow as fast as the clocks
    may drift apart. So a delay that grows faster is noticed.

    Args:
        robot_ns: the robot's time of a first state.
        now_ns: when it was read, on a clock of even pace.

    Attributes:
        gained_ns: by how much the robot's clock was too fast.
        read_ns: when the newest state was read.
    """

    def __init__(self, robot_ns: int, now_ns: int) -> None:
        self._shortest_ns = now_ns - robot_ns
        self.read_ns = now_ns
        self.gained_ns = 0

    def late_ns(self, robot_ns: int, now_ns: int) -> int:
        """Return the age in ns of a state of the robot's time, and note that it was read."""
        took_ns = now_ns - robot_ns
        drifted_ns = round(DRIFT * (now_ns - self.read_ns))
        self.read_ns = now_ns
        shortest_ns = min(took_ns, self._shortest_ns + drifted_ns)
        # The delay reaches its smallest value once. Only a clock that is too fast makes states come ever sooner.
        self.gained_ns = max(0, self.gained_ns + self._shortest_ns - shortest_ns - drifted_ns)
        self._shortest_ns = shortest_ns
        return took_ns - shortest_ns
