"""Arm node: follows safe chunks on the robot, and stops it by itself when a node that it depends on falls silent."""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from std_srvs.srv import Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import Heartbeat, SafetyState
from bid_ros.control.servo_base import ServoMode, ServoOutput
from bid_ros.control.settling import Settling
from bid_ros.core import topics
from bid_ros.core.clocks import read_clocks
from bid_ros.core.deadline import Deadlines
from bid_ros.core.errors import ArmError
from bid_ros.core.listening import Listening
from bid_ros.core.margins import SAID, Margins
from bid_ros.core.schedule import PeriodicThread, Tick
from bid_ros.episodes.causes import ARM_ENDS
from bid_ros.nodes.arm_parameters import PARAMETERS
from bid_ros.nodes.arm_report import ArmReport
from bid_ros.nodes.arm_servo import begin_at, build_servo, follow
from bid_ros.nodes.base import COMMAND_PRIORITY, BidNode
from bid_ros.nodes.grants import subscribe_grants
from bid_ros.nodes.joints import arm_of
from bid_ros.nodes.obeyed_chunk import ObeyedChunks
from bid_ros.nodes.ros_bus import NodeBus
from bid_ros.nodes.sole_publishers import SolePublishers
from bid_ros.robots.base import CheckedArm, JointArm
from bid_ros.robots.connecting import connect
from bid_ros.robots.registry import ROBOTS, build_arm, load_arm_config
from bid_ros.robots.ros.config import RosConfig
from bid_ros.system.ending import alive_during
from bid_ros.system.priority import raise_priority

STALLED_S = 0.1  # s without a set-point, after which the arm node gives no heartbeat
HEED_S = 0.04  # s between two looks at the heartbeats that have come, at most; ages count from their arrival
REST_S = 1.0  # s in which the servo brakes to rest from any speed that a task allows


class ArmNode(BidNode):
    """Controls the robot. Its control thread has an absolute schedule and never waits for ROS."""

    def __init__(self) -> None:
        super().__init__("arm", PARAMETERS, work_limit_s=STALLED_S)
        raise_priority(COMMAND_PRIORITY)
        self._task = self.load_task()
        address = self.value("robot_ip")
        if not address:
            raise ArmError("robot_ip is empty; valid is the address of the robot, or start the system in its twin")
        name = self.value("arm")
        config = load_arm_config(Path(self.value("arm_config")), address, self.value("twin"), name)
        bus = NodeBus(f"{self.get_name()}_robot", self.get_namespace())
        if isinstance(config, RosConfig) and bus.full_name(config.tf) == topics.TF:
            config.check_not_heard(self._task.tool_frame)  # this node publishes it there
        self._arm = build_arm(name, config, bus)
        self._servo = build_servo(self._task, self._arm, arm_of(self, self._task), self.value("lookahead_s"))
        self._watched = frozenset(self.value("required"))
        self._listening = Listening()
        self._deadlines = Deadlines({name: self.value("heartbeat_deadline_s") for name in self._watched})
        self._sole = SolePublishers(self, (topics.SAFETY_CHUNK, topics.SAFETY_STATE, topics.GRANT))
        self._obeyed = ObeyedChunks(self._task, read_clocks())
        self._lock = threading.Lock()
        self._fault = ""
        self._commanded = self._due = False
        self._last_gripper: float = float("nan")
        # A robot that is driven through ROS publishes its joints itself.
        self._over_ros = ROBOTS.find(name).over_ros
        limits = self._task.limits
        self._settling = Settling(limits.workspace_min, limits.workspace_max) if ROBOTS.find(name).compliant else None
        theirs = bus.full_name(config.joint_states) if self._over_ros else ""
        joints = theirs != self.resolve_topic_name(topics.JOINT_STATES)
        self._report = ArmReport(self, self._task, self._arm.info, self.value("standard_rate_hz"), joints)
        self._publish_every = int(self.value("publish_every"))
        self._thread: PeriodicThread | None = None
        self._at_rest = threading.Event()

    def begin(self) -> None:
        """Connect to the robot, take control at its present pose, and stream set-points from then on."""
        self.subscribe(topics.HEARTBEAT, self._on_heartbeat, patient=True)
        self.create_timer(min(HEED_S, self.value("heartbeat_deadline_s") / 5), self._heed)
        self._wait_for_required(time.monotonic() + self.value("required_wait_s"))
        if self.ended:  # nothing is connected for a run that ends
            return
        late = connect(self._arm, self.value("twin"), self.value("connect_wait_s"), lambda: self.ended)
        follow(self._arm, self._servo)
        begin_at(self._servo, self._arm.state())
        if late:  # a person works at the robot: nothing moves before a reset
            self._servo.latch(f"the robot was not ready when the run began ({late}): look at it, then reset")
        self._grants = subscribe_grants(self, lock=self._lock, patient=True, sole=self._sole)
        for topic, take in ((topics.SAFETY_CHUNK, self._on_chunk), (topics.SAFETY_STATE, self._on_safety)):
            self.subscribe(topic, self._sole.guarded(topic, take))
        self.serve(Trigger, topics.ARM_RESET, self._on_reset)
        self._thread = PeriodicThread(
            "servo", round(1e9 / self.value("rate_hz")), self._control, tolerance_ns=20_000_000, on_error=self._fail
        )
        self._thread.start()
        what = "its twin" if self.value("twin") else "the robot"
        self.get_logger().info(f"in control: {what} at {self.value('robot_ip')}")

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Mode, fault and schedule."""
        trouble = self._fault or self._servo.latched
        skipped = 0 if self._thread is None else self._thread.schedule.skipped
        margins = Margins() if not isinstance(self._arm, CheckedArm) else self._arm.margins()
        told = {"skipped_set_points": skipped, SAID: margins.joined(self._obeyed.margins).text()}
        return not trouble, trouble or "in control", told

    def close(self) -> None:
        """Bring the arm to rest inside its limits, then leave control."""
        if self._thread is not None:
            with self._lock:
                self._servo.latch(ARM_ENDS)
                self._at_rest.clear()
            self._at_rest.wait(REST_S)
            self._thread.stop()
        self._arm.stop()
        self._arm.close()
        self.get_logger().info("at rest, out of control" if self._at_rest.is_set() else "out of control")

    def _wait_for_required(self, deadline: float) -> None:
        """Leave the robot alone while the required nodes load: a loading computer may starve the connection."""
        while time.monotonic() < deadline and not self.ended:
            if len(self._deadlines.ages(time.monotonic_ns())) == len(self._watched):
                return
            self.executor.spin_once(timeout_sec=0.1)

    def _on_chunk(self, message: ChunkMessage) -> None:
        instant = read_clocks()
        chunk = self._obeyed.read(message, instant)
        if chunk is None:
            self.get_logger().warning(self._obeyed.refusal(instant.steady_ns), throttle_duration_sec=1.0)
            return
        self._watch_publishers()
        with self._lock:
            now = time.monotonic_ns()
            if not self._grants.live(chunk.source, now):
                self._obeyed.refuse(f"nobody grants '{chunk.source}' the arm, though it sends chunks", now)
                return
            if not self._servo.accept(chunk):
                return
            self._grants.use(chunk.source)
            if not self._commanded:
                self._commanded = True
                # From here on a required node that was never heard is as silent as one that has stopped.
                self._deadlines.arm(now)

    def _watch_publishers(self) -> None:
        """Stop when somebody else publishes what the arm obeys."""
        if stranger := self._sole.trouble():
            with self._lock:
                self._servo.latch(stranger)

    def _on_safety(self, message: SafetyState) -> None:
        if message.state == SafetyState.STOPPED:
            with self._lock:
                self._servo.latch(f"safety stopped: {message.reason}")

    def _on_heartbeat(self, message: Heartbeat) -> None:
        self._sole.beat(message)
        with self._lock:
            if message.node in self._watched:
                self._deadlines.beat(message.node, self.arrived_ns())

    def _heed(self) -> None:
        """Note that heartbeats and grants were taken: patient messages come before this timer. Look who publishes."""
        with self._lock:
            self._listening.heard(time.monotonic_ns())
        self._watch_publishers()

    def _on_reset(self, _: Trigger.Request) -> tuple[bool, str]:
        with self._lock:
            expired = self._deadlines.expired(time.monotonic_ns())
        silent = f"no sign of life from '{expired.name}' for {expired.age_s:.2f} s" if expired else ""
        if why := silent or self._sole.trouble():
            return False, f"not reset: {why}"
        if self._fault:
            self._recover()
        with self._lock:
            if not self._fault:
                self._servo.reset()
        self.get_logger().info(f"reset: {self._fault or 'holding'}")
        return not self._fault, self._fault or "holding"

    def _recover(self) -> None:
        """Recover the robot from an error. Only a reset calls this: a person's, in a twin also the run's."""
        try:
            alive_during(self._arm.recover)
            follow(self._arm, self._servo)
            with self._lock:
                begin_at(self._servo, self._arm.state())
                self._fault = ""
                # It took up to 60 s of this thread, in which no heartbeat was taken: each silence counts from here on,
                # and a node that ended meanwhile is found out one deadline later.
                for name in self._watched:
                    self._deadlines.beat(name, time.monotonic_ns())
        except ArmError as error:
            self._fault = str(error)

    def _control(self, tick: Tick) -> None:
        instant = read_clocks()
        now = instant.wall_ns
        with self._lock:
            if self._obeyed.clock_was_set(instant):
                self._servo.release()
            steady = self._listening.judged_ns(instant.steady_ns)
            self._watch_grants(steady)
            # Until the first command the arm only holds, and nodes that still start may be silent for a while.
            if self._commanded:
                self._watch_silence(steady)
            output = self._servo.step(now)
            self._settle(output)
        if not self._fault:
            self._stream(output)
        self.worked()
        self._due = self._due or tick.index % self._publish_every == 0
        if self._due:
            self._due = not self._publish(output, now)
            if output.mode is ServoMode.STOPPED and not self._due:
                self._at_rest.set()

    def _settle(self, output: ServoOutput) -> None:
        """Hold a compliant arm that was stopped where it is, once it has nearly stopped."""
        if self._settling is not None and self._settling.due(output, self._arm.state):
            begin_at(self._servo, replace(self._arm.state(), tool_quaternion=output.setpoint.quaternion))

    def _watch_silence(self, steady_ns: int) -> None:
        """Stop when a required node is silent."""
        self._deadlines.note(self._obeyed.margins, steady_ns)
        if expired := self._deadlines.expired(steady_ns):
            self._servo.latch(f"no sign of life from '{expired.name}' for {expired.limit_s:.2f} s")

    def _watch_grants(self, steady_ns: int) -> None:
        """Stop when nobody grants the motion any more, whatever the safety node lets pass."""
        self._grants.note(self._obeyed.margins, steady_ns)
        lapse = self._grants.lapsed(steady_ns)
        if lapse is not None:
            self._servo.latch(str(lapse))
        elif self._servo.source and not self._grants.live(self._servo.source, steady_ns):
            self._servo.release()

    def _stream(self, output: ServoOutput) -> None:
        """Pass a set-point on. An arm that refuses it is a fault; a gripper that cannot is a stop of the servo."""
        try:
            if output.joints is not None and isinstance(self._arm, JointArm):
                self._arm.command_joints(output.joints)
            else:
                self._arm.command(output.setpoint)
        except ArmError as error:
            self._fault = str(error)
            self.get_logger().error(self._fault)
            if self._over_ros:  # its controller has no watchdog of ours: it may follow the last command on
                threading.Thread(target=self._arm.stop, name="stop", daemon=True).start()
            return
        if output.gripper_width is not None:
            self._stream_gripper(output.gripper_width)

    def _stream_gripper(self, width: float) -> None:
        try:
            self._last_gripper = width
            self._arm.command_gripper(width)
        except ArmError as error:
            self.get_logger().error(str(error))
            with self._lock:  # the arm still follows, and comes to rest as after any other stop
                self._servo.latch(str(error))

    def _publish(self, output: ServoOutput, now_ns: int) -> bool:
        """Publish what is new of the robot; return whether anything was."""
        state = self._arm.state()
        if state.fault and not self._fault:
            self._fault = state.fault
            self.get_logger().error(self._fault)
        idle = output.mode in (ServoMode.HOLDING, ServoMode.STOPPING)
        why = self._servo.latched or (self._obeyed.refusal(time.monotonic_ns()) if idle else "")
        return self._report.publish(output, state, now_ns, self._fault, why, self._last_gripper)

    def _fail(self, error: BaseException) -> None:
        """The control thread ended: stop the robot, log why, then end the node."""
        self._arm.stop()
        self.thread_ended("the control thread", error)


main = ArmNode.main
