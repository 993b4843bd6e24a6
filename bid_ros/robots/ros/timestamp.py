"""When something was measured, by the clocks of both computers, and whether a message is news or a repetition."""

import time
from dataclasses import dataclass
from typing import Any, Final, Self

from bid_ros.core.stamps import stamp_to_ns
from bid_ros.robots.bus import Heard

# A header's stamp counts if it is at most this old when it arrives; else the clocks differ, and the arrival counts.
CLOCKS_NS: Final = 100_000_000
# An older stamp than the one before is no news within that time, which is the longest `state_timeout_s`. Afterwards the
# clock of who publishes it was set back.
SET_BACK_S: Final = 1.0


@dataclass(frozen=True)
class Timestamp:
    """When something was measured.

    Attributes:
        stamp_ns: wall time of the measurement, ns.
        source_ns: the message's own stamp, ns, by the clock of who published it.
        steady_ns: steady time of its arrival, ns.
    """

    stamp_ns: int
    source_ns: int
    steady_ns: int

    @classmethod
    def of(cls, heard: Heard, stamp: Any) -> Self:
        """Return the timestamp of a message that was heard, with a stamp of its header."""
        source_ns = stamp_to_ns(stamp)
        wall_ns, steady_ns = time.time_ns(), time.monotonic_ns()
        arrived_ns = min(heard.arrived_ns, wall_ns)
        early_ns = arrived_ns - source_ns
        stamp_ns = source_ns if 0 <= early_ns < CLOCKS_NS else arrived_ns
        return cls(stamp_ns, source_ns, steady_ns - (wall_ns - arrived_ns))

    def repeats(self, before: Self) -> bool:
        """Return whether it is no news after the one before.

        The same stamp is none: a driver whose robot is gone often publishes on. Nor is an older one, as tf2 has it: it
        came out of order, or from a second publisher that repeats what it knew once.
        """
        if self.source_ns <= 0 or self.source_ns > before.source_ns:
            return False
        return self.source_ns == before.source_ns or before.age_s() < SET_BACK_S

    def age_s(self) -> float:
        """Return the s since its arrival."""
        return (time.monotonic_ns() - self.steady_ns) / 1e9
