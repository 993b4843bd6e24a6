"""The commands of the control script that set something or answer in registers."""

from __future__ import annotations

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import JOINT_LIMIT
from bid_ros.robots.ur.pose import Numbers, pose_trans
from bid_ros.robots.ur.twin.program import ControlProgram


def set_watchdog(program: ControlProgram) -> None:
    """Expect the command register to be written so many times a second."""
    program.watch(program.doubles_in(0, 1)[0])


def set_tcp(program: ControlProgram) -> None:
    """Set the tool centre point."""
    program.robot.tcp = program.doubles_in(0, 6)


def set_payload(program: ControlProgram) -> None:
    """Set mass and centre of gravity; a centre of all zeros keeps the one that is set."""
    mass, *centre = program.doubles_in(0, 4)
    program.robot.payload = mass
    if any(centre):  # all zero means: keep the one that is set
        program.robot.payload_cog = tuple(centre)


def set_target_payload(program: ControlProgram) -> None:
    """Set mass, centre of gravity and inertia."""
    set_payload(program)
    program.robot.payload_inertia = program.doubles_in(4, 6)


def tcp_offset(program: ControlProgram) -> None:
    """Answer with the tool centre point."""
    program.write_doubles(program.robot.tcp)


def step_time(program: ControlProgram) -> None:
    """Answer with the length of a cycle."""
    program.write_doubles([program.period_s])


def history(program: ControlProgram) -> None:
    """Answer with the joint angles of some cycles ago."""
    past, steps = program.robot.history, int(program.int_in(1))
    if not 0 <= steps < len(past):
        raise ArmError(f"get_actual_joint_positions_history: {steps} steps; valid are 0 to {len(past) - 1}")
    program.write_doubles(past[-1 - steps])


def waypoint(program: ControlProgram) -> None:
    """Answer with the target of the active move."""
    program.write_doubles(program.robot.waypoint)


def transform(program: ControlProgram) -> None:
    """Answer with a pose given in the frame of another."""
    program.write_doubles(pose_trans(program.doubles_in(0, 6), program.doubles_in(6, 6)))


def flange_pose(program: ControlProgram) -> None:
    """Answer with the actual pose of the flange."""
    program.write_doubles(program.robot.kinematics.forward(program.robot.plant.joint_positions))


def forward_now(program: ControlProgram) -> None:
    """Answer with the actual pose of the tool."""
    program.write_doubles(program.robot.pose())


def forward(program: ControlProgram) -> None:
    """Answer with the tool pose of given joint angles and tool."""
    q = program.doubles_in(0, 6)
    program.write_doubles(program.robot.kinematics.forward(q, program.doubles_in(6, 6)))


def inverse_now(program: ControlProgram) -> None:
    """Answer with the joint angles of a pose that are nearest to where the arm is."""
    program.write_doubles(program.robot.inverse(program.doubles_in(0, 6)))


def inverse_near(program: ControlProgram) -> None:
    """Answer with the joint angles of a pose that are nearest to given ones."""
    program.write_doubles(program.robot.inverse(program.doubles_in(0, 6), program.doubles_in(6, 6)))


def has_inverse_now(program: ControlProgram) -> None:
    """Answer whether a pose can be reached."""
    program.write_int(1, _reachable(program, program.doubles_in(0, 6)))


def has_inverse_near(program: ControlProgram) -> None:
    """Answer whether a pose can be reached."""
    program.write_int(1, _reachable(program, program.doubles_in(0, 6), program.doubles_in(6, 6)))


def joints_are_safe(program: ControlProgram) -> None:
    """Answer whether joint angles are within their limits."""
    program.write_int(1, all(abs(angle) <= JOINT_LIMIT for angle in program.doubles_in(0, 6)))


def is_steady(program: ControlProgram) -> None:
    """Answer whether the arm is at rest."""
    program.write_int(1, program.robot.at_rest)


def _reachable(program: ControlProgram, pose: Numbers, near: Numbers | None = None) -> bool:
    try:
        program.robot.inverse(pose, near)
    except ArmError:
        return False
    return True
