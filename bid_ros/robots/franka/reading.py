"""One state of a Franka robot, in plain floats."""

from dataclasses import dataclass

from bid_ros.control.spatial import Pose


@dataclass(frozen=True)
class FrankaReading:
    """A state of the robot, in the terms of libfranka's ``RobotState``.

    Attributes:
        stamp_ns, steady_ns: when it was read, nanoseconds since 1970 and of the steady clock.
        even_ns: the same on a steady clock whose pace no time service changes.
        robot_ms: the robot's own time, ms.
        joints, joint_speeds: ``(7,)`` rad and rad/s.
        pose: of the tool.
        torques: ``(7,)`` Nm, desired link side torques without gravity (``tau_J_d``).
        success_rate: share of the last 100 commands that the robot received; 0 if nothing controls it.
        sent: ``(7,)`` Nm, torques that libfranka had sent for this state; None if nobody knows.
        moves: the robot lets itself be commanded. In a reflex or a stop by its user it brakes with torques of its own.
    """

    stamp_ns: int
    steady_ns: int
    even_ns: int
    robot_ms: int
    joints: tuple[float, ...]
    joint_speeds: tuple[float, ...]
    pose: Pose
    torques: tuple[float, ...]
    success_rate: float
    sent: tuple[float, ...] | None = None
    moves: bool = True
