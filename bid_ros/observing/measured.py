"""The joints that were measured when a policy's observation was taken: the same live and in a replay."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from bid_ros.core.observation import Observation
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import FEATURE_TOPICS

KEPT: Final = 200  # statuses: 4 s


class Measuring(Protocol):
    """What is told the joints, such as :class:`bid_ros.safety.screen.Screen`."""

    measured: Any


class MeasuredJoints:
    """Keeps the joints of the newest statuses of the arm, by their stamps. Two threads may use it.

    Attributes:
        newest: ``(joints,)`` rad; None before the first.
    """

    def __init__(self) -> None:
        self.newest: Any = None
        self._kept: dict[int, Any] = {}

    def take(self, status: Any) -> None:
        """Take an ``ArmStatus``."""
        self.newest = self._kept[stamp_ns(status)] = status.joint_positions
        if len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept)))

    def at(self, observation: Observation) -> Any:
        """Return the joints ``(joints,)`` rad of the status from which its newest row is; None if nobody knows."""
        stamps = (observation.samples_ns[name][-1] for name in FEATURE_TOPICS if name in observation.samples_ns)
        return self._kept.get(next(stamps, -1))

    def tells(self, screen: Measuring) -> Callable[[Observation], None]:
        """Return what tells a screen the joints of each observation."""

        def tell(observation: Observation) -> None:
            screen.measured = self.at(observation)

        return tell
