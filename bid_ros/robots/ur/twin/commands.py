"""The commands of ur_rtde's control script: command number -> what it does with the registers.

Numbers, arguments and results are those of the script that ur_rtde 1.6.5 uploads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin import motion_commands as moving
from bid_ros.robots.ur.twin import queries
from bid_ros.robots.ur.twin.program import Command, ControlProgram, ProtectiveStop


def _protective_stop(program: ControlProgram) -> None:
    raise ProtectiveStop("the program asked for it")


def _unsupported(what: str) -> Command:
    def refuse(program: ControlProgram) -> None:
        program.forget_answers()
        raise ArmError(f"{what} is not simulated by the twin")

    return refuse


def _only_off(what: str) -> Command:
    """Return a command that switches something on or, by an integer of 0, off: it is never on."""
    refuse = _unsupported(what)

    def switch(program: ControlProgram) -> None:
        if program.int_in(1) != 0:
            refuse(program)

    return switch


def _nothing(program: ControlProgram) -> None:
    """End what does not run."""


def _stop_contact_detection(program: ControlProgram) -> None:
    """End what does not run; it has found no contact."""
    program.write_int(1, 0)


COMMANDS: Final[Mapping[int, Command]] = {
    1: moving.move_j,
    2: moving.move_j_ik,
    3: moving.move_l,
    4: moving.move_l_fk,
    6: _unsupported("force_mode"),
    7: moving.end_force_mode,
    8: _unsupported("zero_ftsensor"),
    9: moving.speed_j,
    10: moving.speed_l,
    11: moving.servo_j,
    12: _unsupported("servoc"),
    15: moving.speed_stop,
    16: moving.servo_stop,
    17: queries.set_payload,
    18: _unsupported("teach_mode"),
    19: _nothing,  # end_teach_mode
    20: _unsupported("force_mode_set_damping"),
    21: _unsupported("force_mode_set_gain_scaling"),
    24: moving.servo_l,
    25: _unsupported("tool_contact"),
    26: queries.step_time,
    27: queries.history,
    28: queries.waypoint,
    29: queries.set_tcp,
    30: queries.inverse_near,
    31: _protective_stop,
    33: moving.stop,
    34: moving.stop,
    35: queries.set_watchdog,
    36: queries.has_inverse_now,
    37: queries.joints_are_safe,
    38: _unsupported("get_joint_torques"),
    39: queries.transform,
    40: queries.tcp_offset,
    41: moving.jog,
    42: moving.jog_stop,
    43: queries.forward_now,
    44: queries.forward,
    45: moving.move_path,
    46: queries.inverse_now,
    47: queries.is_steady,
    51: _unsupported("move_until_contact"),
    52: _unsupported("freedrive_mode"),
    53: _nothing,  # end_freedrive_mode
    54: _unsupported("get_freedrive_status"),
    56: _only_off("ft_rtde_input_enable"),
    57: _only_off("enable_external_ft_sensor"),
    58: queries.flange_pose,
    59: _unsupported("set_gravity"),
    60: queries.has_inverse_now,
    61: queries.has_inverse_near,
    62: _unsupported("contact detection"),
    63: _stop_contact_detection,
    64: _unsupported("contact detection"),
    65: queries.set_target_payload,
    66: _unsupported("direct_torque"),
    67: _unsupported("get_mass_matrix"),
    68: _unsupported("get_coriolis_and_centrifugal_torques"),
    69: _unsupported("get_target_joint_accelerations"),
    70: _unsupported("get_jacobian"),
    71: _unsupported("get_jacobian_time_derivative"),
}
