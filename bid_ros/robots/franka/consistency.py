"""Whether the states of a Franka agree with each other, with the arm's kinematics, and with what was commanded.

How near honest states come to the limits is in ``docs/explanation/stopping.md``.
"""

import math
from typing import Final

from bid_ros.control.spatial import Pose, add, apart, multiply, rotated
from bid_ros.core.margins import Margins
from bid_ros.robots.consistency import JointTravel
from bid_ros.robots.course import JointCourse, ToolCourse
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.kinematics import flange_pose
from bid_ros.robots.franka.reading import FrankaReading
from bid_ros.robots.franka.speeds import SaidSpeeds
from bid_ros.robots.franka.torques import SENT, ToldTorques

# No joint of a Franka turns faster than 5.26 rad/s, and no tool is faster than 3 m/s.
FASTEST: Final = 6.0
FASTEST_M: Final = 3.5
FASTEST_RAD: Final = 12.0
# How far a joint may be from where its speed leads, rad, and s, times its speed: 2.4 times what states of an FR3 say.
JOINT: Final = (0.005, 0.01)
# Largest step of a joint's speed, rad/s and rad/s^2: five times what states of an FR3 say.
SPEED_STEP: Final = 0.15
ACCELERATION: Final = 25.0
# Joints and speeds of a twin may be off by so many times as much: contacts in a simulation are hard.
TWIN_SPEEDS: Final = 2.0
# And where its joints lead, by so many: states 4 ms apart tell little of a wrist that swings 50 times a second.
TWIN_SWING: Final = 4.0
# Largest acceleration of a twin's joint, rad/s^2: 12 Nm on a wrist's 0.074 kg m^2. A busy computer holds its client up
# for some ms, and the last torque stays. A robot would stop before that by a reflex of its own.
TWIN_ACCELERATION: Final = 165.0
# A step of the pose that is too small to tell anything, m and rad.
STEP_M: Final = 0.005
STEP_RAD: Final = 0.05
# A state outside these bounds was damaged on its way.
MOST_RAD: Final = 5.0
MOST_RAD_S: Final = 20.0
MOST_M: Final = 2.0
# How far the tool may be from where joints and lengths put it, m and rad. The robot computes it from its joints alike.
TOOL_M: Final = 0.005
TOOL_RAD: Final = 0.05
# franky-sim may say the pose of the joints that it wants: m and rad more a rad/s of a joint. So does a robot, perhaps,
# while positions are commanded.
TOOL_LAG: Final = 0.05
# One state in so many is compared with the kinematics, which takes longer than all else.
COMPARED: Final = 4
# Joints, speeds, tool or torques may not stay in every bit for this long, ms, while a joint says that it turns faster
# than this, rad/s.
FROZEN_MS: Final = 20
FROZEN_RAD_S: Final = 0.02
# Largest torque of each joint, Nm, and its largest change, Nm/ms: twice what a robot takes. After the begin of control
# the torque is the robot's own for a moment, ms.
MOST_TORQUE: Final = (88.0, 88.0, 88.0, 88.0, 13.0, 13.0, 13.0)
TORQUE_RATE: Final = 2.0
TORQUE_STEP: Final = 1.0
TAKEN_OVER_MS: Final = 50
TORQUE_CHANGED: Final = "a torque changed"
# An arm under impedance follows its set-points within this time, s, and is then as far away as the largest force or
# torque pulls it. A limit of twice that is not reached by an arm that something holds.
LAG_S: Final = 0.15
REACH: Final = 2.0


def tool_error(tool: Pose, reading: FrankaReading) -> tuple[float, float]:
    """Return how far the tool is from where joints and lengths put it, m and rad.

    Args:
        tool: of the robot, in its flange.
        reading: a state.
    """
    flange = flange_pose(reading.joints)
    place = add(flange.position, rotated(flange.quaternion, tool.position))
    return apart(Pose(place, multiply(flange.quaternion, tool.quaternion)), reading.pose)


class FrankaConsistency:
    """Compares every state of a robot with the one before it and with the arm's kinematics.

    Args:
        tool: of the robot, in its flange.
        first: a state.
        margins: where to note how near to the limits it comes.
        twin: whether it is one of franky-sim.
    """

    def __init__(self, tool: Pose, first: FrankaReading, margins: Margins, twin: bool = False) -> None:
        self._twin = twin
        self._tool, self._before, self._margins = tool, first, margins
        self._room = TWIN_SPEEDS if twin else 1.0
        most_rad, most_s = JOINT
        most = (self._room * most_rad, self._room * most_s)
        self._travel = JointTravel(first.joints, first.joint_speeds, FASTEST, most, margins)
        begin_s = first.robot_ms / 1000.0
        swing = TWIN_SWING if twin else 1.0
        self._speeds = SaidSpeeds(begin_s, first.joints, first.joint_speeds, swing, margins)
        self._told = ToldTorques(first.robot_ms, margins)
        # When each last changed in a bit.
        self._changed_ms = dict.fromkeys(("joint", "tool", "speed", "torque"), first.robot_ms)
        self._count = 0
        self._controlled_ms: int | None = None

    def begin(self) -> None:
        """Torques are commanded from the next state on."""
        self._controlled_ms = self._before.robot_ms
        self._told.begin()

    def end(self) -> None:
        """No torques are commanded any more."""
        self._controlled_ms = None

    def doubt(self, reading: FrankaReading) -> str:
        """Return what in the newest state does not agree, measured value beside the limit; empty if all does."""
        before, self._before = self._before, reading
        step_ms = reading.robot_ms - before.robot_ms
        step_s = step_ms / 1000.0
        return (
            _impossible(reading)
            or self._speed_step(before, reading, step_s)
            or self._travel.doubt(reading.joints, reading.joint_speeds, step_s, (step_s, step_s))
            or self._speeds.doubt(reading.robot_ms / 1000.0, reading.joints, reading.joint_speeds)
            or self._frozen(before, reading)
            or self._step(before.pose, reading.pose, step_s)
            or self._placed(reading)
            or self._torque(before, reading, step_ms)
            or self._sent(reading)
        )

    def _speed_step(self, before: FrankaReading, reading: FrankaReading, step_s: float) -> str:
        pairs = zip(reading.joint_speeds, before.joint_speeds, strict=True)
        step, joint = max((abs(now - then), number) for number, (now, then) in enumerate(pairs, 1))
        most = SPEED_STEP * self._room + (TWIN_ACCELERATION if self._twin else ACCELERATION) * step_s
        if self._margins.over("speed step", step, most):
            return (
                f"joint {joint} was {step:.2f} rad/s slower or faster {step_s:.3f} s before; valid is up to {most:.2f}"
            )
        return ""

    def _frozen(self, before: FrankaReading, reading: FrankaReading) -> str:
        changed = self._changed_ms
        if reading.joints != before.joints:
            changed["joint"] = reading.robot_ms
        if reading.joint_speeds != before.joint_speeds:
            changed["speed"] = reading.robot_ms
        # Without control franky-sim says the pose of the joints that it wants, which stand.
        if reading.pose != before.pose or self._controlled_ms is None:
            changed["tool"] = reading.robot_ms
        # The client of a twin may be held up, and the torques stay as they were.
        if reading.torques != before.torques or self._controlled_ms is None or self._twin:
            changed["torque"] = reading.robot_ms
        what = min(changed, key=changed.__getitem__)
        still_ms, speed = reading.robot_ms - changed[what], max(map(abs, reading.joint_speeds))
        if speed <= FROZEN_RAD_S or not self._margins.over("frozen", still_ms, FROZEN_MS):
            return ""
        turns = f"a joint turns at {speed:.2f} rad/s"
        return f"no {what} has changed for {still_ms} ms, though {turns}; valid is up to {FROZEN_MS} ms"

    def _step(self, before: Pose, pose: Pose, step_s: float) -> str:
        way, turn = apart(before, pose)
        most_m, most_rad = STEP_M + FASTEST_M * step_s, STEP_RAD + FASTEST_RAD * step_s
        if self._margins.over("tool step", way, most_m):
            return f"the tool was {1000 * way:.0f} mm away {step_s:.3f} s before; valid is up to {1000 * most_m:.0f} mm"
        if self._margins.over("turn step", turn, most_rad):
            return f"the tool was turned by {turn:.2f} rad {step_s:.3f} s before; valid is up to {most_rad:.2f}"
        return ""

    def _placed(self, reading: FrankaReading) -> str:
        self._count += 1
        if self._count % COMPARED:
            return ""
        off_m, off_rad = tool_error(self._tool, reading)
        lag = (
            0.0
            if self._controlled_ms is not None and not self._twin
            else TOOL_LAG * max(map(abs, reading.joint_speeds))
        )
        most_m, most_rad = TOOL_M + lag, TOOL_RAD + lag
        if self._margins.over("tool", off_m, most_m):
            mm, most = 1000 * off_m, 1000 * most_m
            return f"the tool is {mm:.0f} mm from where the joints put it; valid is up to {most:.0f} mm"
        if self._margins.over("turn", off_rad, most_rad):
            what = f"the tool is turned by {off_rad:.2f} rad from where the joints put it"
            return f"{what}; valid is up to {most_rad:.2f}"
        return ""

    def _torque(self, before: FrankaReading, reading: FrankaReading, step_ms: int) -> str:
        taken_over = self._controlled_ms is not None and reading.robot_ms - self._controlled_ms >= TAKEN_OVER_MS
        if not (taken_over and reading.moves):
            return ""
        shares = [abs(torque) / most for torque, most in zip(reading.torques, MOST_TORQUE, strict=True)]
        joint = next((number for number, share in enumerate(shares) if not share <= 1.0), shares.index(max(shares)))
        if self._margins.over("torque", abs(reading.torques[joint]), MOST_TORQUE[joint]):
            torque, most = reading.torques[joint], MOST_TORQUE[joint]
            return f"the torque of joint {joint + 1} is {torque:.0f} Nm; valid is up to {most:.0f}"
        change = max(abs(now - then) for now, then in zip(reading.torques, before.torques, strict=True))
        most = TORQUE_STEP + TORQUE_RATE * step_ms
        if self._margins.over("torque step", change, most):
            return f"{TORQUE_CHANGED} by {change:.1f} Nm in {step_ms} ms; valid is up to {most:.1f}"
        return ""

    def _sent(self, reading: FrankaReading) -> str:
        if self._controlled_ms is not None and reading.sent is not None and reading.moves:
            return self._told.doubt(reading.robot_ms, reading.torques, reading.sent)
        if self._controlled_ms is not None:
            self._margins.skip(SENT)
        self._told.unknown(reading.robot_ms)
        return ""


def _impossible(reading: FrankaReading) -> str:
    """Return which number of a state is damaged; empty if none is."""
    # Comparisons with NaN are false, so NaN is never within a bound.
    if not all(abs(angle) <= MOST_RAD for angle in reading.joints):
        return f"its joints are {_numbers(reading.joints)} rad; valid is within +-{MOST_RAD:g}"
    if not all(abs(speed) <= MOST_RAD_S for speed in reading.joint_speeds):
        return f"its joints turn at {_numbers(reading.joint_speeds)} rad/s; valid is within +-{MOST_RAD_S:g}"
    if not all(abs(value) <= MOST_M for value in reading.pose.position):
        return f"its tool is at {_numbers(reading.pose.position)} m; valid is within +-{MOST_M:g}"
    length = math.sqrt(sum(value * value for value in reading.pose.quaternion))
    return "" if abs(length - 1.0) < 0.01 else f"its tool's quaternion has the length {length:.2f}; valid is 1"


def _numbers(values: tuple[float, ...]) -> str:
    return "[" + ", ".join(f"{value:.2f}" for value in values) + "]"


def tool_course(config: FrankaConfig, margins: Margins) -> ToolCourse:
    """Return the comparison of the tool with its set-points, by the stiffness that pulls it there."""
    most_m = REACH * config.max_force / config.translational_stiffness
    return ToolCourse(LAG_S, most_m, REACH * config.max_torque / config.rotational_stiffness, margins)


def joint_course(config: FrankaConfig, margins: Margins) -> JointCourse:
    """Return the comparison of the joints with their set-points, by the stiffness that pulls them there."""
    most = tuple(REACH * config.max_joint_torque / stiffness for stiffness in config.joint_stiffness)
    return JointCourse(LAG_S, most, margins)
