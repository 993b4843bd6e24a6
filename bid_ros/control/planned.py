"""The base of scripted teleoperators: holds a plan, returns its pose at a time, and cuts chunks from it."""

from bisect import bisect_right
from collections.abc import Sequence

from bid_ros.control.trajectory import Array, ChunkSource, Trajectory
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import BidError


class PlannedTeleoperator:
    """Holds one planned trajectory, divided into named phases, or none."""

    def __init__(self) -> None:
        self._source: ChunkSource | None = None
        self._phases: list[tuple[float, str]] = []

    @property
    def duration(self) -> float:
        """Duration of the plan in s, the final hold included. Raises BidError without a plan."""
        return self._planned().trajectory.duration_s

    def begin_of(self, phase: str) -> float:
        """Return the begin of a phase, in s after the start of the plan.

        Raises:
            BidError: there is no plan, or it has no such phase.
        """
        self._planned()
        begins = {name: begin for begin, name in self._phases}
        if phase not in begins:
            raise BidError(f"the plan has no phase '{phase}'; valid are {', '.join(begins)}")
        return begins[phase]

    def pose_at(self, t_s: float) -> tuple[Array, Array, float, str]:
        """Return the commanded pose ``t_s`` s after the start of the plan. Raises BidError without a plan.

        Returns:
            position (3,) in m, rotation_6d (6,), gripper width in m, and the phase.
        """
        row = self._planned().trajectory.actions_at([t_s])[0]
        index = bisect_right([begin for begin, _ in self._phases], t_s) - 1
        return row[:3], row[3:9], float(row[9]), self._phases[max(index, 0)][1]

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk:
        """Return the next ``steps`` actions from ``now_ns`` on, ``dt_ns`` apart, with the source ``teleop``.

        Raises:
            BidError: there is no plan.
        """
        return self._planned().chunk_at(now_ns, steps, dt_ns)

    def _follow(self, trajectory: Trajectory, phases: Sequence[tuple[float, str]], now_ns: int, frame_id: str) -> None:
        """Take a plan that begins at ``now_ns``. Phases are (begin in s, name), in order of time."""
        self._phases, self._source = list(phases), ChunkSource(trajectory, now_ns, "teleop", frame_id)

    def _planned(self) -> ChunkSource:
        if self._source is None:
            raise BidError("the teleoperator has no plan; call plan() first")
        return self._source
