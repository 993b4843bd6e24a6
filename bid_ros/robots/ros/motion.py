"""Joint motions that are waited for: streamed, or as one goal of the joint trajectory controller.

Source: control_msgs, FollowJointTrajectory (error codes); ros2_controllers, ``joint_trajectory_controller.cpp``: a
trajectory of the topic replaces that of a goal, and a goal that is cancelled holds the joints where they are at once.

Source: Flash and Hogan, "The coordination of arm movements", 1985, equation 3 (the minimum-jerk course).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, Self

import numpy as np

from bid_ros.control.trajectory import PEAK_SPEED
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.base import Dynamics
from bid_ros.robots.bus import Bus, Channel, Goal, GoalResult, Values, stamp
from bid_ros.robots.ros.config import JOINT_COMMANDS, RosConfig
from bid_ros.robots.ros.follower import JointFollower
from bid_ros.robots.ros.limits import DriverLimits

PEAK_ACCELERATION: Final = 10 / math.sqrt(3)  # of the course over distance / duration^2
SHORTEST_S: Final = 0.2
PERIOD_S: Final = 0.01  # between two targets
LONGEST_S: Final = 0.03  # by which a course advances from one target to the next, however late that is
STEP_S: Final = 0.1  # between two points of a goal, which the controller joins by cubics
LATE_S: Final = 2.0  # after the end of a course, when a goal must have ended
# s after the newest message of the topic, before a goal is sent: one that comes after a goal would replace it.
QUIET_S: Final = 0.1
CLEAR_S: Final = 1.0  # within which a cancelled goal must have ended
AGAIN_S: Final = 0.05  # between two requests to cancel
EARLY: Final = 0.9  # share of a course before which no goal can have come to its end
WORDS: Final = {
    -1: "the goal is not valid, or was given up for another",
    -2: "it has other joints",
    -3: "the goal is too old",
    -4: "a joint left its path",
    -5: "a joint was not at the goal in time",
}

Step = Callable[[Callable[[], None]], bool]
"""Does something unless the motion must end, under the lock of the driver; returns whether the motion goes on."""


@dataclass(frozen=True)
class MinimumJerkCourse:
    """The minimum-jerk course between two postures.

    Attributes:
        start, offset: ``(n,)`` rad.
        duration_s: s.
    """

    start: Array
    offset: Array
    duration_s: float

    @classmethod
    def between(cls, start: Array, goal: Array, limits: DriverLimits, share: Dynamics) -> Self:
        """Return the course that uses a share of the limits at most; the share of the jerk is ignored."""
        way = limits.way(start, goal)
        distance = np.abs(way)
        by_speed = float((PEAK_SPEED * distance / (share.velocity * limits.speed)).max())
        by_acceleration = math.sqrt(
            PEAK_ACCELERATION * float(distance.max()) / (share.acceleration * limits.acceleration)
        )
        return cls(start, way, max(by_speed, by_acceleration, SHORTEST_S))

    def at(self, seconds: float) -> tuple[Array, Array]:
        """Return joints and speeds ``(n,)``, rad and rad/s, so many s after the start."""
        s = min(max(seconds / self.duration_s, 0.0), 1.0)
        share = 10 * s**3 - 15 * s**4 + 6 * s**5
        rate = (30 * s**2 - 60 * s**3 + 30 * s**4) / self.duration_s
        return self.start + share * self.offset, rate * self.offset


def stream_course(course: MinimumJerkCourse, follow: Callable[[Array, Array], bool]) -> bool:
    """Stream a course and wait for its end. After a pause it goes on from where it was.

    Args:
        course: the course.
        follow: takes joints and speeds ``(n,)``, rad and rad/s, and returns whether to go on.

    Returns:
        Whether it came to its end.
    """
    before, passed = time.monotonic(), 0.0
    while passed < course.duration_s:
        now = time.monotonic()
        before, passed = now, passed + min(now - before, LONGEST_S)
        if not follow(*course.at(passed)):
            return False
        time.sleep(PERIOD_S)
    return True


class MotionExecutor(Protocol):
    """Carries joint motions out."""

    def run(self, course: MinimumJerkCourse, step: Step) -> bool:
        """Go along a course and wait. Return whether it came to its end.

        Raises:
            ArmError: the controller refused it, or gave it up and holds the arm, or does not end it: then
                :meth:`clear` does.
        """

    def leave(self, ended: bool) -> float:
        """Follow nothing any more; brake unless the arm is at rest. Return the s that takes. Does not wait."""

    def clear(self) -> None:
        """End what is left of a motion that did not come to its end, or failed, when the arm is at rest; wait for that.

        Raises:
            ArmError: it does not end.
        """


class StreamedMotion:
    """Streams targets. The arm brakes by itself when they fail to come.

    Args:
        follower: drives the joints.
    """

    def __init__(self, follower: JointFollower) -> None:
        self._follower = follower

    def run(self, course: MinimumJerkCourse, step: Step) -> bool:
        """Go along a course and wait. Return whether it came to its end."""
        return stream_course(course, lambda joints, speeds: step(partial(self._follower.follow, joints, speeds)))

    def leave(self, ended: bool) -> float:
        """Bring the joints to rest where they are; at the end of a course they are."""
        return self._follower.brake()

    def clear(self) -> None:
        """Nothing is left of it."""


class GoalMotion:
    """Sends a goal of FollowJointTrajectory. Its tolerances are the controller's own.

    Args:
        bus: of the robot.
        name: of the action.
        names: of the joints.
        follower: drives the joints elsewhere. It knows where they should be, to notice that they are not.
        address: of the robot.
    """

    def __init__(self, bus: Bus, name: str, names: tuple[str, ...], follower: JointFollower, address: str) -> None:
        self._bus, self._name, self._names, self._follower = bus, name, names, follower
        self._where = f"robot at {address}"
        self._goal: Goal | None = None
        self._rests_s = 0.0  # steady time at which a stop is over

    def begin(self) -> None:
        """Get ready to send goals. Raises ArmError if the type of the action is not there."""
        self._bus.offer(Channel(self._name, "control_msgs/action/FollowJointTrajectory"))

    def run(self, course: MinimumJerkCourse, step: Step) -> bool:
        """Go along a course and wait. Return whether it came to its end."""
        if not self._bus.partners(self._name):
            who = f"{self._where}: nobody takes goals on {self._bus.full_name(self._name)}"
            raise ArmError(f"{who}: start its joint trajectory controller, or set motion: topic in robot.yaml")
        time.sleep(max(0.0, self._follower.sent_s + QUIET_S - time.monotonic()))
        self._goal = None
        if not step(lambda: None):
            return False
        goal = self._goal = self._bus.send_goal(self._name, {"trajectory": trajectory(course, self._names)})
        begun_s = time.monotonic()
        while not goal.done():
            passed_s = time.monotonic() - begun_s
            if not step(partial(self._follower.expect, *course.at(passed_s))):
                return False
            if passed_s > course.duration_s + LATE_S:
                raise ArmError(f"{self._where}: {self._bus.full_name(self._name)} did not end a goal in time")
            time.sleep(PERIOD_S)
        self._judge(goal.ended())
        if time.monotonic() - begun_s < EARLY * course.duration_s:
            raise ArmError(f"{self._where} did not reach the goal: another trajectory took its place")
        return True

    def leave(self, ended: bool) -> float:
        """Bring the joints to rest by the topic, which replaces the goal's trajectory; at its end they are at rest."""
        if ended:
            self._follower.release()
            return 0.0
        stop_s = self._follower.brake()
        self._rests_s = time.monotonic() + stop_s
        return stop_s

    def clear(self) -> None:
        """Cancel the goal, not before the stop is over: its controller holds the joints at once.

        A goal may still be on its way to the controller, which knows nothing of it then. So it is cancelled again and
        again until it has ended.
        """
        time.sleep(max(0.0, self._rests_s - time.monotonic()))
        latest_s = time.monotonic() + CLEAR_S
        while not self._over():
            if time.monotonic() > latest_s:
                what = f"{self._where}: {self._bus.full_name(self._name)} did not cancel a goal"
                raise ArmError(f"{what}: look at the arm, then reset")
            if self._goal is not None:
                self._goal.cancel()
            time.sleep(AGAIN_S)

    def _over(self) -> bool:
        """Return whether no goal runs: it has ended, or was refused."""
        try:
            return self._goal is None or self._goal.done()
        except ArmError:
            return True

    def _judge(self, ended: GoalResult | None) -> None:
        """Raise ArmError if a goal ended otherwise than at its end."""
        if ended is None or (ended.status == "succeeded" and ended.result.error_code == 0):
            return
        if ended.status == "canceled":
            raise ArmError(f"{self._where} did not reach the goal: somebody cancelled it")
        if ended.status == "unknown":
            raise ArmError(
                f"{self._where} did not reach the goal: its controller knows nothing of it; was it restarted?"
            )
        code, text = ended.result.error_code, " ".join(ended.result.error_string.split())
        words = WORDS.get(code, f"error {code}")
        raise ArmError(f"{self._where} did not reach the goal: {words} ({text or 'its controller says no more'})")


def trajectory(course: MinimumJerkCourse, names: tuple[str, ...]) -> Values:
    """Return a course as values of a ``trajectory_msgs/msg/JointTrajectory`` that begins when it arrives."""
    count = max(2, math.ceil(course.duration_s / STEP_S))
    times = [course.duration_s * number / count for number in range(1, count + 1)]
    rows = [course.at(seconds) for seconds in times]
    points = [
        {
            "positions": joints.tolist(),
            "velocities": speeds.tolist(),
            "time_from_start": stamp(round(seconds * NANOSECONDS)),
        }
        for seconds, (joints, speeds) in zip(times, rows, strict=True)
    ]
    return {"joint_names": list(names), "points": points}


def joint_motion(config: RosConfig, bus: Bus, follower: JointFollower) -> MotionExecutor:
    """Return what carries a robot's joint motions out. Raises ArmError if a message type is not there."""
    if not config.motion_action:
        return StreamedMotion(follower)
    made = GoalMotion(bus, config.motion_action, config.joint_names, follower, config.address)
    made.begin()
    return made


def not_by_joints(config: RosConfig, purpose: str) -> ArmError:
    """Return the error for a purpose that needs an arm that is driven with joint positions."""
    what = f"robot at {config.address} is driven with a {config.command}"
    return ArmError(f"{what}; valid for {purpose} is command: {' or '.join(JOINT_COMMANDS)}")
