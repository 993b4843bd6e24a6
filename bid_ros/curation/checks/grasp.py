"""Grasps: cut off by the end, closed on nothing, or never let go where the task is to put something down."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from bid_ros.core.task import Task
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import ArmTrack, EpisodeTrack
from bid_ros.tasks.registry import TASKS, setup_of

END_S: Final = 0.2  # over which the motion of the gripper is seen at the end
CLOSING_M: Final = 0.002  # by which it closes in that time
ASKED_M: Final = 0.002  # by which a width asked for lies below the measured one
EMPTY_M: Final = 0.002  # of opening above the smallest, with nothing between the fingers


def check_grasp(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Look at the gripper during the episode and at its end."""
    arm = track.arm
    if arm is None or not np.isfinite(arm.width).any():
        return
    yield from _cut_off(track, arm)
    yield from _empty(track, arm, 0.0 if task is None else task.limits.gripper_min)
    if task is not None and _lets_go(task) and track.recorded.success and _holds(arm):
        at = track.seconds(arm.stamps_ns[-1])
        text = "the episode counts as a success, but the gripper still holds on at its end; valid is to let go"
        yield error("grasp", text, at)


def _lets_go(task: Task) -> bool:
    """Whether an episode begins with something held, so that a success has let go of it."""
    return task.kind in TASKS.names() and setup_of(task).held is not None


def _holds(arm: ArmTrack) -> bool:
    return bool(arm.asked[-1] < arm.width[-1] - ASKED_M)


def _cut_off(track: EpisodeTrack, arm: ArmTrack) -> Iterator[Fault]:
    recent = arm.width[arm.stamps_ns >= arm.stamps_ns[-1] - int(END_S * 1e9)]
    closing = float(recent[0] - recent[-1])
    if _holds(arm) and (closing > CLOSING_M or bool(arm.busy[-1])):
        at = track.seconds(arm.stamps_ns[-1])
        text = (
            f"the episode ends at {at:.1f} s while the gripper closes ({1000 * arm.width[-1]:.0f} mm, asked for "
            f"{1000 * arm.asked[-1]:.0f} mm), so the grasp is cut off; valid is an end after the grasp"
        )
        yield error("grasp", text, at)


def _empty(track: EpisodeTrack, arm: ArmTrack, smallest: float) -> Iterator[Fault]:
    shut = (arm.width <= smallest + EMPTY_M) & ~arm.busy & (arm.asked <= smallest + EMPTY_M)
    opened = np.flatnonzero(arm.width > smallest + 5 * EMPTY_M)
    # Only a gripper that was open has closed.
    found = np.flatnonzero(shut & (np.arange(len(shut)) > (opened[0] if len(opened) else len(shut))))
    if len(found):
        at = track.seconds(arm.stamps_ns[found[0]])
        text = f"the gripper is shut at {at:.1f} s ({1000 * arm.width[found[0]]:.1f} mm), so it closed on nothing"
        yield warning("grasp", f"{text}; valid is an object between the fingers", at)
