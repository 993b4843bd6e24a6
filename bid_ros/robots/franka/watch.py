"""Watches an open Franka: keeps its newest state, and detects that it cannot go on or is lost, and why."""

from typing import Final

from bid_ros.control.spatial import Pose, apart
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.fault_words import CLOCK_GAINED
from bid_ros.core.margins import Margins
from bid_ros.robots.age import StateAge
from bid_ros.robots.consistency import MEMORY_S
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.consistency import TORQUE_CHANGED, FrankaConsistency, joint_course, tool_course
from bid_ros.robots.franka.reading import FrankaReading
from bid_ros.robots.protocol import TimedJoints, TimedSetpoint
from bid_ros.robots.unheard import RESTING_TWIN_S, Unheard, late_text

MS: Final = 1_000_000
# A robot that receives fewer of the commands of the last 100 ms follows them badly, and soon stops by itself. It counts
# from this long after it has begun to follow. A busy computer holds a twin's client up for a moment, so a twin must
# receive too few for some time.
LEAST_RATE: Final = 0.5
SETTLED_MS: Final = 200
LOW_TWIN_MS: Final = 200
# A twin brakes by itself after 20 commands lost in a row.
BRAKED_RATE: Final = 0.8
OVERTAKEN_MS: Final = 20
# A robot that made so much less time than passed within MEMORY_S, s, may follow so late that nothing can be said of it.
STALLED_S: Final = 0.03
# An arm that stands in every bit for this long, ms, after its set-points went so far, m and rad, is frozen: a robot has
# noise, and a twin's joints give way to the smallest torque. franky, beside a twin, may have to wait for a core.
STILL_MS: Final = 20
STILL_TWIN_MS: Final = 200
STILL_M: Final = 0.001
STILL_RAD: Final = 0.002
# A set-point this far from the one before it, m and rad, is a jump. Where the arm is then, it may still be for a while.
JUMP_M: Final = 0.03
JUMP_RAD: Final = 0.2


class FrankaWatch:
    """Judges each state of the robot once.

    A robot that is silent, late, or contradicts itself is lost: the connection must be given up at once, so that the
    robot's own watchdog stops it, without any of its states. A state that cannot be believed is not passed on.

    A twin on a busy computer makes less time than passes, so its states grow old by its clock. That is not held against
    it, and neither are commands that it misses for a moment, how far it is behind its set-points, nor a short silence
    at rest.

    Args:
        config: of the arm.
        tool: of the robot, in its flange.
        first: a state.

    Attributes:
        reading: newest state that can be believed.
        margins: largest share of each limit in the comparisons of states.
    """

    def __init__(self, config: FrankaConfig, tool: Pose, first: FrankaReading) -> None:
        self._config = config
        self.reading = first
        self.margins = Margins()
        self._silence = Unheard(config.state_timeout_s)
        self._age = StateAge(first.robot_ms * MS, first.even_ns)
        self._late_ns = 0
        self._stalled_s = 0.0
        self._consistency = FrankaConsistency(tool, first, self.margins, config.twin)
        self._tool, self._joints = tool_course(config, self.margins), joint_course(config, self.margins)
        self._begun_ms: int | None = None
        self._enough_ms = first.robot_ms  # when enough of the last 100 commands came
        self._sent_pose, self._sent_joints = self._still_pose, self._still_joints = first.pose, first.joints
        self._still_ms = first.robot_ms
        self._doubt = ""

    def begin(self, joints: bool, now_ns: int) -> None:
        """The robot follows set-points of the joints, or of the tool, from where it is."""
        self._begun_ms = self._enough_ms = self.reading.robot_ms
        self._silence = Unheard(self._config.state_timeout_s)
        self._sent_pose, self._sent_joints = self.reading.pose, self.reading.joints
        self._consistency.begin()
        if joints:
            self._joints.begin(self.reading.joints, self.reading.joints, now_ns)
        else:
            self._tool.begin(self.reading.pose, self.reading.pose, now_ns)

    def sent(self, setpoint: TimedSetpoint | TimedJoints, now_ns: int) -> None:
        """Note which set-point the robot follows at ``now_ns``."""
        if isinstance(setpoint, TimedJoints):
            way = max(abs(a - b) for a, b in zip(setpoint.positions, self._sent_joints, strict=True))
            self._sent_joints = setpoint.positions
            if way > JUMP_RAD:
                self._joints.begin(setpoint.positions, self.reading.joints, now_ns)
            self._joints.sent(setpoint.positions, now_ns)
            return
        pose = Pose(setpoint.position, setpoint.quaternion)
        way, turn = apart(pose, self._sent_pose)
        self._sent_pose = pose
        if way > JUMP_M or turn > JUMP_RAD:
            self._tool.begin(pose, self.reading.pose, now_ns)
        self._tool.sent(pose, now_ns)

    def move(self) -> None:
        """A joint motion begins. How long the robot was silent at rest does not count any more."""
        self._silence = Unheard(self._config.state_timeout_s)

    def end(self) -> None:
        """The robot follows nothing any more."""
        self._begun_ms = None
        self._consistency.end()
        self._tool.end()
        self._joints.end()

    def look(self, newest: FrankaReading, now_ns: int, at_rest: bool = False) -> str:
        """Judge the newest state. Return one sentence on why the robot is lost; empty if it is not.

        Args:
            newest: state.
            now_ns: steady time in ns.
            at_rest: nothing moves the arm: no set-point, no joint motion, and no stop that goes on.
        """
        where, end = f"robot at {self._config.address}", "then reset"
        silent_s = self._silence.look(newest.robot_ms, now_ns)
        # While nothing is controlled, a state that was on its way may be read after a newer one.
        ahead_ms = newest.robot_ms - self.reading.robot_ms
        known = ahead_ms == 0 or (self._begun_ms is None and -OVERTAKEN_MS <= ahead_ms < 0)
        if not self._doubt and not known:
            self._late_ns = self._age.late_ns(newest.robot_ms * MS, newest.even_ns)
            if doubt := self._doubt_of(newest):
                self._doubt = self._told(doubt, newest)
            else:
                self.reading = newest
        if self._doubt:
            return f"{where} {self._doubt}, {end}"
        resting = self._config.twin and at_rest
        if self.margins.over("silence", silent_s, RESTING_TWIN_S if resting else self._silence.limit_s):
            said = late_text(f"has been silent for {silent_s:.2f} s", "check cable and power", self._config.twin)
            return f"{where} {said}, {end}"
        late_s = self._late_ns / NANOSECONDS
        if not self._config.twin and self.margins.over("age", late_s, self._config.state_timeout_s):
            return f"{where} is heard {late_s:.2f} s late: check what delays its network, {end}"
        if self._starved(newest):
            rate = f"{100 * newest.success_rate:.0f} % of the last 100 commands"
            valid = f"valid is at least {100 * LEAST_RATE:.0f} %"
            return f"{where} {late_text(f'received {rate}; {valid}', 'check its network', self._config.twin)}, {end}"
        return ""

    def _told(self, doubt: str, newest: FrankaReading) -> str:
        """Return what a doubt tells. A twin that lost many commands brakes by itself, so its torques step."""
        if self._config.twin and doubt.startswith(TORQUE_CHANGED) and newest.success_rate <= BRAKED_RATE:
            said = f"received {100 * newest.success_rate:.0f} % of the last 100 commands, so it braked"
            return late_text(said, "check its network", twin=True)
        return f"contradicts itself, {doubt}: compare it with what Desk shows"

    def _still(self, newest: FrankaReading) -> str:
        """Return for how long no joint changed in a bit though the set-points went on; empty if that is short."""
        if newest.joints != self.reading.joints or self._begun_ms is None:
            self._still_pose, self._still_joints = self._sent_pose, self._sent_joints
        way, turn = apart(self._sent_pose, self._still_pose)
        joint = max(abs(a - b) for a, b in zip(self._sent_joints, self._still_joints, strict=True))
        if way <= STILL_M and max(turn, joint) <= STILL_RAD:
            self._still_ms = newest.robot_ms
        still_ms, most_ms = newest.robot_ms - self._still_ms, STILL_TWIN_MS if self._config.twin else STILL_MS
        if self.margins.over("still", still_ms, most_ms):
            return f"no joint has moved for {still_ms} ms after its set-points went on; valid is up to {most_ms} ms"
        return ""

    def _starved(self, newest: FrankaReading) -> bool:
        """Whether too few of the commands of a motion that has gone on for a while arrive."""
        if newest.success_rate >= LEAST_RATE or not newest.moves:
            self._enough_ms = newest.robot_ms
        settled = self._begun_ms is not None and newest.robot_ms - self._begun_ms > SETTLED_MS
        if not (newest.moves and settled):
            return False
        if self._config.twin:
            return self.margins.over("lost commands", newest.robot_ms - self._enough_ms, LOW_TWIN_MS)
        return self.margins.over("lost commands", 1.0 - newest.success_rate, 1.0 - LEAST_RATE)

    def _doubt_of(self, newest: FrankaReading) -> str:
        """Return what in a state contradicts the one before it, its kinematics or the set-points; empty if nothing."""
        back_ms = self.reading.robot_ms - newest.robot_ms
        if back_ms > 0:
            return f"its time stepped back by {back_ms} ms; valid is none"
        gained_s, most_s = self._age.gained_ns / NANOSECONDS, self._config.state_timeout_s
        if self.margins.over("clock", gained_s, most_s):
            return f"{CLOCK_GAINED} {gained_s:.2f} s on this computer's; valid is up to {most_s:.2f} s"
        passed_s, made_s = (newest.even_ns - self.reading.even_ns) / NANOSECONDS, -back_ms / 1000.0
        kept = max(0.0, 1.0 - passed_s / MEMORY_S)
        self._stalled_s = max(0.0, kept * self._stalled_s + passed_s - made_s)
        found = self._consistency.doubt(newest) or self._still(newest)
        followed = not self._config.twin and self._stalled_s < STALLED_S
        for course in (self._tool, self._joints) if followed else ():
            found = found or course.doubt(newest, newest.steady_ns, self._stalled_s)
        return found
