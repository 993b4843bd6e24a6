"""The commands of ur_rtde's control script that the driver gives: command number -> what it does with the registers.

Numbers, arguments and results are those of the script that ur_rtde 1.6.5 uploads. Every other command ends the program
(:mod:`bid_ros.robots.ur.twin.program`).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import JOINT_LIMIT
from bid_ros.robots.ur.twin.joint_motions import ServoJ
from bid_ros.robots.ur.twin.moves import MoveJ, StopL
from bid_ros.robots.ur.twin.program import MOVE, SERVO, STOP, ControlProgram


def _servo(is_pose: bool, program: ControlProgram) -> None:
    """Follow joint angles or tool poses; the inverse kinematics starts from where the arm is."""
    target, (lookahead, gain) = program.doubles_in(0, 6), program.doubles_in(9, 2)
    joints = program.robot.inverse(target) if is_pose else target
    program.stream(ServoJ(joints, lookahead, gain))


def _move_j(program: ControlProgram) -> None:
    """Go to joint angles, straight in joint angles."""
    speed, acceleration = program.doubles_in(6, 2)
    program.kill(MOVE)
    motion = MoveJ(program.doubles_in(0, 6), speed, acceleration)
    program.begin(MOVE, motion, asynchronous=program.int_in(1) == 1)


def _stop_j(program: ControlProgram) -> None:
    """Bring the arm to rest, waited for or on its own."""
    if not program.kill(STOP):
        program.kill(MOVE)
    # The script does not tell stopJ from stopL: from the first asynchronous stop on, both stop the tool.
    _rest(program, asynchronous=program.int_in(1) == 1)


def _stop_servo(program: ControlProgram) -> None:
    """End the servo and bring the tool to rest."""
    program.kill(SERVO)
    _rest(program, asynchronous=False)


def _rest(program: ControlProgram, asynchronous: bool) -> None:
    (deceleration,) = program.doubles_in(0, 1)
    program.begin(STOP, StopL(deceleration, program.robot.tool), asynchronous=asynchronous)


def _set_payload(program: ControlProgram) -> None:
    """Take a payload, which the twin only reports: its arm knows what it carries."""
    program.robot.payload = program.doubles_in(0, 4)


def _set_tcp(program: ControlProgram) -> None:
    program.robot.tcp = program.doubles_in(0, 6)


def _within_limits(program: ControlProgram) -> None:
    program.write_int(1, all(abs(angle) <= JOINT_LIMIT for angle in program.doubles_in(0, 6)))


def _freedrive(program: ControlProgram) -> None:
    """Let a person guide the arm. Every axis is free: those that a client wants fixed cannot be."""
    if program.doubles_in(0, 6) != (0.0,) * 6 or any(program.int_in(number) != 1 for number in range(1, 7)):
        raise ArmError(
            "freedriveMode: the twin frees all axes alone; valid are free_axes of ones and a feature of zeros"
        )
    program.robot.set_free()


COMMANDS: Final[Mapping[int, Callable[[ControlProgram], None]]] = {
    1: _move_j,
    11: partial(_servo, False),
    16: _stop_servo,
    17: _set_payload,
    24: partial(_servo, True),
    29: _set_tcp,
    34: _stop_j,
    35: lambda program: program.watch(*program.doubles_in(0, 1)),
    37: _within_limits,
    7: lambda program: None,  # the end of force mode, which never begins here: scripts call it to be sure
    18: lambda program: program.robot.set_free(),  # teach_mode: freedrive_mode by its older name
    52: _freedrive,
    **dict.fromkeys((19, 53), lambda program: program.robot.hold_again()),
}


def commands(e_series: bool) -> Mapping[int, Callable[[ControlProgram], None]]:
    """Return the commands of a controller; PolyScope below 5.10 has no ``freedrive_mode``, but ``teach_mode``."""
    return COMMANDS if e_series else {number: act for number, act in COMMANDS.items() if number != 52}
