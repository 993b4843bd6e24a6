"""A shaded picture or video of a recorded run in the twin's scene, drawn from what the bag says of arm and bodies."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, body_topic
from bid_ros.recording.episodes import START
from bid_ros.recording.reader import BagReader
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.studio import CAMERA
from bid_ros.tasks.registry import kind_of
from bid_ros.tasks.twins import picture_model
from bid_ros.views.outline import ScenePose
from bid_ros.views.video import write_gif, write_mp4

Picture = NDArray[np.uint8]
SIZES: Final[Mapping[str, tuple[int, int]]] = {"480p": (854, 480), "720p": (1280, 720), "1080p": (1920, 1080)}
FRAMES_PER_SECOND: Final = 10
MAX_FRAMES: Final = 150  # 0.4 GB at 720p
AWAY_Z: Final = -50.0  # m, where nobody sees a body of which the bag says nothing


def write_studio(bag: Path, out: Path, task: Task, quality: str = "720p", at_s: float = 3.0) -> Path | None:
    """Write a video (MP4 or GIF) of the episodes in a bag, or one picture (PNG), by the name of ``out``.

    Args:
        bag: the recording. A bag of the twin says where the bodies are; one of a robot shows the arm alone.
        out: file to write.
        task: of the run.
        quality: one of ``SIZES``.
        at_s: s after the start of the first episode, of a picture.

    Returns:
        The file; None if the bag has no episode.

    Raises:
        RecordingError: the bag cannot be read, or its arm status does not say the joints of the task's robot.
        ArmError: there are no outlines of the robot, or the twin's packages are not installed.
        CameraError: no offscreen rendering works here.
    """
    model, picture = picture_model(task), out.suffix == ".png"
    with BagReader(bag) as reader:
        states = list(_states(reader, ScenePose(model), kind_of(task).bodies, at_s if picture else 0.0, picture))
    if not states:
        return None
    width, height = SIZES[quality]
    renderer = SceneRenderer(model, width, height, [CAMERA], shaded=True)
    try:
        pictures = [renderer.render(*state)[CAMERA] for state in states[:: max(1, -(-len(states) // MAX_FRAMES))]]
    finally:
        renderer.close()
    if picture:
        out.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(out), pictures[0][:, :, ::-1])
        return out
    return (write_mp4 if out.suffix == ".mp4" else write_gif)(pictures, out, FRAMES_PER_SECOND)


State = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _states(reader: BagReader, pose: ScenePose, bodies: tuple[str, ...], after_s: float, once: bool) -> Iterator[State]:
    """Yield what to draw: the states of all episodes, ten a second, or ``once`` so many s after the first start."""
    topics = {body_topic(name): name for name in bodies}
    for name in bodies:
        pose.set_body(name, (0.0, 0.0, AWAY_Z), (1.0, 0.0, 0.0, 0.0))
    due_ns: float = np.inf
    for item in reader.messages([ARM_STATUS, EPISODE_EVENT, *topics]):
        message = item.message
        if item.topic == EPISODE_EVENT:
            due_ns = stamp_ns(message) + after_s * 1e9 if message.kind == START else np.inf
        elif item.topic == ARM_STATUS:
            pose.set_arm(message.joint_positions, message.gripper_width)
            if stamp_ns(message) >= due_ns:
                yield pose.qpos.copy(), pose.mocap_pos.copy(), pose.mocap_quat.copy()
                if once:
                    return
                due_ns += 1e9 / FRAMES_PER_SECOND
        else:
            at, turn = message.pose.position, message.pose.orientation
            pose.set_body(topics[item.topic], (at.x, at.y, at.z), (turn.w, turn.x, turn.y, turn.z))
