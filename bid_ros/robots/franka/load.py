"""What a Franka says of itself: the version of its server, and what it feels at its tool beside its payload."""

import socket
import struct
import threading
import time
from concurrent.futures import Future
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
REST: Final = 0.01  # rad/s of each joint
PORT: Final = 1337
CONNECT: Final = struct.Struct("<3I2H")  # command, its number, size of the message; library version, UDP port
ANSWER: Final = struct.Struct("<3IBH")  # the same header; status, version of the server


def firmware(config: FrankaConfig) -> str:
    """Return the version of the robot's server, by which its maker tells the system images that fit a libfranka.

    A client of version 0 is refused with it, so nobody who drives the robot notices. Raises ArmError.
    """
    try:
        with socket.create_connection((config.address, PORT), config.connect_timeout_s) as link:
            link.sendall(CONNECT.pack(0, 1, CONNECT.size, 0, 0))
            *_, version = ANSWER.unpack(link.recv(ANSWER.size, socket.MSG_WAITALL))
    except (OSError, struct.error) as error:
        raise ArmError(f"robot at {config.address} does not say its version: {error}") from error
    return f"FCI server {version}"


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
    threading.Thread(target=work, name="load", daemon=True).start()
    limit_s = config.connect_timeout_s + SETTLE_S + WATCH_S
    try:
        x, y, z = np.median(result.result(limit_s), axis=0).tolist()
    except TimeoutError as error:
        raise ArmError(f"robot at {config.address} says nothing for {limit_s:g} s") from error
    return x, y, z


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
