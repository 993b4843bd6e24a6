"""What the arm node asks of a chunk by itself, whatever the safety node lets pass: that it is a chunk, and in time."""

from typing import Final

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ChunkError
from bid_ros.core.task import Task
from bid_ros.nodes.ros_messages import chunk_from_message
from bid_ros.safety.envelope import out_of_time

HOP_S: Final = 0.2  # s that a chunk may take from the safety node, where it was in time, on a busy computer


def obeyed_chunk(message: ChunkMessage, task: Task, now_ns: int) -> ActionChunk:
    """Return the chunk of a message.

    A chunk from the future would make the servo ignore every chunk before it.

    Args:
        message: from the safety node.
        task: its action features and limits of age and lead.
        now_ns: ROS time now.

    Raises:
        ChunkError: it is no chunk of this task, is too old, or begins too far in the future.
    """
    chunk = chunk_from_message(message, task, slowed=True)
    for refusal in out_of_time(chunk, now_ns, task.limits, HOP_S):
        raise ChunkError(f"a chunk from '{chunk.source}' at the arm node: {refusal.reason}")
    return chunk
