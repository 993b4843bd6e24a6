"""Several arms that one policy sees and commands: joins their tasks into one, and splits what is joint by arm.

A name of the joint task is that of the arm, a slash, and the name in the arm's own task: ``left/tool_position``. Each
pose stays in the base frame of its own arm.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from bid_ros.core.errors import BidError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation, ObservationBuffer
from bid_ros.core.paths import share
from bid_ros.core.rotation import Array
from bid_ros.core.settings import Vector3, settings
from bid_ros.core.task import Task

SHARED: Final = ("rate_hz", "observation_steps", "horizon")
FILE: Final = "arms.yaml"  # of a folder that joins the systems of several arms
ARM_NAME: Final = r"[A-Za-z][A-Za-z0-9_]*"
SUCCESS: Final = "success"
SEEDS_APART: Final = 1_000_000


def arms_folder(named: str | Path) -> Path | None:
    """Return the folder of a system of several arms, or the shipped one of a name; None if there is none."""
    own, shipped = Path(named), share("config") / named
    if own.is_dir():
        return own if (own / FILE).is_file() else None
    return shipped if (shipped / FILE).is_file() else None


def check_one_arm(named: str | Path) -> None:
    """Raise BidError if a folder, or a name, is that of a system of several arms."""
    if arms_folder(named) is not None:
        raise BidError(
            f"{named} joins several arms, which only bid up and bid rehearse take; valid here is the system of one arm"
        )


@settings(error=TaskError)
class ArmPlace:
    """Where the base of an arm stands, in a frame that all arms share.

    Attributes:
        base: position of the base, m.
        yaw: angle of the base about z, rad.
    """

    base: Vector3
    yaw: Annotated[float, Field(ge=-6.3, le=6.3)] = 0.0

    def box(self, task: Task) -> tuple[Array, Array]:
        """Return the corners ``(3,)`` m of a box around all that moves with the tool inside the task's workspace."""
        low, high = np.array(task.limits.workspace_min), np.array(task.limits.workspace_max)
        corners = np.array(np.meshgrid(*np.stack((low, high)).T)).reshape(3, -1)
        cos, sin = np.cos(self.yaw), np.sin(self.yaw)
        turned = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]]) @ corners + np.array(self.base)[:, None]
        ends = ((part.radius, end) for part in task.tool_shape for end in (part.begin, part.end or part.begin))
        reach = max((radius + float(np.linalg.norm(end)) for radius, end in ends), default=0.0)
        return turned.min(axis=1) - reach, turned.max(axis=1) + reach


def check_apart(places: Mapping[str, ArmPlace], tasks: Mapping[str, Task]) -> None:
    """Raise TaskError if the workspaces of two arms overlap, what moves with the tools included."""
    boxes = {arm: place.box(tasks[arm]) for arm, place in places.items()}
    for (one, (low, high)), (other, (low2, high2)) in combinations(boxes.items(), 2):
        common = float((np.minimum(high, high2) - np.maximum(low, low2)).min())
        if common > 0:
            raise TaskError(
                f"the workspaces of the arms '{one}' and '{other}' overlap by {common:.3f} m, with all that moves "
                "with the tools; valid are bases further apart or smaller workspaces, because nothing else keeps the "
                "arms from colliding"
            )


def joint_task(name: str, tasks: Mapping[str, Task]) -> Task:
    """Return the task of a policy that sees and commands every arm. Its limits judge nothing: each arm's own do.

    Raises:
        TaskError: there are fewer than two arms, a name is not valid, or their tasks differ in rate, observation steps
            or horizon.
    """
    if len(tasks) < 2 or not all(re.fullmatch(ARM_NAME, arm) for arm in tasks):
        raise TaskError(f"arms are {', '.join(tasks) or 'none'}; valid are two or more, named by letters, digits and _")
    first, *others = tasks.values()
    for field in SHARED:
        if any(getattr(task, field) != getattr(first, field) for task in others):
            found = ", ".join(f"{getattr(task, field):g} of '{arm}'" for arm, task in tasks.items())
            raise TaskError(f"{field} is {found}; valid is the same value for all arms, as one policy decides for them")
    limits = [task.limits for task in tasks.values()]
    least, most = min(item.gripper_min for item in limits), max(item.gripper_max for item in limits)

    def joined(group: str) -> tuple[Feature, ...]:
        return tuple(
            replace(item, name=f"{arm}/{item.name}", frame=first.base_frame if group == "action" else item.frame)
            for arm, task in tasks.items()
            for item in getattr(task, group)
        )

    return Task(
        name=name,
        robot="+".join(task.robot for task in tasks.values()),
        rate_hz=first.rate_hz,
        observation_steps=first.observation_steps,
        horizon=first.horizon,
        observation=joined("observation"),
        action=joined("action"),
        limits=replace(first.limits, gripper_min=least, gripper_max=most, keep_out=(), min_self_distance=None),
        base_frame=first.base_frame,
        episode_timeout=max(task.episode_timeout for task in tasks.values()),
    )


class Arms:
    """The arms of a joint task: which part of it is whose.

    Args:
        name: of the joint task.
        tasks: of each arm, by its name.

    Attributes:
        tasks: as given, in order.
        task: the joint one.
        columns: of each arm in an action of the joint task.

    Raises:
        TaskError: as :func:`joint_task`.
    """

    def __init__(self, name: str, tasks: Mapping[str, Task]) -> None:
        self.tasks, self.task = dict(tasks), joint_task(name, tasks)
        ends = np.cumsum([task.action_dim for task in tasks.values()]).tolist()
        self.columns = {
            arm: slice(end - task.action_dim, end) for (arm, task), end in zip(tasks.items(), ends, strict=True)
        }

    def part(self, arm: str, observation: Observation) -> Observation:
        """Return what an arm's own task observes of an observation of the joint one."""
        names = {f"{arm}/{item.name}": item.name for item in self.tasks[arm].observation}
        values = {own: observation.values[name] for name, own in names.items() if name in observation.values}
        stamps = {own: observation.samples_ns[name] for name, own in names.items() if name in observation.samples_ns}
        return Observation(observation.stamp_ns, values, stamps)

    def whole(self, parts: Mapping[str, Observation]) -> Observation:
        """Return the observation of the joint task from those of the arms, all at one stamp."""
        stamp_ns = min(part.stamp_ns for part in parts.values())
        values = {f"{arm}/{name}": value for arm, part in parts.items() for name, value in part.values.items()}
        stamps = {f"{arm}/{name}": found for arm, part in parts.items() for name, found in part.samples_ns.items()}
        return Observation(stamp_ns, values, stamps)


class ArmsBuffer(ObservationBuffer):
    """The history of a joint task. The cameras of two arms share no stamp, only the grid that their frames are on.

    So a set of frames is complete when the newest ones of all cameras lie within half a period. Until then the set
    before it stays the newest: frames of two instants would make an observation that is old at once.
    """

    _complete_ns: int | None = None

    def stamp_ns(self) -> int | None:
        """Stamp of the newest complete set of frames: that of its oldest frame."""
        leading = self._task.cameras or self._task.vectors
        newest = [stamp for item in leading if (stamp := self.newest_ns(item.name)) is not None]
        if len(newest) == len(leading) and max(newest) - min(newest) <= self._task.dt_ns // 2:
            self._complete_ns = min(newest)
        return self._complete_ns


def joint_outcome(outcomes: Mapping[str, str]) -> str:
    """Return how an episode ended from how it did for each arm: a success is one of all arms."""
    failed = [f"{arm}: {outcome}" for arm, outcome in outcomes.items() if outcome != SUCCESS]
    return ", ".join(failed) or SUCCESS


def scene_seed(seed: int, arm: int) -> int:
    """Return the seed of the scene of an arm, counted from 0: each has its own."""
    return (seed + arm * SEEDS_APART) % 2**31
