"""The process that owns a UR's connection and runs its servo loop: ``python -m bid_ros.robots.ur.process``.

Before it sends a program, it asks the Dashboard whether the robot can be used.

Why a process: ur_rtde's constructors hold Python's lock while they wait for the robot. Its calls may wait for minutes
when the network dies. It connects and restarts the robot's program by itself. Damaged data can crash it. All this
stops only this process, which then ends, and the controller's own watchdog stops the arm. The loop also shares no
interpreter with ROS, which keeps its period even.
"""

import re
import resource
import time
from multiprocessing.connection import Connection
from typing import Final

from dashboard_client import DashboardClient
from rtde_control import RTDEControlInterface
from rtde_receive import RTDEReceiveInterface

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.robots.process import drive
from bid_ros.robots.protocol import DriverMemory
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.consistency import TOOL_M, TOOL_RAD, tool_error
from bid_ros.robots.ur.echo import EchoLink, UrEcho
from bid_ros.robots.ur.loop import UrLoop
from bid_ros.robots.ur.robot import LIBRARY_ERRORS, VARIABLES, UrRobot

OWN_RATES: Final = {3: 125, 5: 500}  # Hz by major version: CB3 and e-Series
OLDEST: Final = {3: (3, 10), 5: (5, 4)}  # software in which everything used here exists
# The Dashboard knows about remote control from here on; a CB3 has no such mode.
KNOWS_REMOTE: Final = (5, 6)
SETTLE_S: Final = 0.5
UNLOCK_S: Final = 8.0  # a controller unlocks a protective stop 5 s after it at the earliest
DASHBOARD_MS: Final = 1000
PAUSE_S: Final = 0.1
LONGEST_TEXT: Final = 120
STANDARD_STREAMS: Final = 3


def open_ur(config: UrConfig, release: bool) -> UrRobot:
    """Connect, start our program on the controller and configure it, without moving the arm.

    ur_rtde's constructors wait for ever for a robot that accepts and stays silent, so the caller needs a time limit.

    Args:
        config: of the arm.
        release: a person asked for it: release a protective stop and end whatever program runs.

    Raises:
        ArmError: the robot is of an unknown version, or refuses.
        RobotAwayError: it does not answer, or is in local mode or not ready, which a person changes at the robot.
    """
    try:
        own = OWN_RATES[_prepare(config.address, release)]
        rate = config.rate_hz or own
        if rate > own:
            raise ArmError(f"robot at {config.address} is a CB3: rate_hz is {rate}; valid are 0 and 125")
        receive = RTDEReceiveInterface(config.address, float(rate), list(VARIABLES))
        echo = UrEcho(EchoLink(config.address).newest)
        robot = UrRobot(config, rate, receive, RTDEControlInterface(config.address, float(rate)), echo)
        configure(config, robot)
    except LIBRARY_ERRORS as error:
        raise RobotAwayError(f"robot at {config.address}: {_explained(str(error))}") from error
    return robot


def _explained(text: str) -> str:
    """Return the message of ur_rtde as part of one sentence, with what to check."""
    if "already in use" in text:
        return "its RTDE inputs are in use: end the other client, fieldbus adapter or MODBUS unit that writes them"
    said = " ".join(text.split())[:LONGEST_TEXT].rstrip(" .!")
    return f"ur_rtde could not use it ({said}): check that it is on and in remote control"


def firmware(config: UrConfig) -> str:
    """Return the version of the robot's software, as its dashboard says it. Raises ArmError if it does not answer."""
    dashboard = DashboardClient(config.address)
    try:
        dashboard.connect(DASHBOARD_MS)
        told = f"PolyScope {dashboard.polyscopeVersion().strip()}"
        dashboard.disconnect()
    except LIBRARY_ERRORS as error:
        raise ArmError(f"robot at {config.address}: {_explained(str(error))}") from error
    return told


def _version(answer: str) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _prepare(address: str, release: bool) -> int:
    """Make sure that the robot can be used; return the major version of its software."""
    dashboard = DashboardClient(address)
    dashboard.connect(DASHBOARD_MS)
    answer = dashboard.polyscopeVersion()
    version = _version(answer)
    if version[0] not in OLDEST or version < OLDEST[version[0]]:
        raise ArmError(
            f"robot at {address} has the software '{answer.strip()[:40]}'; valid are 3.10 and later 3.x (CB3) "
            "and 5.4 and later 5.x (e-Series)"
        )
    if version >= KNOWS_REMOTE and not dashboard.isInRemoteControl():
        raise RobotAwayError(f"robot at {address} is in local mode: switch it to remote control on the pendant")
    if release:
        _release(address, dashboard)
    _demand_ready(address, dashboard)
    if dashboard.running():
        if not release:
            raise RobotAwayError(f"robot at {address} runs another program: stop that on the pendant first")
        dashboard.stop()
    dashboard.disconnect()
    return version[0]


def _release(address: str, dashboard: DashboardClient) -> None:
    """Unlock a protective stop, as soon as the controller lets us."""
    end = time.monotonic() + UNLOCK_S
    while "PROTECTIVE_STOP" in dashboard.safetymode():
        dashboard.closeSafetyPopup()
        try:
            dashboard.unlockProtectiveStop()
        except LIBRARY_ERRORS as error:
            if time.monotonic() > end:
                raise ArmError(f"robot at {address} stays in its protective stop: {error}") from error
        time.sleep(PAUSE_S)


def _demand_ready(address: str, dashboard: DashboardClient) -> None:
    safety = dashboard.safetymode().split(":")[-1].strip()
    if safety not in ("NORMAL", "REDUCED"):
        raise RobotAwayError(f"robot at {address} is in the safety mode {safety}: clear that at the robot, then reset")
    mode = dashboard.robotmode().split(":")[-1].strip()
    if mode != "RUNNING":
        raise RobotAwayError(
            f"robot at {address} is in the mode {mode}: switch it on and release its brakes on the pendant, then reset"
        )


def configure(config: UrConfig, robot: UrRobot) -> None:
    """Set tool, payload and watchdog of a robot that runs our program. If that fails, end the program.

    Raises:
        ArmError: the robot refuses, or its tool is not where the model would have it.
    """
    try:
        _set_up(config, robot)
    except ArmError:
        robot.end_program()
        raise


def _set_up(config: UrConfig, robot: UrRobot) -> None:
    if not robot.set_tool(config.tool) or not robot.set_payload(config.payload_mass, config.payload_center):
        raise ArmError(f"robot at {config.address} refused its tool or payload: look at the pendant, then reset")
    end = time.monotonic() + SETTLE_S
    while True:
        missed, turned = tool_error(config, robot.read())
        # Not `>`, which a damaged state, NaN, would pass.
        if missed <= TOOL_M and turned <= TOOL_RAD:
            break
        if time.monotonic() > end:
            raise ArmError(
                f"robot at {config.address} has its tool {1000 * missed:.0f} mm and {turned:.2f} rad from where a "
                f"{config.model} would have it: check `model`, `tool_offset` and `tool_quaternion`"
            )
        time.sleep(PAUSE_S)
    # Last, because from now on the robot must hear from us all the time.
    if not robot.begin_watchdog():
        raise ArmError(f"robot at {config.address} refused its watchdog: look at the pendant, then reset")


def _open_loop(config: UrConfig, release: bool, memory: DriverMemory, requests: Connection) -> UrLoop:
    robot = open_ur(config, release)
    _forbid_connections()
    return UrLoop(config, robot, memory, requests)


def main() -> None:
    """Drive a UR, see :func:`bid_ros.robots.process.drive`."""
    drive(_open_loop)


def _forbid_connections() -> None:
    """Let this process open no further file or socket, so that ur_rtde cannot connect again.

    After a broken connection it reconnects by itself, from its own threads, within milliseconds. It would start our
    program on the robot again, without the watchdog, while the fault waits for a person.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (STANDARD_STREAMS, hard))


if __name__ == "__main__":
    main()
