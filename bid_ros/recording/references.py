"""The commanded set-points at any time: the actions of demonstrations."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from bid_ros.core.errors import RecordingError
from bid_ros.core.poses import pose_numbers
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, JOINT_REFERENCE
from bid_ros.observing.features import joint_order

PERSON: Final = "teleop"  # source of the chunks of teleoperation
TOLERANCE_NS: Final = 80_000_000  # largest distance of a time to the messages before and after it
KINDS: Final = ("position", "rotation_6d", "gripper", "joints")


class References:
    """The set-points that the arm node streamed, from ``bid_msgs/ArmStatus``, interpolated between its messages.

    Those of the joints, of a task that commands these, come from ``sensor_msgs/JointState`` on ``arm/joint_reference``.
    Positions and joints are interpolated linearly, rotations along the shortest turn. The gripper width is the last
    request: it jumps, so a value between two requests was never commanded.

    Args:
        task: its action features define the columns. Positions and rotations are in ``task.base_frame``.

    Raises:
        RecordingError: an ArmStatus does not contain an action feature of the task.
    """

    def __init__(self, task: Task) -> None:
        check_recorded(task)
        self._task = task
        self._stamps: list[int] = []
        self._has_gripper = task.columns("gripper") is not None
        self._values: list[list[float]] = []
        self._person: list[bool] = []
        self._joint_stamps: list[int] = []
        self._joints: list[list[float]] = []

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics whose messages are needed."""
        return (ARM_STATUS,) if self._task.columns("joints") is None else (ARM_STATUS, JOINT_REFERENCE)

    def take(self, topic: str, message: Any) -> None:
        """Append a message of one of :attr:`topics`; any other is ignored."""
        if topic == ARM_STATUS:
            self.add(message)
        elif topic == JOINT_REFERENCE:
            self.add_joints(message)

    def add_joints(self, message: Any) -> None:
        """Append a JointState of commanded joints. It is ignored if it is older than the last one, or does not fit."""
        columns = self._task.columns("joints")
        values = np.asarray(message.position, dtype=np.float64)
        feature = next((item for item in self._task.action if item.kind == "joints"), None)
        # Those of bid_ros come in the order of the arm, whatever its joints are called.
        if feature and (order := joint_order(feature.names, message, f"action '{feature.name}'")) is not None:
            values = values[order]
        stamp = stamp_ns(message)
        fits = columns is not None and len(values) == columns.stop - columns.start and np.isfinite(values).all()
        if fits and (not self._joint_stamps or stamp > self._joint_stamps[-1]):
            self._joint_stamps.append(stamp)
            self._joints.append(values.tolist())

    def add(self, message: Any) -> None:
        """Append a message. It is ignored if it is older than the last one or has no finite reference."""
        gripper = message.reference_gripper if self._has_gripper else 0.0  # without one nobody asks for an opening
        values = [*pose_numbers(message.reference), gripper]
        stamp = stamp_ns(message)
        # Before the arm is in control there is no reference, and its quaternion is zero.
        usable = np.isfinite(values).all() and np.linalg.norm(values[3:7]) > 0.5
        if (
            usable
            and message.header.frame_id == self._task.base_frame
            and (not self._stamps or stamp > self._stamps[-1])
        ):
            self._stamps.append(stamp)
            self._values.append(values)
            self._person.append(message.source == PERSON)

    def by_person(self, stamps_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether teleoperation moved the arm at ``stamps_ns`` ``(T,)``, not a policy."""
        if not self._stamps:
            return np.zeros(len(stamps_ns), dtype=np.bool_)
        newest = np.searchsorted(np.array(self._stamps, dtype=np.int64), stamps_ns, side="right") - 1
        found: NDArray[np.bool_] = np.array(self._person)[np.maximum(newest, 0)] & (newest >= 0)
        return found

    def at(self, stamps_ns: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the actions ``(T, D)`` at ``stamps_ns`` ``(T,)`` and whether each is known ``(T,)``.

        Unknown rows (no message close enough before and after) are zero.
        """
        actions = np.zeros((len(stamps_ns), self._task.action_dim))
        known = np.zeros(len(stamps_ns), dtype=np.bool_)
        times = np.array(self._stamps, dtype=np.int64)
        if len(times) < 2:
            return actions, known
        right, known = self._between(times, stamps_ns)
        joints, joints_known = self._joints_at(stamps_ns)
        known &= joints_known
        if not known.any():
            return actions, known
        stamps, right, values = stamps_ns[known], right[known], np.array(self._values)

        # Times relative to the first keep nanoseconds exact in float64.
        seconds, wanted = (times - times[0]) * 1e-9, (stamps - times[0]) * 1e-9
        parts = {
            "position": np.stack([np.interp(wanted, seconds, values[:, axis]) for axis in range(3)], axis=-1),
            "rotation_6d": matrix_to_6d(Slerp(seconds, Rotation.from_quat(values[:, 3:7]))(wanted).as_matrix()),
            "joints": joints[known],
            "gripper": values[np.where(times[right] <= stamps, right, right - 1), 7:8],
        }
        actions[known] = np.concatenate([parts[feature.kind] for feature in self._task.action], axis=-1)
        return actions, known

    def _between(
        self, times: NDArray[np.int64], stamps_ns: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the message after each stamp, and whether both it and the one before are near enough."""
        right = np.clip(np.searchsorted(times, stamps_ns), 1, len(times) - 1)
        before, after = stamps_ns - times[right - 1], times[right] - stamps_ns
        return right, (before >= 0) & (after >= 0) & (np.maximum(before, after) <= TOLERANCE_NS)

    def _joints_at(self, stamps_ns: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the commanded joints ``(T, joints)`` and whether each row is known; none are needed without joints."""
        columns = self._task.columns("joints")
        if columns is None:
            return np.zeros((len(stamps_ns), 0)), np.ones(len(stamps_ns), dtype=np.bool_)
        times = np.array(self._joint_stamps, dtype=np.int64)
        if len(times) < 2:
            return np.zeros((len(stamps_ns), columns.stop - columns.start)), np.zeros(len(stamps_ns), dtype=np.bool_)
        _, known = self._between(times, stamps_ns)
        seconds, wanted = (times - times[0]) * 1e-9, (stamps_ns - times[0]) * 1e-9
        return np.stack([np.interp(wanted, seconds, column) for column in np.array(self._joints).T], axis=-1), known


def check_recorded(task: Task) -> None:
    """Raise RecordingError unless every action feature of the task is among what is recorded."""
    for feature in task.action:
        if feature.kind not in KINDS:
            raise RecordingError(
                f"action '{feature.name}' of kind '{feature.kind}' is not recorded; valid are {', '.join(KINDS)}"
            )
