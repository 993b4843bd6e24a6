"""A video of a recorded run: what the policy saw, every candidate it considered, and how the episodes ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras import decode_image
from bid_ros.cameras.config import load_cameras
from bid_ros.errors import CameraError
from bid_ros.evaluation.frames import DecisionPainter, decision_text
from bid_ros.evaluation.video import compose, write_gif, write_mp4
from bid_ros.paths import share
from bid_ros.recording.episodes import END, START
from bid_ros.recording.reader import BagReader
from bid_ros.recording.topics import DECISION, EPISODE_EVENT, camera_topic
from bid_ros.task import Task

Picture = NDArray[np.uint8]
FRAMES_PER_SECOND = 5
MAX_FRAMES = 300


def write_run_video(bag: Path, out: Path, task: Task, cameras: Path | None = None) -> Path | None:
    """Write a GIF (or MP4, by the name of ``out``) of the episodes in a bag; None if it holds no decision.

    The first fixed, calibrated camera is drawn over; the others stand beside it.

    Args:
        bag: what was recorded.
        out: file to write.
        task: of the run.
        cameras: camera file of the run; default: that of the task's twin.

    Raises:
        RecordingError: the bag cannot be read.
        CameraError: the camera file gives no camera's pose, so nothing can be drawn over its image.
    """
    with BagReader(bag) as reader:
        if not reader.counts.get(DECISION):
            return None
        pictures = list(_pictures(reader, task, cameras or share("config", f"{task.name}_cameras_twin.yaml")))
    if not pictures:
        return None
    stride = max(1, -(-len(pictures) // MAX_FRAMES))
    writer = write_mp4 if out.suffix == ".mp4" else write_gif
    writer(pictures[::stride], out, FRAMES_PER_SECOND)
    return out


def _pictures(reader: BagReader, task: Task, file: Path) -> Iterator[Picture]:
    names = [camera.name for camera in task.cameras]
    cameras = load_cameras(file, names)
    drawn = next((name for name in names if cameras[name].position is not None), None)
    if drawn is None:
        raise CameraError(f"{file} gives no camera's pose; valid is a position and a target of at least one")
    painter = DecisionPainter(cameras[drawn], task)
    side = next((name for name in names if name != drawn), None)
    topics = [camera_topic(name) for name in names] + [DECISION, EPISODE_EVENT]
    decision: Any = None
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
            beside = decode_image(item.message)
        elif running and decision is not None:
            seen += 1
            if seen % 2 == 0:
                yield _beside(painter.paint(item.message, decision, decision_text(decision, outcome)), beside)


def _beside(main: Picture, side: Picture | None) -> Picture:
    """Put the second camera's picture beside the first."""
    if side is None:
        return main
    size = (main.shape[1] // 2, main.shape[1] // 2)
    return compose(main, cv2.resize(side, size, interpolation=cv2.INTER_CUBIC).astype(np.uint8))
