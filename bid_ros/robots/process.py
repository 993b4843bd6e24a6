"""What every process that owns a robot's connection does: it opens the robot, says whether it could, and runs."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

from bid_ros.core.errors import ArmError
from bid_ros.core.orphan import wake_when_orphaned
from bid_ros.robots.loop import DriverLoop
from bid_ros.robots.protocol import DriverMemory

# Where the user may have it (`rtprio` in /etc/security/limits.conf, as for a Franka), the loop goes before everything
# that is not real-time. Round robin, because libraries wait for some answers with a core to themselves.
PRIORITY: Final = 10
# While a library connects, no Python runs here. So the system ends this process if its owner could not.
SPARE_S: Final = 1.0

Opener = Callable[[Any, bool, DriverMemory, Connection], DriverLoop]
"""Opens the robot of a configuration, released if a person asked for that, and returns its loop."""


def go_first() -> None:
    """Let the calling thread, and those that it starts, go before everything that is not real-time, if that is allowed.

    A library that gives its caller another priority may be called in between.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))


def drive(open_loop: Opener) -> None:
    """Say that this process runs, open the robot that the answer describes, report the result, run, and end.

    The descriptors of memory and requests are the arguments of the program.

    Args:
        open_loop: raises ArmError if the robot cannot be used.
    """
    # Both are for the arm's process, which then ends this one in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wake_when_orphaned()
    go_first()
    memory, requests = DriverMemory(int(sys.argv[1])), Connection(int(sys.argv[2]))
    try:
        requests.send("")
        config, release = requests.recv()
    except (EOFError, OSError):  # nobody waits any more
        os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, config.connect_timeout_s + SPARE_S)
    try:
        loop = open_loop(config, release, memory, requests)
    except ArmError as error:
        with contextlib.suppress(OSError):
            requests.send(error)
        os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    # An owner that is gone is found by the loop, which leaves the robot in order.
    with contextlib.suppress(OSError):
        requests.send("")
    loop.run()
    # Not sys.exit: the destructors of a library wait for the robot.
    os._exit(0)
