"""Endings: an episode without END, one that was stopped, one that is hardly there."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY
from bid_ros.core.task import Task
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import ArmTrack, EpisodeTrack

SHORTEST_S: Final = 0.5
END_S: Final = 0.3


def check_ending(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Look at how the episode ended."""
    recorded = track.recorded
    if recorded.episode is None:
        text = "the bag has no event of an episode, so nothing says where it begins, ends, or whether it succeeded"
        yield warning("ending", f"{text}; valid is a START and an END on episode/event")
        return
    if recorded.episode.end_ns is None:
        text = "the episode has no END: its recording stopped, or another episode began; a data set leaves it out"
        yield error("ending", text)
    elif recorded.episode.outcome_class in (SAFETY, INFRASTRUCTURE):
        yield warning("ending", f"the episode did not run to its end: {recorded.outcome}")
    elif track.arm is not None and _stops_early(track.arm):
        at = track.seconds(track.arm.stamps_ns[int(np.argmax(track.arm.stopped))])
        yield warning("ending", f"the arm stops at {at:.1f} s, although the episode goes on; valid is no stop", at)
    if recorded.duration_s < SHORTEST_S:
        text = f"the episode lasts {recorded.duration_s:.2f} s; valid is {SHORTEST_S} s or more"
        yield warning("ending", text)
    elif task is not None and recorded.duration_s > 1.5 * task.episode_timeout:
        text = f"the episode lasts {recorded.duration_s:.1f} s; the task allows {task.episode_timeout:g} s"
        yield warning("ending", text)


def _stops_early(arm: ArmTrack) -> bool:
    """Whether the arm stops before the last moments, in which the end of the episode may already have arrived."""
    return bool((arm.stopped & (arm.stamps_ns < arm.stamps_ns[-1] - int(END_S * 1e9))).any())
