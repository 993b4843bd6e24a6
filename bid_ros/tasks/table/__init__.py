"""An empty table: for tasks without objects of ours, so that plumbing, teleoperation and limits can be tried."""

from bid_ros.core.task import Task
from bid_ros.sim.twin import TwinScene
from bid_ros.tasks.base import TaskDescriptor


def _scene(task: Task) -> TwinScene:
    from bid_ros.tasks.table.scene import TableScene

    limits = task.limits
    return TableScene([camera.name for camera in task.cameras], limits.workspace_min, limits.workspace_max)


TASK = TaskDescriptor("table", _scene)
