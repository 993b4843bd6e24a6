"""Safety node: checks everything that moves the arm, in a process of its own."""

import time
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from std_srvs.srv import Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ChunkError
from bid_ros.core.listening import Listening
from bid_ros.core.margins import SAID
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.core.shapes import opening_at_rest
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import (
    ARM_STATUS,
    GRANT,
    HEARTBEAT,
    SAFETY_CHUNK,
    SAFETY_RESET,
    SAFETY_STATE,
    TELEOP_SWITCH,
    TOOL_POSE,
    TOPICS,
    camera_topic,
    chunk_topic,
)
from bid_ros.episodes.causes import ARM_ENDS, of_safety
from bid_ros.nodes.base import COMMAND_PRIORITY, BidNode
from bid_ros.nodes.grants import subscribe_grants
from bid_ros.nodes.joints import arm_of, check_configured, posed_arm_of
from bid_ros.nodes.ros_messages import chunk_from_message, chunk_to_message, header
from bid_ros.nodes.safety_parameters import PARAMETERS
from bid_ros.nodes.said import Said
from bid_ros.nodes.shadowing import Shadowing
from bid_ros.nodes.sole_publishers import SolePublishers
from bid_ros.safety.arbiter import PRIORITY, Arbiter
from bid_ros.safety.gate import Gate
from bid_ros.safety.grants import SHADOW
from bid_ros.safety.parting import ARM, Parting
from bid_ros.safety.quiet import PAUSE_S, Quiet
from bid_ros.safety.verdict import Action, Verdict, refused
from bid_ros.safety.watchdog import PARTNER, State, Watchdog
from bid_ros.system.priority import raise_priority

Placed = NDArray[np.float64]
STALLED_S = 0.1  # s without a check of all deadlines, after which the safety node gives no heartbeat
AUTONOMOUS = "policy"  # the source that has no reason to pause; a person may


class SafetyNode(BidNode):
    """Forwards whole chunks that keep every limit, slows those that can be, refuses the others, and publishes why.

    Asked to end, it forwards nothing more and waits for the arm node's last word. An arm node that dies together with
    the supervisor says none, and nobody else is left to say why the arm stopped.
    """

    outlives: Sequence[str] = (ARM_STATUS,)

    def __init__(self) -> None:
        super().__init__("safety", PARAMETERS, work_limit_s=STALLED_S)
        raise_priority(COMMAND_PRIORITY)
        self._task = self.load_task()
        check_configured(self)
        arm = arm_of(self, self._task) or posed_arm_of(self, self._task)
        self._gate = Gate(self._task, arm=arm, slow=self.value("slow"))
        shadow = self.value("shadow")
        self._shadowing = Shadowing(self, self._task, arm, self.value("slow")) if shadow else None
        self._asked = SHADOW if shadow else AUTONOMOUS
        self._arbiter, self._listening = Arbiter(), Listening()
        self._partners = tuple(space.strip("/") for space in self.value("partners") if space)
        needed = [*self.value("required"), *(f"{partner}/safety" for partner in self._partners)]
        deadlines = {name: float(self.value("heartbeat_deadline_s")) for name in needed}
        self._watchdog = Watchdog(deadlines, self.value("late_limit"), self.value("settle_s"))
        self._watchdog.granted = False
        self._said, self._quiet = Said(self, sorted({*deadlines, AUTONOMOUS, "camera"})), Quiet()
        self._measured: tuple[int, ArmStatus] | None = None  # when it came
        self._forwarded = self._slowed = self._refused = self._measured_ns = 0
        self._last_source = ""
        self._parting: Parting | None = None
        self._arm_rests = False
        moving = (*map(chunk_topic, PRIORITY), GRANT, ARM_STATUS, SAFETY_CHUNK, SAFETY_STATE, TELEOP_SWITCH)
        seen = (TOOL_POSE, *(camera_topic(camera.name) for camera in self._task.cameras))
        self._sole = SolePublishers(self, (*moving, *seen))
        self._forward = self.advertise(SAFETY_CHUNK)
        self._states = self.advertise(SAFETY_STATE)
        for source in PRIORITY:
            topic = chunk_topic(source)
            self.subscribe(topic, self._sole.guarded(topic, partial(self._on_chunk, source)))
        self._grants = subscribe_grants(self, self._on_grant, patient=True, sole=self._sole)
        self.subscribe(ARM_STATUS, self._sole.guarded(ARM_STATUS, self._on_status), newest=True)
        self.subscribe(HEARTBEAT, self._on_heartbeat, patient=True)
        for partner in self._partners:
            hear = {HEARTBEAT: self._on_partner_heartbeat, SAFETY_STATE: self._on_partner}
            for name, take in hear.items():
                self.listen(f"/{partner}/{name}", partial(take, partner), TOPICS[name], patient=name == HEARTBEAT)
        self.serve(Trigger, SAFETY_RESET, self._on_reset)
        self.create_timer(0.02, self._tick)
        self.create_timer(0.1, self._publish_state)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return the state of the latch, and counts."""
        stopped = self._watchdog.stopped
        summary = self._watchdog.reason or "running"
        counts = {"forwarded": self._forwarded, "slowed": self._slowed, "refused": self._refused}
        return not stopped, summary, {**counts, SAID: self._watchdog.margins.text()}

    def _on_heartbeat(self, message: Heartbeat) -> None:
        self._sole.beat(message)
        self._watchdog.beat(message.node, self.arrived_ns(), self._judged_ns())

    def _on_partner_heartbeat(self, partner: str, message: Heartbeat) -> None:
        """Hear the safety node of another arm: without it nobody would say that this one has to stop."""
        if message.robot == partner and message.node == "safety":
            self._watchdog.beat(f"{partner}/safety", self.arrived_ns(), self._judged_ns())

    def _on_partner(self, partner: str, message: SafetyState) -> None:
        """Stop with another arm. One that only stopped because of this one is no cause."""
        if message.robot == partner:
            stopped = message.state == SafetyState.STOPPED and message.rule != PARTNER
            self._watchdog.partner(partner, message.reason if stopped else "")
            self._act(self._watchdog.tick(self._judged_ns()))

    def _on_grant(self) -> None:
        now = time.monotonic_ns()
        self._watchdog.granted = self._watchdog.granted or any(self._grants.live(source, now) for source in PRIORITY)
        for source in PRIORITY:
            if not self._grants.live(source, now):
                self._arbiter.release(source)
                self._gate.forget(source)
        if self._shadowing is not None:
            self._shadowing.granted(self._grants.live(SHADOW, now))

    def _on_status(self, message: ArmStatus) -> None:
        if stamp_ns(message) != self._measured_ns:  # the status of a silent robot repeats what was measured last
            self._measured_ns = stamp_ns(message)
            self._measured = self.arrived_ns(), message
            held = opening_at_rest(message.gripper_width, message.gripper_busy)
            self._gate.holds(held)
            if self._shadowing is not None:
                self._shadowing.told(self._measured_ns, pose_arrays(message.tool)[0], held)
        # What moves no more, or is about to rest and ends, has said its last word.
        self._arm_rests = message.mode in (ArmStatus.STOPPED, ArmStatus.FAULT) or message.reason == ARM_ENDS
        if self.ended and self._arm_rests:
            self.outlives = ()
        fault = message.reason if message.mode == ArmStatus.FAULT else ""
        if self._partners and message.mode == ArmStatus.STOPPED and not of_safety(message.reason):
            # The arm node stopped by itself, which the others hear from here. At the end of all it only ends.
            fault = "" if self.ended and message.reason == ARM_ENDS else message.reason
        self._act(self._watchdog.arm_fault(fault, self._judged_ns()))

    def _on_chunk(self, source: str, message: ChunkMessage) -> None:
        if self.ended:
            return
        steady, now = time.monotonic_ns(), self.now_ns()
        chunk = self._read(source, message)
        if source == AUTONOMOUS:
            self._quiet.heard(steady)
            if self._shadowing is not None:  # first of all, whoever grants what: nothing of it passes
                self._shadowing.judge(chunk, now, self._newest(steady))
                return
        if isinstance(chunk, Verdict):
            self._judge(source, chunk)
            return
        if not self._grants.live(source, steady):
            self.get_logger().info(f"ignored a chunk of '{source}': nobody grants it", throttle_duration_sec=2.0)
            return
        if not self._arbiter.admits(source, now):
            return
        age_s = (now - chunk.stamp_ns) / NANOSECONDS
        self._watchdog.margins.over(f"age of a chunk of {source}", age_s, self._task.limits.max_chunk_age)
        found = self._gate.admit(chunk, now, *self._newest(steady))
        if self._judge(source, found.verdict):
            self._arbiter.accepted(found.chunk, now)
            self._gate.passed(found.chunk)
            self._grants.use(source)
            slowed = found.pace is not None
            self._forward.publish(chunk_to_message(found.chunk, self._task, self.robot) if slowed else message)
            self._forwarded += 1
            self._slowed += slowed
            self._last_source = source
        elif found.verdict.ok:
            why = self._watchdog.reason
            self.get_logger().info(f"held back a chunk of '{source}': {why}", throttle_duration_sec=2.0)

    def _read(self, source: str, message: ChunkMessage) -> ActionChunk | Verdict:
        """Return the chunk of a message, or why it is none of this source."""
        try:
            chunk = chunk_from_message(message, self._task)
        except ChunkError as error:
            return refused("shape", str(error))
        if chunk.source != source:
            reason = f"a chunk on /{source}/chunk claims the source '{chunk.source}'; valid is '{source}'"
            return refused("source", reason)
        return chunk

    def _judge(self, source: str, verdict: Verdict) -> bool:
        allowed = self._watchdog.judge(verdict, self._judged_ns())
        if not verdict.ok:
            self._refused += 1
            judged = f"rule {verdict.rule}, action {self._watchdog.action.value}"
            problem = f"refused a chunk of '{source}' ({judged}): {verdict.reason}"
            self.get_logger().warning(problem, throttle_duration_sec=0.5)
            self._publish_state()
        elif allowed and verdict.action is not Action.NONE:
            said = f"chunk of '{source}' (rule {verdict.rule}, action {verdict.action.value}): {verdict.reason}"
            self.get_logger().warning(said, throttle_duration_sec=0.5)
            self._publish_state()
        return allowed

    def _newest(self, steady: int) -> tuple[Placed | None, Placed | None, Placed | None]:
        """Return the tool's position, the joints and its rotation, as measured last; None if that is too long ago."""
        if self._measured is None:
            return None, None, None
        age_s = (steady - self._measured[0]) / NANOSECONDS
        late = self._watchdog.margins.over("age of the tool's pose", age_s, self.value("max_pose_age_s"))
        if late:
            return None, None, None
        position, turn = pose_arrays(self._measured[1].tool)
        return position, np.array(self._measured[1].joint_positions), matrix_from_quaternion(turn)

    def _judged_ns(self) -> int:
        """Return the steady time at which the silence of others is judged now."""
        return self._listening.judged_ns(time.monotonic_ns())

    def _tick(self) -> None:
        self._listening.heard(time.monotonic_ns())  # patient messages were taken before this timer was called
        now = self._judged_ns()
        if self.ended:
            self._part(now)
            return
        self.worked()
        self._grants.note(self._watchdog.margins, now)
        self._watchdog.lapse(self._grants.lapsed(now))
        self._watchdog.stranger(self._sole.trouble())
        runs = self._watchdog.state is State.RUNNING
        self._quiet.allowed(runs and self._grants.live(self._asked, now), now)
        self._act(self._watchdog.tick(now))
        silent = self._watchdog.cause.rule.partition("heartbeat:")[2]
        if silent and self._watchdog.explain(silent, self._said.problem(silent)):
            self._act(True)

    def _part(self, now: int) -> None:
        """Watch the arm node alone, for the others end as well."""
        if self._parting is None:
            self.heartbeat.failed()  # nothing is checked any more but this
            self._quiet.allowed(False, now)
            self._parting = Parting(self._watchdog, now, ARM in self.value("required") and not self._arm_rests)
        self._act(self._parting.tick(now))
        if self._parting.over:
            self.outlives = ()

    def _act(self, stopped_now: bool) -> None:
        if stopped_now:
            self.get_logger().error(f"stopped: {self._watchdog.reason}")
            self._publish_state()

    def _on_reset(self, _: Trigger.Request) -> tuple[bool, str]:
        refusal = self._watchdog.reset(time.monotonic_ns())
        self._gate.forget()
        self.get_logger().info(f"reset: {refusal or 'running'}")
        self._publish_state()
        return not refusal, refusal or "running"

    def _paused(self) -> Verdict | None:
        """Return why the policy moves nothing, though it may; None: it does, or may not."""
        silent_s = self._quiet.silent_s(self._judged_ns())
        if self._watchdog.state is not State.RUNNING or not silent_s:
            return None
        said = [self._said.problem(AUTONOMOUS), f"camera: {camera}" if (camera := self._said.problem("camera")) else ""]
        why = "; ".join(filter(None, said)) or "it says no reason"
        reason = f"no chunk of '{AUTONOMOUS}' for {silent_s:.1f} s: {why}"
        return refused("no_chunk", reason, silent_s, PAUSE_S)

    def _publish_state(self) -> None:
        watchdog, paused = self._watchdog, self._paused()
        verdict, action = paused or watchdog.verdict, Action.WARN if paused else watchdog.action
        message = SafetyState(
            header=header(self.now_ns(), self._task.base_frame),
            robot=self.robot,
            state=getattr(SafetyState, watchdog.state.name),
            action=getattr(SafetyState, action.name),
            rule=verdict.rule,
            reason=watchdog.reason or verdict.reason,
            measured=float(verdict.measured),
            limit=float(verdict.limit),
            source=self._last_source,
            forwarded=self._forwarded,
            refused=self._refused,
        )
        self._states.publish(message)


main = SafetyNode.main
