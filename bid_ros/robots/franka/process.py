"""The process that owns franky and judges a Franka robot: ``python -m bid_ros.robots.franka.process``.

Why a process: franky's constructors may hold Python's lock while they wait for the robot, and its trackers have no
dead man's switch: what they were told last, they follow for ever. So this process has a loop of its own that stops the
arm when nobody sends set-points. If it is itself held up or dead, the arm ends it, and the robot's own watchdog stops
the motion, as no command comes any more.
"""

from multiprocessing.connection import Connection

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.consistency import TOOL_M, TOOL_RAD, tool_error
from bid_ros.robots.franka.errors import FRANKY_ERRORS, arm_error
from bid_ros.robots.franka.loop import FrankaLoop
from bid_ros.robots.franka.robot import FrankaRobot, open_robot
from bid_ros.robots.process import drive, go_first
from bid_ros.robots.protocol import DriverMemory


def _open_loop(config: FrankaConfig, _: bool, memory: DriverMemory, requests: Connection) -> FrankaLoop:
    try:
        opened = open_robot(config)
        go_first()  # libfranka gave this thread the highest priority of all, which only its own thread needs
        robot = FrankaRobot(config, opened)
    except FRANKY_ERRORS as error:
        raise arm_error(config.address, error) from error
    missed, turned = tool_error(robot.tool, robot.newest())
    # Not `>`, which a damaged state, NaN, would pass.
    if not (missed <= TOOL_M and turned <= TOOL_RAD):
        raise ArmError(
            f"robot at {config.address} has its tool {1000 * missed:.0f} mm and {turned:.2f} rad from where its joints "
            "put it: check what damages its data on the network"
        )
    return FrankaLoop(config, robot, memory, requests)


def main() -> None:
    """Drive a Franka, see :func:`bid_ros.robots.process.drive`."""
    drive(_open_loop)


if __name__ == "__main__":
    main()
