"""A video of a recorded run: camera images, all candidates, and the outcome of the episodes."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.config import CameraConfig, load_cameras
from bid_ros.cameras.depth import read_picture
from bid_ros.core.errors import CameraError
from bid_ros.core.task import Task, load_task
from bid_ros.core.topics import DECISION, EPISODE_EVENT, camera_topic
from bid_ros.recording.episodes import END, START
from bid_ros.recording.reader import BagReader
from bid_ros.system.folder import file_beside
from bid_ros.views.overlay import DecisionPainter, ToolPlaces, decision_text, tool_places
from bid_ros.views.video import compose, writer_of

Picture = NDArray[np.uint8]
FRAMES_PER_SECOND = 5
MAX_FRAMES = 300


def write_run_video(bag: Path, out: Path, task_file: Path, twin: bool) -> Path | None:
    """Write a GIF, WebP or MP4 (by the name of ``out``) of the episodes in a bag. None: it has no images of one.

    The candidates are drawn over the first fixed, calibrated camera. The other cameras are shown beside it. A bag
    without decisions, where a device acted, is shown as the cameras saw it.

    Args:
        bag: the recording.
        out: file to write.
        task_file: of the run. The files of its system say where cameras and tool are.
        twin: whether the run was in the twin.

    Raises:
        BidError: the name of ``out`` is not that of a video.
        RecordingError: the bag cannot be read.
        CameraError: no camera in the camera file has a pose.
    """
    write, task = writer_of(out), load_task(task_file)
    cameras, robot = (file_beside(task_file, name) for name in ("cameras.yaml", "robot.yaml"))
    with BagReader(bag) as reader:
        found = load_cameras(cameras, [camera.name for camera in task.cameras], twin)
        pictures = list(_pictures(reader, task, found, tool_places(task, robot, twin)))
    if not pictures:
        return None
    stride = max(1, -(-len(pictures) // MAX_FRAMES))
    return write(pictures[::stride], out, FRAMES_PER_SECOND / stride)


def _pictures(
    reader: BagReader, task: Task, cameras: Mapping[str, CameraConfig], places: ToolPlaces
) -> Iterator[Picture]:
    names = list(cameras)
    drawn = next((name for name in names if cameras[name].is_fixed), None)
    if drawn is None:
        raise CameraError("the camera file gives no camera's pose; valid is position and quaternion of at least one")
    painter = DecisionPainter(cameras[drawn], task, places)
    side = next((name for name in names if name != drawn), None)
    topics = [camera_topic(name) for name in names] + [DECISION, EPISODE_EVENT]
    decided, decision = bool(reader.counts.get(reader.recorded_name(DECISION))), None
    beside: Picture | None = None
    running, outcome, seen = False, "", 0
    for item in reader.messages(topics):
        if item.topic == EPISODE_EVENT:
            running = item.message.kind == START
            decision = None if item.message.kind != END else decision
            outcome = f"episode {item.message.episode + 1}   {item.message.outcome}"
        elif item.topic == DECISION:
            decision = item.message
        elif side is not None and item.topic == camera_topic(side):
            beside = read_picture(item.message)
        elif running and (decision is not None or not decided):
            seen += 1
            if seen % 2 == 0:
                text = outcome if decision is None else decision_text(decision, outcome)
                yield _beside(painter.paint(item.message, decision, text), beside)


def _beside(main: Picture, side: Picture | None) -> Picture:
    """Put the image of the second camera beside the first."""
    if side is None:
        return main
    size = (main.shape[1] // 2, main.shape[1] // 2)
    return compose(main, cv2.resize(side, size, interpolation=cv2.INTER_CUBIC).astype(np.uint8))
