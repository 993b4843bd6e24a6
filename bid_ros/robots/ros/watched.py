"""A robot that is driven through ROS while somebody watches it: its newest state, what is wrong, and its fault."""

import math
import threading
import time
from dataclasses import replace
from typing import Final

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.base import ArmState
from bid_ros.robots.bus import Bus
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.follower import SetpointFollower
from bid_ros.robots.ros.joints import JointReading
from bid_ros.robots.ros.link import Connection, RosLink, connected

POLL_S: Final = 0.005
AT_REST: Final = 0.02  # rad/s
REST_S: Final = 1.0  # s beyond a stop's own time after which an arm that still moves is a fault


class WatchedRobot:
    """A robot, its state and its fault.

    The state is taken, and judged, where it is asked for. So a robot that falls silent is noticed by the next look.

    Args:
        config: of the robot.
        bus: its topics and actions.

    Attributes:
        lock: guards all of this, and is held for less than a ms.
        connection: while it is connected; None otherwise.
        fault: one sentence, until :meth:`clear`; empty: none.
        following: it follows set-points.
        moving: a joint motion runs.
    """

    def __init__(self, config: RosConfig, bus: Bus) -> None:
        self._config, self._bus = config, bus
        self._where = f"robot at {config.address}"
        self._link, self._late_s = RosLink(config, bus), math.inf  # steady time since which the arm does not follow
        self._kept: ArmState | None = None  # the newest state, for while the robot is connected anew
        self.lock = threading.RLock()
        self.connection: Connection | None = None
        self.fault = ""
        self.following = self.moving = False

    def connect(self) -> None:
        """Wait for the robot; ArmError if something is not there in time, or does not fit. It may be called anew."""
        made = connected(self._config, self._bus, self._link, self.lose)
        with self.lock:
            self.connection = made

    def disconnect(self) -> None:
        """End the gripper's thread and the topics. Keep the last state and the fault."""
        with self.lock:
            self.known()
            connection, self.connection = self.connection, None
        if connection is not None and connection.hand is not None:
            connection.hand.stop()
        self._bus.close()

    def mend(self) -> None:
        """Wait until the robot is there and fit, if need be with a new connection; ArmError if it is not in time."""
        hand = None if self.connection is None else self.connection.hand
        if self.connection is None or (hand is not None and hand.fault):
            self.disconnect()
            self.connect()
        else:
            self._link.wait()

    def clear(self) -> None:
        """Forget the fault."""
        with self.lock:
            self.fault = ""
            self._late_s = math.inf

    def forget(self) -> None:
        """Forget the fault and the last state."""
        with self.lock:
            self._kept, self.fault = None, ""

    def look(self) -> JointReading | None:
        """Take the newest state, and judge it; None while it is not connected. Called under the lock."""
        if self.connection is None:
            return None
        reading = self._link.read()
        problem = self._link.problem(reading) or self._lagging(self.connection.follower, reading.joints)
        if problem:
            self.lose(problem)
        return reading

    def _lagging(self, follower: SetpointFollower, joints: Array) -> str:
        """Return one sentence if joints, measured at ``(n,)`` rad, have not followed for too long, else nothing."""
        config, now_s = self._config, time.monotonic()
        lag, number = follower.lag(joints) if self.following or self.moving else (0.0, 0)
        self._late_s = min(self._late_s, now_s) if lag > config.max_lag else math.inf
        if now_s - self._late_s < config.lag_timeout_s:
            return ""
        what = f"joint '{config.joint_names[number]}' of the {self._where} is {lag:.2f} rad"
        return f"{what} from where it was sent: look whether its controller is active and what holds the arm"

    def known(self) -> ArmState | None:
        """Look, and return the newest state; while it is not connected the last one; None if there never was any."""
        with self.lock:
            reading = self.look()
            if reading is not None and self.connection is not None:
                try:
                    self._kept = self._state(reading, self.connection)
                    return self._kept
                except ArmError as error:  # such as transforms that fell apart, or a gripper's joint that is gone
                    self.lose(str(error))
            if self._kept is not None:
                self._kept = replace(self._kept, gripper_busy=False, in_control=False, fault=self.fault)
            return self._kept

    def ready(self) -> tuple[JointReading, Connection]:
        """Return the newest reading and the connection. Called under the lock.

        Raises:
            ArmError: it is not connected, or a fault is pending.
        """
        reading, connection = self.look(), self.connection
        if reading is None or connection is None:
            raise self.unconnected()
        if self.fault:
            raise ArmError(f"{self.fault}; recover first")
        return reading, connection

    def unconnected(self) -> ArmError:
        """Return the error of a robot that is not connected."""
        return ArmError(f"{self._where} is not connected; connect first")

    def lose(self, reason: str) -> None:
        """Latch a fault and begin a stop."""
        with self.lock:
            self.brake()
            self.fault = self.fault or reason

    def brake(self) -> float:
        """Leave control, begin a stop, and return the s that it takes. Called under the lock."""
        following, self.following = self.following, False
        return self.connection.follower.brake() if following and self.connection is not None else 0.0

    def await_rest(self, seconds: float) -> None:
        """Wait for the end of a stop that takes so many s. An arm that moves on is a fault."""
        end = time.monotonic() + seconds + REST_S
        while not self.fault:
            with self.lock:
                reading = self.look()
            if reading is None or float(np.abs(reading.speeds).max()) < AT_REST:
                return
            if time.monotonic() > end:
                self.lose(f"{self._where} did not stop in time: look at it, then reset")
            time.sleep(POLL_S)

    def _state(self, reading: JointReading, connection: Connection) -> ArmState:
        tool, hand = connection.tool.pose(reading), connection.hand
        return ArmState(
            stamp_ns=tool.stamp_ns,
            joint_positions=reading.joints,
            joint_velocities=reading.speeds,
            tool_position=tool.position,
            tool_quaternion=tool.quaternion,
            gripper_width=math.nan if hand is None else hand.width,
            gripper_busy=hand is not None and hand.busy,
            in_control=self.following,
            fault=self.fault,
        )
