"""Turns the commands of a person into chunks inside the limits, which end at rest if no new command comes."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.core.rotation import Array, matrix_from_6d, matrix_from_vector, matrix_to_6d, vector_from_matrix
from bid_ros.core.task import Task
from bid_ros.safety.geometry import GeometryEnvelope
from bid_ros.teleop.base import Command, Offset, Steering

HOLD_S: Final = 0.15  # for which a chunk goes on as it was told, before it brakes
MARGIN_M: Final = 0.01  # from the walls of the workspace
TILT_MARGIN: Final = 0.05  # rad from the largest tilt
SHARE: Final = 0.6  # of the task's limits, which the safety node judges by finite differences
LARGEST: Final = np.array([2.0] * 3 + [6.0] * 3)  # m/s^2 and rad/s^2, however large the limits are
JERK: Final = np.array([40.0] * 3 + [150.0] * 3)  # m/s^3 and rad/s^3
SLOWEST: Final = 1e-4  # of a position target; the library refuses 0
STILL: Final = 1e-3  # m/s or rad/s, below which an axis counts as let go


class Drive:
    """The commanded motion of the tool, as one person steers it. One thread uses it.

    Each axis is planned by Ruckig (Berscheid and Kroeger, "Jerk-limited real-time trajectory generation with arbitrary
    target states", RSS 2021): to the commanded speed, or to the wall of the workspace if that comes first. A chunk goes
    on for ``HOLD_S`` and then brakes. So the arm comes to rest by itself if the next chunk does not come.

    It also brakes before a place that is kept out, until a command leads elsewhere.

    Args:
        task: its workspace and limits hold.

    Raises:
        BidError: the extra ``teleop`` is not installed, or the task commands no position.
    """

    def __init__(self, task: Task) -> None:
        with extra("teleop", "teleoperation by a person"):
            import ruckig
        if task.columns("position") is None:
            raise BidError(f"task '{task.name}' commands no position of the tool, so a person cannot drive it")
        self._task, self._library = task, ruckig
        self._generator = ruckig.Ruckig(6)
        limits, self._frame = task.limits, task.base_frame
        self._low = np.array(limits.workspace_min) + MARGIN_M
        self._high = np.array(limits.workspace_max) - MARGIN_M
        self._max_tilt = limits.max_tilt - TILT_MARGIN
        self._narrow, self._wide = limits.gripper_min, limits.gripper_max
        self._fastest = SHARE * limits.max_speed, SHARE * limits.max_turn_rate
        given = np.array([limits.max_acceleration] * 3 + [limits.max_turn_acceleration] * 3)
        # Three axes at their limits at once are the root of three times as fast as one.
        self._acceleration = np.minimum(LARGEST, SHARE * given / np.sqrt(3.0))
        self._jerk = np.minimum(JERK, [SHARE * limits.max_jerk / np.sqrt(3.0)] * 3 + [np.inf] * 3)
        self._sequence, self._geometry = 0, GeometryEnvelope(task)
        self.hold(np.zeros(3), matrix_to_6d(np.eye(3)), 0.0, 0)

    def hold(self, position: Array, rotation_6d: Array, width: float, now_ns: int) -> None:
        """Be at rest at a pose: ``(3,)`` m and ``(6,)``, base frame, with the gripper's width in m, at ROS time."""
        self._state = np.concatenate([position, np.zeros(3)]), np.zeros(6), np.zeros(6)
        self._rotation, self._width, self._begun_ns = matrix_from_6d(rotation_6d), width, now_ns
        self._plan: list[tuple[float, Any]] = []
        self._anchor: tuple[int, Array, Array] | None = None

    def chunk(self, command: Command, steering: Steering, now_ns: int, steps: int, dt_ns: int) -> ActionChunk:
        """Take a command and return what the tool does from ``now_ns`` on: ``steps`` actions, ``dt_ns`` apart."""
        self._advance(now_ns)
        self._width = self._width_after(command)
        self._replan(command, steering)
        times = [step * dt_ns / NANOSECONDS for step in range(steps)]
        actions = self._actions(times)
        if self._tilts_too_far(actions):
            # Turns about the tool's own axis tilt nothing.
            self._replan(command, steering, upright=True)
            actions = self._actions(times)
        if self._enters_a_place(actions):
            self._replan(Command(), steering)
            actions = self._actions(times)
        chunk = ActionChunk(now_ns, dt_ns, actions, self._frame, "teleop", self._sequence)
        self._sequence += 1
        return chunk

    def _width_after(self, command: Command) -> float:
        """Return the gripper's width in m that a command asks for."""
        share = command.gripper
        if command.toggle:
            share = float(self._width < (self._narrow + self._wide) / 2)
        if share is None:
            return self._width
        return self._narrow + min(max(share, 0.0), 1.0) * (self._wide - self._narrow)

    def _advance(self, now_ns: int) -> None:
        """Move the state along its plan to now."""
        place, speed, acceleration = self._at(max(0, now_ns - self._begun_ns) / NANOSECONDS)
        if now_ns < self._begun_ns:  # the clock was set back: nobody knows what the arm did meanwhile
            speed, acceleration = np.zeros(6), np.zeros(6)
        self._rotation = matrix_from_vector(place[3:]) @ self._rotation
        place[3:] = 0.0  # turns count from the rotation above
        self._state, self._begun_ns = (place, speed, acceleration), now_ns

    def _at(self, time_s: float) -> tuple[Array, Array, Array]:
        """Return place, speed and acceleration, each ``(6,)``, so many s after the plan began."""
        begun = [(begin, plan) for begin, plan in self._plan if begin <= time_s]
        if not begun:
            return self._state[0].copy(), self._state[1], self._state[2]
        begin, plan = begun[-1]
        place, speed, acceleration = plan.at_time(time_s - begin)
        return np.array(place), np.array(speed), np.array(acceleration)

    def _replan(self, command: Command, steering: Steering, upright: bool = False) -> None:
        if command.live and command.offset is not None:
            target = self._target(command.offset, steering)
            self._plan = [(0.0, self._to_target(target, steering, upright))]
            # A far target is still ahead when the commands cease.
            self._plan.append((HOLD_S, self._at_speed(self._at(HOLD_S), np.zeros(6))))
            return
        self._anchor = None
        wanted = self._wanted(command, steering, upright) if command.live else np.zeros(6)
        self._plan = [(0.0, self._at_speed(self._state, wanted))]
        if wanted.any():
            self._plan.append((HOLD_S, self._at_speed(self._at(HOLD_S), np.zeros(6))))

    def _wanted(self, command: Command, steering: Steering, upright: bool) -> Array:
        """Return the speeds ``(6,)`` that are asked for, in base axes: m/s and rad/s."""
        share = np.clip(command.twist, -1.0, 1.0)
        if command.axes is not None:  # of the person; what is locked are axes of the steering
            turned = command.axes if steering.frame == "base" else self._rotation.T @ command.axes
            share = np.concatenate([turned @ share[:3], turned @ share[3:]])
        share = share * steering.free
        linear, angular = self._speeds(steering)
        speeds = np.concatenate([_shortened(share[:3]) * linear, _shortened(share[3:]) * angular])
        if steering.frame == "tool":
            speeds = np.concatenate([self._rotation @ speeds[:3], self._rotation @ speeds[3:]])
        return np.concatenate([speeds[:3], self._upright(speeds[3:])]) if upright else speeds

    def _speeds(self, steering: Steering) -> tuple[float, float]:
        """Return the largest speeds, m/s and rad/s: those of the steering inside the task's limits."""
        return min(steering.linear_speed, self._fastest[0]), min(steering.angular_speed, self._fastest[1])

    def _target(self, offset: Offset, steering: Steering) -> Array:
        """Return where a device that is moved in space wants the tool: ``(6,)``, turns from the present rotation."""
        if self._anchor is None or self._anchor[0] != offset.closing:
            self._anchor = (offset.closing, self._state[0][:3].copy(), self._rotation)
        _, position, rotation = self._anchor
        moved = offset.position * steering.scale * steering.free[:3]
        turn = vector_from_matrix(offset.rotation) * steering.free[3:]
        turned = matrix_from_vector(turn) @ rotation
        place = np.clip(position + moved, self._low, self._high)
        return np.concatenate([place, vector_from_matrix(turned @ self._rotation.T)])

    def _to_target(self, target: Array, steering: Steering, upright: bool) -> Any:
        """Plan to a place ``(6,)`` at which every axis rests."""
        if upright:
            target = np.concatenate([target[:3], self._upright(target[3:])])
        linear, angular = self._speeds(steering)
        fastest = np.array([linear] * 3 + [angular] * 3) / np.sqrt(3.0)
        return self._plan_for(self._state, np.ones(6, dtype=bool), target, fastest)

    def _at_speed(self, state: tuple[Array, Array, Array], wanted: Array) -> Any:
        """Plan to a speed ``(6,)``, and to rest at the wall of the workspace."""
        moving = np.abs(wanted) > STILL
        to_wall = np.append(moving[:3], [False] * 3)
        walls = np.concatenate([np.where(wanted[:3] > 0, self._high, self._low), np.zeros(3)])
        target = np.where(to_wall, walls, np.where(moving, wanted, 0.0))
        # Beyond a wall only the way back is open.
        beyond = to_wall & (np.sign(walls - state[0]) != np.sign(wanted))
        to_wall, target = to_wall & ~beyond, np.where(beyond, 0.0, target)
        return self._plan_for(state, to_wall, target, np.where(to_wall, np.abs(wanted), self._fastest[0]))

    def _plan_for(self, state: tuple[Array, Array, Array], to_place: Array, target: Array, fastest: Array) -> Any:
        """Plan each axis: to the place ``target``, at most ``fastest``, or to the speed ``target``."""
        library = self._library
        problem = library.InputParameter(6)
        problem.synchronization = library.Synchronization.No
        place, speed = library.ControlInterface.Position, library.ControlInterface.Velocity
        problem.per_dof_control_interface = [place if axis else speed for axis in to_place]
        problem.current_position, problem.current_velocity, problem.current_acceleration = (list(s) for s in state)
        problem.target_position = np.where(to_place, target, state[0]).tolist()
        problem.target_velocity = np.where(to_place, 0.0, target).tolist()
        problem.target_acceleration = [0.0] * 6
        problem.max_velocity = np.maximum(fastest, SLOWEST).tolist()
        problem.max_acceleration, problem.max_jerk = self._acceleration.tolist(), self._jerk.tolist()
        trajectory = library.Trajectory(6)
        result = self._generator.calculate(problem, trajectory)
        if result not in (library.Result.Working, library.Result.Finished):
            raise BidError(f"no motion could be planned ({result}): the arm is given back")
        return trajectory

    def _actions(self, times: Sequence[float]) -> Array:
        """Return actions ``(n, D)`` at ``times`` in s after now, in the order of the task."""
        places = np.array([self._at(time)[0] for time in times])
        turned = np.array([matrix_to_6d(matrix_from_vector(place[3:]) @ self._rotation) for place in places])
        values: dict[str, Array] = {
            "position": places[:, :3],
            "rotation_6d": turned,
            "gripper": np.full((len(times), 1), self._width),
        }
        actions = np.zeros((len(times), self._task.action_dim))
        for feature, columns in self._task.action_columns:
            if feature.kind in values:
                actions[:, columns] = values[feature.kind]
        return actions

    def _tilts_too_far(self, actions: Array) -> bool:
        """Whether the tool would leave the cone around straight down, and not by where it is now."""
        columns = self._task.columns("rotation_6d")
        if columns is None:
            return False
        upward = matrix_from_6d(actions[:, columns])[:, 2, 2]
        return bool(upward.max() > max(-np.cos(self._max_tilt), upward[0] + 1e-9))

    def _enters_a_place(self, actions: Array) -> bool:
        """Whether something of the tool would come into a place that is kept out."""
        rows, position, six = actions[None], self._task.columns("position"), self._task.columns("rotation_6d")
        turned = None if six is None else matrix_from_6d(rows[..., six])
        return not all(bound.kept[0] for bound in self._geometry.bounds(rows[..., position], turned, rows))

    def _upright(self, turn: Array) -> Array:
        """Return the part of a turn ``(3,)`` that does not tilt the tool."""
        axis = self._rotation[:, 2]
        kept: Array = axis * float(axis @ turn)
        return kept


def _shortened(vector: Array) -> Array:
    """Return a vector of length 1 at most: a diagonal is not faster than an axis."""
    return vector / max(1.0, float(np.linalg.norm(vector)))
