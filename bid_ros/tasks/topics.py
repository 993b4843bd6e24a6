"""The recorded topics of a task, the ground truth of its bodies among them."""

from bid_ros.core.task import Task
from bid_ros.core.topics import Topic, recorded_topics
from bid_ros.tasks.registry import kind_of


def system_topics(task: Task) -> dict[str, Topic]:
    """Return every topic that a system of this task records, its cameras first.

    Raises:
        TaskError: there is no such kind of task, or as :func:`bid_ros.core.topics.recorded_topics`.
    """
    kind = kind_of(task)
    looked_at = () if kind.demonstrator is None else kind.demonstrator.bodies
    return recorded_topics(task, dict.fromkeys((*kind.bodies, *looked_at)))
