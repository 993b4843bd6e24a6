"""The commands of ur_rtde's control script: command number -> what it does with the registers.

Numbers, arguments and results are those of the script that ur_rtde 1.6.5 uploads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import JOINT_LIMIT
from bid_ros.robots.ur.pose import pose_trans
from bid_ros.robots.ur.twin.joint_motions import RunningMotion, ServoJ, SpeedJ, StopJ
from bid_ros.robots.ur.twin.moves import MoveJ, MoveL, SpeedL, StopL
from bid_ros.robots.ur.twin.program import JOG, MOVE, SERVO, SPEED, STOP, Command, ControlProgram, ProtectiveStop
from bid_ros.robots.ur.twin.script_port import Waypoint

FORCE: Final = "force"  # of a thread that the twin never runs
JOG_STOP_DECELERATION: Final = 1.2  # m/s^2, as in the script
FORCE_STOP_DECELERATION: Final = 10.0
BASE_FEATURE, TOOL_FEATURE = 0, 1


# Motions. The last command that streams is kept until its thread ends.


def _servo(is_pose: bool, program: ControlProgram) -> None:
    """Follow joint angles or tool poses; the inverse kinematics starts from where the arm is."""
    target, (lookahead, gain) = program.doubles_in(0, 6), program.doubles_in(9, 2)
    joints = program.robot.inverse(target) if is_pose else target
    program.stream(SERVO, ServoJ(joints, lookahead, gain))


def _speed(linear: bool, program: ControlProgram) -> None:
    """Keep speeds of the joints, or a tool velocity in the base frame."""
    # The script's thread repeats its command, so the time of a single one does not end anything.
    speed, (acceleration,) = program.doubles_in(0, 6), program.doubles_in(6, 1)
    program.stream(SPEED, SpeedL(speed, acceleration, program.robot.tool) if linear else SpeedJ(speed, acceleration))
    program.speeds_are_linear = linear


def _jog(program: ControlProgram) -> None:
    """Keep a tool velocity given in the base frame, the tool's or a custom one."""
    speed, (feature, acceleration) = program.doubles_in(0, 6), program.doubles_in(6, 2)
    if feature != BASE_FEATURE:
        frame = program.robot.pose() if feature == TOOL_FEATURE else np.array(program.doubles_in(8, 6))
        frame[:3] = 0.0
        linear = pose_trans(frame, [*speed[:3], 0.0, 0.0, 0.0])[:3]
        angular = pose_trans(frame, [*speed[3:], 0.0, 0.0, 0.0])[:3]
        speed = (*linear.tolist(), *angular.tolist())
    program.stream(JOG, SpeedL(speed, acceleration, program.robot.tool))


def _move(linear: bool, is_pose: bool, program: ControlProgram) -> None:
    """Go to a pose or to joint angles, straight in space or in joint angles."""
    speed, acceleration = program.doubles_in(6, 2)
    waypoint = Waypoint(linear, is_pose, program.doubles_in(0, 6), acceleration, speed)
    program.kill(MOVE)
    program.begin(MOVE, iter([_motion_to(program, waypoint)]), asynchronous=program.int_in(1) == 1)


def _move_path(program: ControlProgram) -> None:
    """Go along the path that was uploaded with the script."""
    program.kill(MOVE)
    program.begin(MOVE, _along(program), asynchronous=program.int_in(1) == 1)


def _along(program: ControlProgram) -> Iterator[RunningMotion]:
    for number, waypoint in enumerate(program.script.path):
        program.report(number)
        yield _motion_to(program, waypoint)


def _motion_to(program: ControlProgram, waypoint: Waypoint) -> RunningMotion:
    robot, target = program.robot, waypoint.target
    if waypoint.linear:
        pose = target if waypoint.is_pose else robot.tool.forward(target)
        robot.waypoint = tuple(map(float, pose))
        return MoveL(pose, waypoint.speed, waypoint.acceleration, robot.tool)
    joints = program.robot.inverse(target) if waypoint.is_pose else target
    robot.waypoint = tuple(map(float, robot.tool.forward(joints)))
    return MoveJ(joints, waypoint.speed, waypoint.acceleration)


def _stop(program: ControlProgram) -> None:
    """Bring the arm to rest, waited for or on its own."""
    deceleration, asynchronous = program.doubles_in(0, 1)[0], program.int_in(1) == 1
    if not program.kill(STOP):
        program.kill(MOVE)
    if asynchronous:
        program.stop_is_linear = True
    # The script does not tell stopJ from stopL: both stop the joints until the first asynchronous stop, and the tool
    # from then on.
    _rest(program, deceleration, program.stop_is_linear, asynchronous)


def _end(name: str, deceleration: float | None, program: ControlProgram) -> None:
    """End a thread and bring the tool to rest, or the joints if it moved these; ``deceleration`` None: as asked."""
    program.kill(name)
    wanted = program.doubles_in(0, 1)[0] if deceleration is None else deceleration
    _rest(program, wanted, name != SPEED or program.speeds_are_linear, asynchronous=False)


def _rest(program: ControlProgram, deceleration: float, linear: bool, asynchronous: bool) -> None:
    motion = StopL(deceleration, program.robot.tool) if linear else StopJ(deceleration)
    program.begin(STOP, iter([motion]), asynchronous=asynchronous)


# Settings and answers.


def _set_payload(program: ControlProgram) -> None:
    mass, *centre = program.doubles_in(0, 4)
    program.robot.payload = mass
    if any(centre):  # all zero means: keep the one that is set
        program.robot.payload_cog = tuple(centre)


def _set_target_payload(program: ControlProgram) -> None:
    _set_payload(program)
    program.robot.payload_inertia = program.doubles_in(4, 6)


def _set_tcp(program: ControlProgram) -> None:
    program.robot.tcp = program.doubles_in(0, 6)


def _history(program: ControlProgram) -> Iterable[float]:
    past, steps = program.robot.history, int(program.int_in(1))
    if not 0 <= steps < len(past):
        raise ArmError(f"get_actual_joint_positions_history: {steps} steps; valid are 0 to {len(past) - 1}")
    return past[-1 - steps]


def _forward(program: ControlProgram) -> Iterable[float]:
    q = program.doubles_in(0, 6)
    return program.robot.kinematics.forward(q, program.doubles_in(6, 6))


def _inverse(has_near: bool, program: ControlProgram) -> Iterable[float]:
    """Return the joint angles of a pose that are nearest to given ones, or to where the arm is."""
    return program.robot.inverse(program.doubles_in(0, 6), program.doubles_in(6, 6) if has_near else None)


def _reachable(has_near: bool, program: ControlProgram) -> bool:
    try:
        _inverse(has_near, program)
    except ArmError:
        return False
    return True


def _protective_stop(program: ControlProgram) -> None:
    raise ProtectiveStop("the program asked for it")


def _refuse(what: str, program: ControlProgram) -> None:
    program.forget_answers()
    raise ArmError(f"{what} is not simulated by the twin")


def _only_off(what: str, program: ControlProgram) -> None:
    """Switch something on or, by an integer of 0, off: it is never on."""
    if program.int_in(1) != 0:
        _refuse(what, program)


def _nothing(program: ControlProgram) -> None:
    """End what does not run."""


def _write_numbers(find: Callable[[ControlProgram], Iterable[float]], program: ControlProgram) -> None:
    program.write_doubles(find(program))


def _write_integer(find: Callable[[ControlProgram], int], program: ControlProgram) -> None:
    program.write_int(1, find(program))


# Answers in the double registers.
NUMBERS: Final[Mapping[int, Callable[[ControlProgram], Iterable[float]]]] = {
    26: lambda program: [program.period_s],
    27: _history,
    28: lambda program: program.robot.waypoint,  # target of the active move
    30: partial(_inverse, True),
    39: lambda program: pose_trans(program.doubles_in(0, 6), program.doubles_in(6, 6)),
    40: lambda program: program.robot.tcp,
    43: lambda program: program.robot.pose(),
    44: _forward,
    46: partial(_inverse, False),
    58: lambda program: program.robot.kinematics.forward(program.robot.plant.joint_positions),  # of the flange
}
# Answers in integer register 1.
INTEGERS: Final[Mapping[int, Callable[[ControlProgram], int]]] = {
    36: partial(_reachable, False),
    37: lambda program: all(abs(angle) <= JOINT_LIMIT for angle in program.doubles_in(0, 6)),
    47: lambda program: program.robot.at_rest,
    60: partial(_reachable, False),
    61: partial(_reachable, True),
    63: lambda program: 0,  # the end of a contact detection that does not run has found no contact
}
UNSUPPORTED: Final[Mapping[int, str]] = {
    6: "force_mode",
    8: "zero_ftsensor",
    12: "servoc",
    18: "teach_mode",
    20: "force_mode_set_damping",
    21: "force_mode_set_gain_scaling",
    25: "tool_contact",
    38: "get_joint_torques",
    51: "move_until_contact",
    52: "freedrive_mode",
    54: "get_freedrive_status",
    59: "set_gravity",
    62: "contact detection",
    64: "contact detection",
    66: "direct_torque",
    67: "get_mass_matrix",
    68: "get_coriolis_and_centrifugal_torques",
    69: "get_target_joint_accelerations",
    70: "get_jacobian",
    71: "get_jacobian_time_derivative",
}
COMMANDS: Final[Mapping[int, Command]] = {
    1: partial(_move, False, False),
    2: partial(_move, False, True),
    3: partial(_move, True, True),
    4: partial(_move, True, False),
    7: partial(_end, FORCE, FORCE_STOP_DECELERATION),
    9: partial(_speed, False),
    10: partial(_speed, True),
    11: partial(_servo, False),
    15: partial(_end, SPEED, None),
    16: partial(_end, SERVO, None),
    17: _set_payload,
    19: _nothing,  # end_teach_mode
    24: partial(_servo, True),
    29: _set_tcp,
    31: _protective_stop,
    33: _stop,
    34: _stop,
    35: lambda program: program.watch(program.doubles_in(0, 1)[0]),
    41: _jog,
    42: partial(_end, JOG, JOG_STOP_DECELERATION),
    45: _move_path,
    53: _nothing,  # end_freedrive_mode
    56: partial(_only_off, "ft_rtde_input_enable"),
    57: partial(_only_off, "enable_external_ft_sensor"),
    65: _set_target_payload,
    **{number: partial(_refuse, what) for number, what in UNSUPPORTED.items()},
    **{number: partial(_write_numbers, find) for number, find in NUMBERS.items()},
    **{number: partial(_write_integer, find) for number, find in INTEGERS.items()},
}
