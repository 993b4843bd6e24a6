"""The process that owns a UR's connection and runs its servo loop: ``python -m bid_ros.robots.ur.process``.

Why a process: ur_rtde's constructors hold Python's lock while they wait for the robot. Its calls may wait for minutes
    when the network dies. It connects and restarts the robot's program by itself. Damaged data can crash it. All this
    stops only this process, which then ends, and the controller's own watchdog stops the arm. The loop also shares no
    interpreter with ROS, which keeps its period even.
"""

import contextlib
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.loop import UrLoop
from bid_ros.robots.ur.open import open_ur
from bid_ros.robots.ur.protocol import UrMemory

# Where the user may have it (`rtprio` in /etc/security/limits.conf, as for a Franka), the loop goes before everything
# that is not real-time. Round robin, because ur_rtde waits for some answers with a core to itself.
PRIORITY: Final = 10
STANDARD_STREAMS: Final = 3
# While ur_rtde connects, no Python runs here. So the system ends this process if its owner could not.
SPARE_S: Final = 1.0


def main() -> None:
    """Open the robot that the first message describes, report the result, and run."""
    # Both are for the arm's process, which then ends this one in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    memory, requests = UrMemory(int(sys.argv[1])), Connection(int(sys.argv[2]))
    config, release = requests.recv()
    signal.setitimer(signal.ITIMER_REAL, config.connect_timeout_s + SPARE_S)
    try:
        robot = open_ur(config, release)
    except ArmError as error:
        with contextlib.suppress(OSError):
            requests.send(str(error))
        os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    _forbid_connections()
    loop = UrLoop(config, robot, memory, requests)
    # An owner that is gone is found by the loop, which leaves the robot in order.
    with contextlib.suppress(OSError):
        requests.send("")
    loop.run()
    # Not sys.exit: the destructors of ur_rtde wait for the robot.
    os._exit(0)


def _forbid_connections() -> None:
    """Let this process open no further file or socket, so that ur_rtde cannot connect again.

    After a broken connection it reconnects by itself, from its own threads, within milliseconds. It would start our
    program on the robot again, without the watchdog, while the fault waits for a person.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (STANDARD_STREAMS, hard))


if __name__ == "__main__":
    main()
