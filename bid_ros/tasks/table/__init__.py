"""A table: empty, to try plumbing, teleoperation and limits; or with the objects and the judge of a task file."""

from dataclasses import replace
from functools import partial

from bid_ros.core.task import Task
from bid_ros.robots.descriptor import later
from bid_ros.sim.twin import TwinScene
from bid_ros.tasks.base import TaskDescriptor, Unjudged
from bid_ros.tasks.table.layout import object_layout
from bid_ros.tasks.table.pushing import push_demonstrator
from bid_ros.tasks.table.score import ObjectScore


def _scene(task: Task) -> TwinScene:
    from bid_ros.tasks.table.scene import TableScene

    limits = task.limits
    return TableScene([camera.name for camera in task.cameras], limits.workspace_min, limits.workspace_max)


def _furnished(task: Task) -> TaskDescriptor:
    """Return the kind of a task as its file has it. Raises TaskError if there is no room for an object."""
    if not task.objects:
        return TASK
    object_layout(task.objects, 0)
    moved = [item.name for item in task.objects if item.moved_by == "person"]
    return replace(
        TASK,
        scene=later(f"{__name__}.furniture:ObjectScene"),
        bodies=tuple(item.name for item in task.objects),
        moves=moved[0] if moved else TaskDescriptor.moves,
        score=partial(ObjectScore, task) if task.success else Unjudged,
        stage=partial(later(f"{__name__}.stage:ObjectStage"), task),
        demonstrator=push_demonstrator(task),
    )


TASK = TaskDescriptor("table", _scene, of=_furnished)
