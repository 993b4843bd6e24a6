"""The scripted teleoperator as a device: it reads the poses of the scene, plans once, and follows the plan."""

from bid_ros.control.planned import PlannedTeleoperator
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.task import Task
from bid_ros.tasks.registry import find_demonstrator
from bid_ros.teleop.base import DeviceDescriptor, EpisodeStart, TeleopDevice


class ScriptedDevice(TeleopDevice):
    """Demonstrates a task in the style of the episode's label.

    Args:
        task: task with scripted demonstrations.

    Raises:
        TaskError: the task has none.
    """

    def __init__(self, task: Task) -> None:
        self._demonstrator = find_demonstrator(task)
        self._operator: PlannedTeleoperator | None = None

    def begin(self, start: EpisodeStart) -> None:
        """Plan the demonstration. Raises BidError if the style, the seed or a position is not valid."""
        self._operator = self._demonstrator.plan(start.label, start.seed, start.tool, start.bodies, start.now_ns)

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next actions of the plan."""
        return None if self._operator is None else self._operator.chunk_at(now_ns, steps, dt_ns)

    def end(self) -> None:
        """Forget the plan."""
        self._operator = None


DEVICE = DeviceDescriptor(
    "scripted",
    ScriptedDevice,
    bodies=lambda task: find_demonstrator(task).bodies,
    styles=lambda task: tuple(find_demonstrator(task).styles),
)
