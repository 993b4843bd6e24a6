"""What a Franka that rests feels at its tool beside its configured payload, by its own estimate."""

import ctypes
import multiprocessing
import resource
import time
from multiprocessing.connection import Connection
from typing import Final

import franky
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import FRANKY_ERRORS, sentence
from bid_ros.robots.franka.robot import set_load

START_S: Final = 20.0  # of the process that asks
SETTLE_S: Final = 0.3  # until the robot's filtered estimate knows the payload
WATCH_S: Final = 0.5
PAUSE_S: Final = 0.01
REST: Final = 0.01  # rad/s of each joint
CAPABILITIES: Final = 0x20080522  # version 3 of capset(2)
SYS_NICE: Final = 23  # capabilities(7): the right to a real-time priority


def external_force(config: FrankaConfig) -> tuple[float, float, float]:
    """Return the force in N along x, y, z of the base that the robot feels at its tool. Nothing moves.

    The robot compensates gravity by its hand as Desk has it and the payload of the configuration. What is left of the
    measured torques is the estimate.

    Raises:
        ArmError: the robot moves, is used by another client, or does not answer in time.
    """
    # franky holds Python's lock while libfranka connects, and libfranka waits a minute for a robot that does not
    # answer. So it has a process of its own, which can be ended.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(config, theirs), daemon=True)
    process.start()
    theirs.close()
    limit_s = config.connect_timeout_s + SETTLE_S + WATCH_S
    try:
        started = ours.poll(START_S) and ours.recv()
        if started and ours.poll(limit_s):
            told = ours.recv()
        else:
            told = ArmError(f"{_robot(config)} says nothing for {limit_s:g} s; another client may have it")
    except EOFError:
        told = ArmError(f"{_robot(config)}: the process that asks it ended; damaged data can make franky crash")
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(told, ArmError):
        raise told
    x, y, z = told
    return x, y, z


def _robot(config: FrankaConfig) -> str:
    return f"robot at {config.address}"


def _tell(config: FrankaConfig, told: Connection) -> None:
    """Send that this process begins, and then the force as :func:`external_force`, or why there is none."""
    _stay_ordinary()
    told.send(True)
    try:
        told.send(tuple(np.median(_measured(config), axis=0).tolist()))
    except ArmError as error:
        told.send(error)
    except FRANKY_ERRORS as error:
        told.send(ArmError(sentence(config.address, error)))


def _stay_ordinary() -> None:
    """Give up the right to a real-time priority, for this process.

    libfranka would take the highest one. A client whose connection the robot closed asks again without a pause, and
    then takes a whole core from whoever drives that robot.
    """
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    libc = ctypes.CDLL(None)
    header, rights = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if libc.capget(header, rights) == 0:
        rights[0] &= ~(1 << SYS_NICE)  # the first word holds which rights apply
        libc.capset(header, rights)


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
                raise ArmError(f"{_robot(config)} moves; valid is one that rests")
            forces.append(np.asarray(state.O_F_ext_hat_K)[:3])
            time.sleep(PAUSE_S)
        return np.array(forces)
    finally:
        del robot  # an error that is kept would keep the connection too, and a robot has one client
