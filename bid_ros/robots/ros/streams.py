"""How joint targets reach a controller of ros2_control: as short trajectories, or as positions.

Source: ros2_controllers, "joint_trajectory_controller" (trajectory representation, trajectory replacement) and
"forward_command_controller" (control.ros.org).
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array
from bid_ros.robots.bus import Bus, Channel, Values, stamp

SHORTEST_S: Final = 0.02  # of a stop
STEP_S: Final = 0.01  # between two positions of a stop
MOMENT_S: Final = 0.03  # after which joints that got no new position stand


@dataclass(frozen=True)
class TimedTarget:
    """Where the joints should be at an instant.

    Attributes:
        stamp_ns: wall time, ns.
        joints, speeds: ``(n,)`` rad and rad/s.
    """

    stamp_ns: int
    joints: Array
    speeds: Array

    def at(self, ahead_s: float) -> Array:
        """Return the joints ``(n,)`` rad so many s later, at constant speed."""
        return self.joints + ahead_s * self.speeds


class TargetStream(Protocol):
    """A stream of joint targets."""

    def begin(self) -> None:
        """Get ready to publish. Raises ArmError for an unknown message type."""

    def follow(self, target: TimedTarget, stop_s: float) -> None:
        """Publish a target, from which the joints could come to rest in ``stop_s`` s. Does not wait."""

    def brake(self, target: TimedTarget, stop_s: float) -> None:
        """Bring the joints to rest, in ``stop_s`` s from a target on. Does not wait."""

    def reference(self, target: TimedTarget, stop_s: float, now_ns: int) -> TimedTarget:
        """Return where the joints should be at ``now_ns`` if nothing came after a target."""


def braking(target: TimedTarget, ahead_s: float, stop_s: float) -> Array:
    """Return where joints stand ``(n,)`` rad that go on for ``ahead_s`` s, then brake evenly for ``stop_s`` s."""
    return target.at(ahead_s + stop_s / 2)


class TrajectoryStream:
    """Short trajectories for a joint trajectory controller. Each one ends at rest.

    A message carries the target for now, where the joints are a little later at the same speed, and where they then
    come to rest. The next message replaces it. So the robot brakes by itself when messages fail to come, even if this
    computer is dead. The first point is at the very start: the controller need not bridge from the measured joints
    to the first point, which would make it lag. Stamped messages are followed at the same time however late they
    arrive, if the clocks of both computers agree.

    Args:
        bus: of the robot.
        topic: of ``trajectory_msgs/msg/JointTrajectory``.
        names: of the joints.
        ahead_s: s before it brakes.
        stamped: a trajectory begins at the time of its target; False: when it arrives.
    """

    def __init__(self, bus: Bus, topic: str, names: tuple[str, ...], ahead_s: float, stamped: bool = True) -> None:
        self._bus, self._topic, self._names, self._ahead_s = bus, topic, list(names), ahead_s
        self._stamped = stamped

    def begin(self) -> None:
        """Get ready to publish."""
        self._bus.offer(Channel(self._topic, "trajectory_msgs/msg/JointTrajectory"))

    def follow(self, target: TimedTarget, stop_s: float) -> None:
        """Publish a target and the stop that follows it."""
        self._publish(target, self._ahead_s, stop_s)

    def brake(self, target: TimedTarget, stop_s: float) -> None:
        """Publish the stop alone."""
        self._publish(target, 0.0, stop_s)

    def reference(self, target: TimedTarget, stop_s: float, now_ns: int) -> TimedTarget:
        """Return where the trajectory of a target is: on its way, braking, or at rest."""
        passed_s, stop_s = max(0, now_ns - target.stamp_ns) / NANOSECONDS, max(stop_s, SHORTEST_S)
        braked_s = min(max(0.0, passed_s - self._ahead_s), stop_s)
        joints = target.at(min(passed_s, self._ahead_s) + braked_s - braked_s**2 / (2 * stop_s))
        return TimedTarget(now_ns, joints, target.speeds * (1 - braked_s / stop_s))

    def _publish(self, target: TimedTarget, ahead_s: float, stop_s: float) -> None:
        stop_s = max(stop_s, SHORTEST_S)
        points = [_point(0.0, target.joints, target.speeds)]
        if ahead_s > 0:
            points.append(_point(ahead_s, target.at(ahead_s), target.speeds))
        # Between two points with velocities the controller interpolates by a cubic: here it brakes evenly.
        points.append(_point(ahead_s + stop_s, braking(target, ahead_s, stop_s), np.zeros(len(target.joints))))
        header = {"stamp": stamp(target.stamp_ns if self._stamped else 0)}
        self._bus.publish(self._topic, {"header": header, "joint_names": self._names, "points": points})


def _point(seconds: float, joints: Array, speeds: Array) -> Values:
    since = stamp(round(seconds * NANOSECONDS))
    return {"positions": joints.tolist(), "velocities": speeds.tolist(), "time_from_start": since}


class ForwardStream:
    """Joint positions for a forward position controller, which holds the last one.

    It cannot brake by itself: a stop is streamed. If this computer dies, the joints hold the last position at once.

    Args:
        bus: of the robot.
        topic: of ``std_msgs/msg/Float64MultiArray``.
        sleep: waits so many s.
    """

    def __init__(self, bus: Bus, topic: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._bus, self._topic, self._sleep = bus, topic, sleep
        self._newest = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Get ready to publish."""
        self._bus.offer(Channel(self._topic, "std_msgs/msg/Float64MultiArray"))

    def follow(self, target: TimedTarget, stop_s: float) -> None:
        """Publish a target. A stop that still runs ends."""
        with self._lock:
            self._newest += 1
            self._publish(target.joints)

    def brake(self, target: TimedTarget, stop_s: float) -> None:
        """Stream the stop from a thread of its own."""
        with self._lock:
            self._newest += 1
            own = self._newest
        thread = threading.Thread(target=self._stop, args=(own, target, stop_s), name="brake", daemon=True)
        thread.start()

    def reference(self, target: TimedTarget, stop_s: float, now_ns: int) -> TimedTarget:
        """Return the target itself, which is held; it still moves if it is a moment old."""
        moves = now_ns - target.stamp_ns < MOMENT_S * NANOSECONDS
        return TimedTarget(now_ns, target.joints, target.speeds * moves)

    def _stop(self, own: int, target: TimedTarget, stop_s: float) -> None:
        steps = max(2, round(max(stop_s, SHORTEST_S) / STEP_S))
        for step in range(1, steps + 1):
            passed = step / steps  # 0 to 1, of the time of the stop
            with self._lock:
                if self._newest != own:
                    return
                self._publish(target.at(max(stop_s, SHORTEST_S) * (passed - passed**2 / 2)))
            self._sleep(STEP_S)

    def _publish(self, joints: Array) -> None:
        self._bus.publish(self._topic, {"data": joints.tolist()})
