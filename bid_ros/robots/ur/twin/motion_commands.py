"""The commands of the control script that move the arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from bid_ros.robots.ur.pose import Numbers, pose_trans
from bid_ros.robots.ur.twin.joint_motions import Motion, ServoJ, ServoL, SpeedJ, StopJ
from bid_ros.robots.ur.twin.moves import MoveJ, MoveL
from bid_ros.robots.ur.twin.program import JOG, MOVE, SERVO, SPEED, STOP, ControlProgram
from bid_ros.robots.ur.twin.script_port import Waypoint
from bid_ros.robots.ur.twin.tool_motions import SpeedL, StopL

JOG_STOP_DECELERATION: Final = 1.2  # m/s^2, as in the script
FORCE_STOP_DECELERATION: Final = 10.0
BASE_FEATURE, TOOL_FEATURE = 0, 1


def servo_j(program: ControlProgram) -> None:
    """Follow joint angles; the last ones are kept."""
    lookahead, gain = program.doubles_in(9, 2)
    program.stream(SERVO, ServoJ(program.doubles_in(0, 6), lookahead, gain))


def servo_l(program: ControlProgram) -> None:
    """Follow tool poses; the inverse kinematics starts from where the arm is."""
    robot = program.robot
    lookahead, gain = program.doubles_in(9, 2)
    near = robot.plant.joint_positions
    program.stream(
        SERVO, ServoL(program.doubles_in(0, 6), near, lookahead, gain, kinematics=robot.kinematics, tcp=robot.tcp)
    )


def servo_stop(program: ControlProgram) -> None:
    """Bring the tool to rest and end the servo thread."""
    program.kill(SERVO)
    program.begin(STOP, iter([_stop_l(program, program.doubles_in(0, 1)[0])]), asynchronous=False)


def speed_j(program: ControlProgram) -> None:
    """Keep joint speeds."""
    # The script's thread repeats its command, so the time of a single one does not end anything.
    program.stream(SPEED, SpeedJ(program.doubles_in(0, 6), program.doubles_in(6, 1)[0]))
    program.speeds_are_linear = False


def speed_l(program: ControlProgram) -> None:
    """Keep a tool velocity in the base frame."""
    program.stream(SPEED, _tool_speed(program, program.doubles_in(0, 6), program.doubles_in(6, 1)[0]))
    program.speeds_are_linear = True


def speed_stop(program: ControlProgram) -> None:
    """Bring joints or tool to rest, whichever moved, and end the speed thread."""
    program.kill(SPEED)
    deceleration = program.doubles_in(0, 1)[0]
    motion = _stop_l(program, deceleration) if program.speeds_are_linear else StopJ(deceleration)
    program.begin(STOP, iter([motion]), asynchronous=False)


def jog(program: ControlProgram) -> None:
    """Keep a tool velocity given in the base frame, the tool's or a custom one."""
    speed, (feature, acceleration) = program.doubles_in(0, 6), program.doubles_in(6, 2)
    if feature != BASE_FEATURE:
        frame = program.robot.pose() if feature == TOOL_FEATURE else np.array(program.doubles_in(8, 6))
        frame[:3] = 0.0
        linear = pose_trans(frame, [*speed[:3], 0.0, 0.0, 0.0])[:3]
        angular = pose_trans(frame, [*speed[3:], 0.0, 0.0, 0.0])[:3]
        speed = (*linear.tolist(), *angular.tolist())
    program.stream(JOG, _tool_speed(program, speed, acceleration))


def jog_stop(program: ControlProgram) -> None:
    """Bring the tool to rest and end the jog thread."""
    program.kill(JOG)
    program.begin(STOP, iter([_stop_l(program, JOG_STOP_DECELERATION)]), asynchronous=False)


def end_force_mode(program: ControlProgram) -> None:
    """Bring the tool to rest: there is no force mode to end."""
    program.begin(STOP, iter([_stop_l(program, FORCE_STOP_DECELERATION)]), asynchronous=False)


def move_j(program: ControlProgram) -> None:
    """Go to joint angles, straight in joint angles."""
    _move(program, False, False)


def move_j_ik(program: ControlProgram) -> None:
    """Go to a pose, straight in joint angles."""
    _move(program, False, True)


def move_l(program: ControlProgram) -> None:
    """Go to a pose, straight in space."""
    _move(program, True, True)


def move_l_fk(program: ControlProgram) -> None:
    """Go to joint angles, straight in space."""
    _move(program, True, False)


def _move(program: ControlProgram, linear: bool, is_pose: bool) -> None:
    speed, acceleration = program.doubles_in(6, 2)
    waypoint = Waypoint(linear, is_pose, program.doubles_in(0, 6), acceleration, speed, 0.0)
    program.kill(MOVE)
    program.begin(MOVE, iter([_motion_to(program, waypoint)]), asynchronous=program.int_in(1) == 1)


def move_path(program: ControlProgram) -> None:
    """Go along the path that was uploaded with the script."""
    program.kill(MOVE)
    program.begin(MOVE, _along(program), asynchronous=program.int_in(1) == 1)


def _along(program: ControlProgram) -> Iterator[Motion]:
    for number, waypoint in enumerate(program.script.path):
        program.report(number)
        yield _motion_to(program, waypoint)


def _motion_to(program: ControlProgram, waypoint: Waypoint) -> Motion:
    robot, target = program.robot, waypoint.target
    if waypoint.linear:
        pose = target if waypoint.is_pose else robot.kinematics.forward(target, robot.tcp)
        robot.waypoint = tuple(map(float, pose))
        return MoveL(pose, waypoint.speed, waypoint.acceleration, kinematics=robot.kinematics, tcp=robot.tcp)
    joints = program.robot.inverse(target) if waypoint.is_pose else target
    robot.waypoint = tuple(map(float, robot.kinematics.forward(joints, robot.tcp)))
    return MoveJ(joints, waypoint.speed, waypoint.acceleration)


def stop(program: ControlProgram) -> None:
    """Bring the arm to rest, waited for or on its own."""
    deceleration, asynchronous = program.doubles_in(0, 1)[0], program.int_in(1) == 1
    if not program.kill(STOP):
        program.kill(MOVE)
    if asynchronous:
        program.stop_is_linear = True
    # The script does not tell stopJ from stopL: both stop the joints until the first asynchronous stop, and the tool
    # from then on.
    motion = _stop_l(program, deceleration) if program.stop_is_linear else StopJ(deceleration)
    program.begin(STOP, iter([motion]), asynchronous=asynchronous)


def _stop_l(program: ControlProgram, deceleration: float) -> Motion:
    return StopL(deceleration, kinematics=program.robot.kinematics, tcp=program.robot.tcp)


def _tool_speed(program: ControlProgram, speed: Numbers, acceleration: float) -> Motion:
    return SpeedL(speed, acceleration, kinematics=program.robot.kinematics, tcp=program.robot.tcp)
