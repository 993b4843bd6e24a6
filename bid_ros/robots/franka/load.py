"""What a Franka that rests feels at its tool beside its configured payload, by its own estimate."""

import os
import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Final

import franky
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import FRANKY_ERRORS, sentence
from bid_ros.robots.franka.robot import set_load

SETTLE_S: Final = 0.3  # until the robot's filtered estimate knows the payload
WATCH_S: Final = 0.5
PAUSE_S: Final = 0.01
CALM_S: Final = 0.05
REST: Final = 0.01  # rad/s of each joint


def external_force(config: FrankaConfig) -> tuple[float, float, float]:
    """Return the force in N along x, y, z of the base that the robot feels at its tool. Nothing moves.

    The robot compensates gravity by its hand as Desk has it and the payload of the configuration. What is left of the
    measured torques is the estimate.

    Raises:
        ArmError: the robot moves, is used by another client, or does not answer in time.
    """
    result: Future[Array] = Future()

    def work() -> None:
        try:
            result.set_result(_measured(config))
        except ArmError as error:
            result.set_exception(error)
        except FRANKY_ERRORS as error:
            result.set_exception(ArmError(sentence(config.address, error)))

    # libfranka waits a minute for a robot that does not answer.
    thread = threading.Thread(target=work, name="load", daemon=True)
    thread.start()
    limit_s = config.connect_timeout_s + SETTLE_S + WATCH_S
    end = time.monotonic() + limit_s
    while not result.done() and time.monotonic() < end:
        _calm(thread)
        wait([result], CALM_S)
    if not result.done():
        raise ArmError(f"robot at {config.address} says nothing for {limit_s:g} s")
    x, y, z = np.median(result.result(), axis=0).tolist()
    return x, y, z


def _calm(thread: threading.Thread) -> None:
    """Take the highest priority from a thread that libfranka gave it: one that is refused uses up a whole core."""
    with suppress(ProcessLookupError):
        os.sched_setscheduler(thread.native_id or 0, os.SCHED_OTHER, os.sched_param(0))


def _measured(config: FrankaConfig) -> Array:
    """Return the forces ``(n, 3)`` N of a while. Raises ArmError, and as franky."""
    robot = franky.Robot(config.address, realtime_config=franky.RealtimeConfig.Ignore)  # it is only read
    try:
        set_load(robot, config)
        time.sleep(SETTLE_S)
        forces, end = [], time.monotonic() + WATCH_S
        while time.monotonic() < end:
            state = robot.state
            if np.abs(state.dq).max() > REST:
                raise ArmError(f"robot at {config.address} moves; valid is one that rests")
            forces.append(np.asarray(state.O_F_ext_hat_K)[:3])
            time.sleep(PAUSE_S)
        return np.array(forces)
    finally:
        del robot  # an error that is kept would keep the connection too, and a robot has one client
