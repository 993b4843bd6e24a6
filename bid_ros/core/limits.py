"""The limits of a task."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from bid_ros.core.errors import TaskError
from bid_ros.core.settings import Positive, Vector3, settings
from bid_ros.core.shapes import KeepOut, check_names

Opening = Annotated[float, Field(ge=0, le=0.2)]
Response = Literal["warn", "scale", "stop"]
Unslowed = Literal["warn", "stop"]
_MOST: Final[Mapping[str, Mapping[str, float]]] = {
    "m": {"max_jump": 1.0, "max_chunk_step": 1.0},
    "m/s": {"max_speed": 3.0},
    "m/s^2": {"max_acceleration": 100.0},
    "m/s^3": {"max_jerk": 10_000.0},
    "rad": dict.fromkeys(("max_tilt", "max_joint_jump", "max_turn_jump", "max_chunk_turn"), 3.2),
    "rad/s": dict.fromkeys(("max_turn_rate", "max_joint_speed"), 10.0),
    "rad/s^2": dict.fromkeys(("max_turn_acceleration", "max_joint_acceleration"), 100.0),
    "s": {"max_chunk_age": 10.0, "max_chunk_lead": 5.0},
}
PLAUSIBLE: Final = {name: (most, unit) for unit, found in _MOST.items() for name, most in found.items()}
"""Largest value and unit of a limit of an arm. Above it no arm is held up: the value has another unit."""
FARTHEST: Final = 5.0  # m of a corner of an arm's workspace from its base


@settings(error=TaskError)
class AboveLimits:
    """What safety does with a chunk above a limit of motion: ``warn`` and forward it, ``scale``: slow it, or ``stop``.

    Every other limit stops. The servo keeps speeds and accelerations of the tool and of joints in any case.

    Attributes:
        speed, acceleration, jerk, turn_rate, turn_acceleration: of the tool.
        joint_speed, joint_acceleration: of the joints, commanded or predicted from poses.
        gripper_rate: of the gripper, ``warn`` or ``stop``. A slower motion keeps the steps of its width.
        least_scale: smallest factor of the speed to which a chunk is slowed. A chunk that needs less stops the arm.
    """

    speed: Response = "scale"
    acceleration: Response = "scale"
    jerk: Response = "scale"
    turn_rate: Response = "scale"
    turn_acceleration: Response = "scale"
    joint_speed: Response = "scale"
    joint_acceleration: Response = "scale"
    gripper_rate: Unslowed = "stop"
    least_scale: Annotated[float, Field(ge=0.25, lt=1)] = 0.3


@settings(error=TaskError)
class Limits:
    """The limits of a task. They are always on. Every chunk is checked against all of them.

    Attributes:
        workspace_min, workspace_max: corners of the box in which the tool may move, m, in the task's frame.
        max_speed: largest speed of the tool, m/s.
        max_acceleration: largest acceleration of the tool, m/s^2.
        max_jerk: largest jerk of the tool, m/s^3.
        max_turn_rate: largest turn rate of the tool, rad/s.
        max_turn_acceleration: largest turn acceleration of the tool, rad/s^2.
        max_tilt: largest angle between the tool's approach axis and straight down, rad.
        max_joint_speed: largest speed of a joint, rad/s, where a task commands joints. The robot's own limits hold too.
        max_joint_acceleration: largest acceleration of a joint, rad/s^2, likewise.
        min_singular_value: lower limit of the Jacobian's smallest singular value, m and rad alike, where a task
            commands poses and the robot's joints are known. At 0 the arm cannot move its tool in some direction.
        max_joint_jump: largest distance between a measured joint and the action for now, rad, where a task commands
            joints.
        gripper_min, gripper_max: smallest and largest opening of the gripper, m.
        max_gripper_rate: largest speed of the commanded opening, m/s, over 0.1 s: a gripper that is commanded in steps
            follows them at its own speed.
        max_jump: largest distance between the measured tool and the action for now, m.
        max_turn_jump: largest angle between the measured tool and the action for now, rad.
        max_chunk_step: largest distance, at now, between the position that a chunk commands and the one that the chunk
            before from the same source commands, m. The chunk before counts as it was forwarded, slowed down or not.
        max_chunk_turn: largest angle between the two rotations, rad.
        max_chunk_age: s by which a chunk's stamp may lie in the past when it arrives.
        max_chunk_lead: s by which a chunk's stamp may lie in the future when it arrives.
        keep_out: places where nothing of the tool may be: the table, boxes. The task's ``tool_shape`` says what moves
            with the tool.
        min_self_distance: least distance between two parts of the arm and of ``tool_shape`` that are no neighbours, m.
            None: they are not compared.
        above: what safety does with a chunk above a limit of motion.
    """

    workspace_min: Vector3
    workspace_max: Vector3
    max_speed: Positive = 0.5
    max_acceleration: Positive = 3.0
    max_jerk: Positive = 200.0
    max_turn_rate: Positive = 1.5
    max_turn_acceleration: Positive = 10.0
    max_tilt: Positive = 0.6
    max_joint_speed: Positive = 1.5
    max_joint_acceleration: Positive = 8.0
    max_joint_jump: Positive = 0.3
    min_singular_value: Annotated[float, Field(ge=0, le=0.5)] = 0.03
    gripper_min: Opening = 0.0
    gripper_max: Opening = 0.08
    max_gripper_rate: Positive = 1.0
    max_jump: Positive = 0.15
    max_turn_jump: Positive = 0.5
    max_chunk_step: Positive = 0.15
    max_chunk_turn: Positive = 0.5
    max_chunk_age: Positive = 0.5
    max_chunk_lead: Positive = 0.2
    keep_out: tuple[KeepOut, ...] = ()
    min_self_distance: Annotated[float, Field(ge=0, le=0.1)] | None = None
    above: AboveLimits = AboveLimits()

    def __post_init__(self) -> None:
        for low, high, axis in zip(self.workspace_min, self.workspace_max, "xyz", strict=True):
            if not low < high:
                raise TaskError(f"limits: workspace {axis} runs from {low} to {high}; valid is min < max")
        if not self.gripper_min < self.gripper_max:
            raise TaskError(f"limits: gripper {self.gripper_min} to {self.gripper_max} m; valid is min < max")
        check_names("limits: keep_out", [place.name for place in self.keep_out])


def check_units(limits: Limits) -> None:
    """Hold the limits of an arm against what arms can do.

    Raises:
        TaskError: a limit is so large that it would hold nothing up, as one in mm/s or degrees is.
    """
    for name, (most, unit) in PLAUSIBLE.items():
        if (value := getattr(limits, name)) > most:
            raise TaskError(f"limits: {name} is {value:g} {unit}; valid is up to {most:g} {unit}: is its unit another?")
    for name in ("workspace_min", "workspace_max"):
        corner = getattr(limits, name)
        if max(map(abs, corner)) > FARTHEST:
            raise TaskError(f"limits: {name} is {list(corner)} m; valid is within {FARTHEST:g} m of the base")
