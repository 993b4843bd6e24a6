"""The process that drives a UR, from the arm's side."""

import socket
from typing import Final

from bid_ros.core.errors import RobotAwayError
from bid_ros.robots.link import DriverLink
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT

PORTS: Final = ((29999, "Dashboard"), (RTDE_PORT, "RTDE"))
# A process that waits for an answer of the controller says so itself, this long, s, before it would be ended.
GRACE_S: Final = 0.05


class UrLink(DriverLink):
    """A :class:`DriverLink` to ``bid_ros.robots.ur.process``.

    Args:
        config: configuration of the arm.
        release: on a person's request: release a protective stop and end any program on the robot.

    Raises:
        ArmError: nothing answers in time, or the robot cannot be used.
    """

    def __init__(self, config: UrConfig, release: bool = False) -> None:
        _demand_answer(config)
        beat_s = config.stuck_s + GRACE_S
        super().__init__("bid_ros.robots.ur.process", config, release, beat_s, "ur_rtde")


def _demand_answer(config: UrConfig) -> None:
    """Raise RobotAwayError if nothing listens. ur_rtde in the process would need seconds for that."""
    for port, name in PORTS:
        try:
            socket.create_connection((config.address, port), config.connect_timeout_s).close()
        except OSError as error:
            reason = error.strerror or str(error)
            raise RobotAwayError(
                f"robot at {config.address}: {reason} on port {port} ({name}): check the address, power and cable"
            ) from error
