"""Check of an episode as a whole: into how many pieces a data set cuts it."""

from collections.abc import Iterator
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, camera_topic
from bid_ros.curation.check_messages import LONGEST_PERIODS, LONGEST_STATE_S
from bid_ros.curation.track import EpisodeTrack, Fault, error
from bid_ros.recording.dataset import IDLE_ROWS, MOVED_M

SPARED_PERIODS: Final = 0.75  # frames that come sooner are left out of a data set


def check_pieces(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Say into how many pieces a data set cuts the episode: gaps of any topic are cuts of them all."""
    stamps = None if task is None else _rows(track, task)
    if task is None or stamps is None or not len(stamps):
        return
    cuts = np.flatnonzero(np.diff(stamps) > LONGEST_PERIODS * task.dt_ns)
    if len(cuts):
        at = track.seconds(int(stamps[cuts[0]]))
        text = f"a data set cuts the episode into {len(cuts) + 1} pieces, first at {at:.1f} s; valid is one"
        yield error("gaps", text, at)


def _rows(track: EpisodeTrack, task: Task) -> NDArray[np.int64] | None:
    """Return the stamps of a data set's rows: frames of every camera, near a state of the arm; None: not known."""
    found = [track.series_of(camera_topic(camera.name)) for camera in task.cameras]
    states = track.series_of(ARM_STATUS)
    if not found or states is None or any(series is None or series.header_ns is None for series in found):
        return None
    frames = [series.header_ns for series in found if series is not None and series.header_ns is not None]
    common = reduce(np.intersect1d, frames)
    within = common[(common >= _moves_ns(track, task)) & (common <= track.recorded.end_ns)]
    known = np.sort(states.times_ns)
    after = np.clip(np.searchsorted(known, within), 1, max(len(known) - 1, 1))
    if len(known) < 2:
        return None
    away = np.minimum(np.abs(within - known[after - 1]), np.abs(within - known[after]))
    kept: list[int] = []
    for stamp in within[away <= LONGEST_STATE_S / 2 * 1e9].tolist():
        if not kept or stamp - kept[-1] >= SPARED_PERIODS * task.dt_ns:
            kept.append(stamp)
    return np.array(kept, dtype=np.int64)


def _moves_ns(track: EpisodeTrack, task: Task) -> int:
    """Return from when on a data set has rows: shortly before the arm or its gripper is told to move."""
    if track.arm is None:
        return track.recorded.begin_ns
    values = np.column_stack([track.arm.reference, np.nan_to_num(track.arm.asked)])
    moved = np.linalg.norm(values - values[0], axis=1) > MOVED_M
    return int(track.arm.stamps_ns[int(moved.argmax())]) - IDLE_ROWS * task.dt_ns
