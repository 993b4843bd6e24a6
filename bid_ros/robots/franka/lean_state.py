"""franky-sim's message of the robot's state at a lower cost: the same bytes, packed at once."""

import struct
from collections.abc import Mapping
from typing import Any, Final, Self

from franky_sim.franka_robot_state import FrankaRobotState

# The numbers of the message in their order: field, and how many. None: the field is a number.
_NUMBERS: Final[tuple[tuple[str, int | None], ...]] = (
    ("O_T_EE", 16),
    ("O_T_EE_d", 16),
    ("F_T_EE", 16),
    ("EE_T_K", 16),
    ("F_T_NE", 16),
    ("NE_T_EE", 16),
    ("m_ee", None),
    ("I_ee", 9),
    ("F_x_Cee", 3),
    ("m_load", None),
    ("I_load", 9),
    ("F_x_Cload", 3),
    ("elbow", 2),
    ("elbow_d", 2),
    ("tau_J", 7),
    ("tau_J_d", 7),
    ("dtau_J", 7),
    ("q", 7),
    ("q_d", 7),
    ("dq", 7),
    ("dq_d", 7),
    ("ddq_d", 7),
    ("joint_contact", 7),
    ("cartesian_contact", 6),
    ("joint_collision", 7),
    ("cartesian_collision", 6),
    ("tau_ext_hat_filtered", 7),
    ("O_F_ext_hat_K", 6),
    ("K_F_ext_hat_K", 6),
    ("O_dP_EE_d", 6),
    ("O_ddP_O", 3),
    ("elbow_c", 2),
    ("delbow_c", 2),
    ("ddelbow_c", 2),
    ("O_T_EE_c", 16),
    ("O_dP_EE_c", 6),
    ("O_ddP_EE_c", 6),
    ("theta", 7),
    ("dtheta", 7),
    ("accelerometer_top", 18),
    ("accelerometer_bottom", 18),
)
_COUNT: Final = sum(count or 1 for _, count in _NUMBERS)
# After the numbers: two modes, errors, reasons of a reflex, the robot's mode, and the share of packets that arrived.
_MESSAGE: Final = struct.Struct(f"<{_COUNT}fBB41s41sBf")


class LeanState(FrankaRobotState):  # type: ignore[misc]  # franky-sim has no types
    """A FrankaRobotState that is made without assigning its 50 fields one by one."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the state with all of these fields."""
        state = object.__new__(cls)
        state.__dict__.update(values)
        return state

    def replace(self, **values: Any) -> Self:
        """Return a state with other values of some fields."""
        return self.of({**vars(self), **values})

    def pack_state(self) -> bytes:
        """Return the message of the state."""
        values, numbers = vars(self), []
        for name, count in _NUMBERS:
            if count is None:
                numbers.append(values[name])
            else:
                numbers += values[name][:count]
        modes = (values[name] for name in ("motion_generator_mode", "controller_mode", "robot_mode"))
        generator, controller, robot = (getattr(mode, "value", mode) for mode in modes)
        return _MESSAGE.pack(
            *numbers,
            generator,
            controller,
            bytes(map(bool, self.errors)),
            bytes(map(bool, self.reflex_reason)),
            robot,
            self.control_command_success_rate,
        )
