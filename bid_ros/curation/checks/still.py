"""Still arms: an episode in which nothing moves teaches to do nothing."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from bid_ros.core.task import Task
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import EpisodeTrack
from bid_ros.recording.rows import MOVED_M

SHARE: Final = 1 / 3
LEAST_S: Final = 1.0


def check_still(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Find arms that never move, or not in the last third of the episode. A moving gripper counts as motion."""
    del task
    times, values = track.tool_ns, track.tool
    if track.arm is not None:
        times = track.arm.stamps_ns
        values = np.column_stack([track.arm.reference, np.nan_to_num(track.arm.width)])
        values = np.where(np.isfinite(values), values, np.nan_to_num(values[-1]))
    if len(times) < 2:
        return
    away = np.linalg.norm(values - values[-1], axis=1) > MOVED_M
    if not away.any():
        text = f"the arm never moves by {1000 * MOVED_M:g} mm in {track.recorded.duration_s:.1f} s; valid is motion"
        yield error("still", text)
        return
    last = int(np.flatnonzero(away)[-1])
    rest, at = (times[-1] - times[last]) / 1e9, track.seconds(times[last])
    if rest > max(LEAST_S, SHARE * track.recorded.duration_s):
        text = (
            f"the arm is still from {at:.1f} s on, for {rest:.1f} s of {track.recorded.duration_s:.1f} s; "
            f"valid is up to a third: bid episodes trim cuts it off"
        )
        yield warning("still", text, at)
