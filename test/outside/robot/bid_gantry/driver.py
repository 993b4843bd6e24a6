"""The driver: a :class:`bid_ros.robots.base.Arm`."""

from __future__ import annotations

import math
import socket
import threading
import time
from typing import Annotated

import numpy as np

from bid_gantry.link import PORT, SETPOINT, STATE, receive
from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.settings import BY_CALLER, Positive, settings
from bid_ros.robots.base import ArmInfo, ArmState, Array, Dynamics
from bid_ros.robots.gripper import GripperThresholds

DOWN = np.array([1.0, 0.0, 0.0, 0.0])  # xyzw: the tool always points down
NOTHING = math.nan
ANSWER_S = 1.0


@settings(error=ArmError)
class GantryConfig:
    """What ``robot.yaml`` may say.

    Attributes:
        address: host name or IP address.
        twin: whether that is the twin's.
        joint_speed: of a motion to joint positions, m/s.
        gripper_thresholds: when a width means open and closed.
    """

    address: Annotated[str, BY_CALLER]
    twin: Annotated[bool, BY_CALLER] = False
    joint_speed: Positive = 0.1
    gripper_thresholds: GripperThresholds = GripperThresholds(0.03, 0.06)


class GantryArm:
    """One TCP connection: set-points go out, a thread takes the states that answer them."""

    def __init__(self, config: GantryConfig) -> None:
        self._config = config
        self._socket: socket.socket | None = None
        self._newest = (0, np.zeros(4))  # stamp in ns; x, y, z and opening in m
        self._width, self._in_control, self._fault = NOTHING, False, ""

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        return ArmInfo("gantry", self._config.address, ("slide_x", "slide_y", "slide_z"), ("finger",), 0.08)

    def connect(self) -> None:
        """Connect, without moving."""
        self.close()
        try:
            connection = socket.create_connection((self._config.address, PORT), timeout=ANSWER_S)
            connection.sendall(SETPOINT.pack(NOTHING, NOTHING, NOTHING, NOTHING))
            self._take(receive(connection, STATE.size))
        except OSError as error:
            raise ArmError(f"gantry at {self._config.address} does not answer: {error}") from error
        connection.settimeout(None)
        self._socket, self._width, self._fault = connection, float(self._newest[1][3]), ""
        threading.Thread(target=self._listen, args=(connection,), name="gantry", daemon=True).start()

    def state(self) -> ArmState:
        """Return the newest state; it does not wait."""
        if self._socket is None:
            raise ArmError("the gantry is not connected")
        stamp_ns, values = self._newest
        position, width, still = values[:3], float(values[3]), np.zeros(3)
        busy = abs(width - self._width) > 1e-4
        return ArmState(stamp_ns, position, still, position, DOWN, width, busy, self._in_control, self._fault)

    def start(self) -> None:
        """Follow set-points from now on."""
        if self.state().fault:
            raise ArmError(self._fault)
        self._in_control = True

    def command(self, setpoint: Setpoint) -> None:
        """Send a set-point; it does not wait for the answer."""
        if not self._in_control or self._fault:
            raise ArmError(self._fault or "the gantry is not in control")
        self._send(setpoint.position)

    def command_gripper(self, width: float) -> None:
        """Ask for an opening in m; the next set-point carries it."""
        if not math.isfinite(width):
            raise ArmError(f"the opening is {width} m; valid is a finite number")
        self._width = min(max(width, 0.0), self.info.gripper_max)

    def stop(self) -> None:
        """Leave control: without set-points the slides stand still."""
        self._in_control = False

    def recover(self) -> None:
        """Connect anew, which clears a fault."""
        self.connect()

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move the slides in a straight line, and wait."""
        begin = self.state().joint_positions
        seconds = float(np.linalg.norm(positions - begin)) / self._config.joint_speed
        for share in np.linspace(0.0, 1.0, max(2, round(100 * seconds))):
            self._send(begin + share * (positions - begin))
            time.sleep(0.01)
        self._in_control = False

    def close(self) -> None:
        """Disconnect, which ends the thread."""
        self._in_control = False
        if self._socket is not None:
            connection, self._socket = self._socket, None
            connection.close()

    def _send(self, position: Array) -> None:
        try:
            assert self._socket is not None
            self._socket.sendall(SETPOINT.pack(*position, self._width))
        except OSError as error:
            raise ArmError(f"the gantry takes no set-point: {error}") from error

    def _listen(self, connection: socket.socket) -> None:
        try:
            while data := receive(connection, STATE.size):
                self._take(data)
        except OSError:
            pass
        if self._socket is connection:
            self._fault = f"the gantry at {self._config.address} has closed the connection"

    def _take(self, data: bytes) -> None:
        if not data:
            raise ConnectionError("it closes the connection")
        self._newest = time.time_ns(), np.array(STATE.unpack(data))
