"""Arm node: follows safe chunks on the robot and stops it by itself when anything it depends on falls silent."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState
from bid_ros.arms import ArmInfo, ArmState, ChunkServo, ServoConfig, ServoMode, ServoOutput, build_arm, load_arm_config
from bid_ros.deadline import Deadlines
from bid_ros.errors import ArmError, ChunkError
from bid_ros.nodes.base import COMMAND_PRIORITY, HEARTBEAT_PERIOD_S, BidNode, Parameter, run_node
from bid_ros.nodes.convert import chunk_from_message, pose_message, pose_stamped, time_message
from bid_ros.nodes.qos import COMMAND, STATE
from bid_ros.priority import raise_priority
from bid_ros.schedule import PeriodicThread, Tick
from bid_ros.task import load_task

PARAMETERS = (
    Parameter("task", "", "path of the task file, whose limits hold"),
    Parameter("arm", "franka", "arm driver"),
    Parameter("arm_config", "", "path of the arm's configuration file"),
    Parameter("robot_ip", "", "address of the robot (or of its twin); required"),
    Parameter("twin", False, "the address is a twin: no real-time kernel needed, twin dynamics"),
    Parameter("connect_wait_s", 0.0, "time in s to go on trying; a twin needs some to start", 0.0, 120.0),
    Parameter("rate_hz", 100, "set-points streamed a second", 100, 1000),
    Parameter("lookahead_s", 0.0, "chunks are sampled this long ahead of now, for the lag of the arm", 0.0, 0.3),
    Parameter("publish_every", 2, "publish the state every n-th set-point", 1, 100),
    Parameter("required", ["policy", "safety"], "nodes whose heartbeat the arm waits for and watches"),
    Parameter("heartbeat_deadline_s", 0.3, "longest silence of a required node; then a latched stop", 0.1, 2.0),
)
MODES = {
    ServoMode.HOLDING: ArmStatus.HOLDING,
    ServoMode.TRACKING: ArmStatus.TRACKING,
    ServoMode.STOPPING: ArmStatus.STOPPING,
    ServoMode.STOPPED: ArmStatus.STOPPED,
}


class ArmNode(BidNode):
    """Owns the robot. Its control thread has an absolute schedule and never waits for ROS."""

    def __init__(self) -> None:
        super().__init__("arm", PARAMETERS, heartbeat=False)
        raise_priority(COMMAND_PRIORITY)
        self._task = load_task(self.value("task"))
        address = self.value("robot_ip")
        if not address:
            raise ArmError("robot_ip is empty; valid is the address of the robot, or start the system in its twin")
        name = self.value("arm")
        self._arm = build_arm(name, load_arm_config(Path(self.value("arm_config")), address, self.value("twin"), name))
        self._servo = ChunkServo(self._task, ServoConfig(lookahead_s=self.value("lookahead_s")))
        self._watched = frozenset(self.value("required"))
        self._deadlines = Deadlines({name: self.value("heartbeat_deadline_s") for name in self._watched})
        self._lock = threading.Lock()
        self._fault = ""
        self._commanded = False
        self._last_gripper: float = float("nan")
        self._beat_every = max(1, round(HEARTBEAT_PERIOD_S / 2 * self.value("rate_hz")))
        self._joint_states = self.create_publisher(JointState, "/joint_states", STATE)
        self._tool_poses = self.create_publisher(PoseStamped, "/arm/tool_pose", STATE)
        self._statuses = self.create_publisher(ArmStatus, "/arm/status", STATE)
        self._connect(time.monotonic() + self.value("connect_wait_s"))
        self._arm.start()
        self._begin(self._arm.state())
        self.create_subscription(ChunkMessage, "/safety/chunk", self._on_chunk, COMMAND)
        self.create_subscription(SafetyState, "/safety/state", self._on_safety, STATE)
        self.create_subscription(Heartbeat, "/heartbeat", self._on_heartbeat, STATE)
        self.create_service(Trigger, "/arm/reset", self._on_reset)
        self._thread = PeriodicThread(
            "servo", round(1e9 / self.value("rate_hz")), self._control, tolerance_ns=20_000_000, on_error=self._fail
        )
        self._thread.start()
        what = "its twin" if self.value("twin") else "the robot"
        self.get_logger().info(f"in control of {name}: {what} at {address}")

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Mode, fault and schedule."""
        healthy = not self._fault and not self._servo.latched
        summary = self._fault or self._servo.latched or "in control"
        return healthy, summary, {"skipped set-points": self._thread.schedule.skipped}

    def close(self) -> None:
        """Stop the arm in a controlled way and leave control."""
        self._thread.stop()
        self._arm.stop()
        self._arm.close()

    def _connect(self, deadline: float) -> None:
        while True:
            try:
                self._arm.connect()
                return
            except ArmError:
                if time.monotonic() > deadline or not self.context.ok():
                    raise
                time.sleep(0.2)

    def _begin(self, state: ArmState) -> None:
        self._servo.start(state.tool_position, state.tool_quaternion, time.time_ns())

    def _on_chunk(self, message: ChunkMessage) -> None:
        try:
            chunk = chunk_from_message(message, self._task)
        except ChunkError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        with self._lock:
            if self._servo.accept(chunk) and not self._commanded:
                self._commanded = True
                # From here on a required node that was never heard is as silent as one that has stopped.
                self._deadlines.arm(time.monotonic_ns())

    def _on_safety(self, message: SafetyState) -> None:
        if message.state == SafetyState.STOPPED:
            with self._lock:
                self._servo.latch(f"safety stopped: {message.reason}")

    def _on_heartbeat(self, message: Heartbeat) -> None:
        with self._lock:
            if message.node in self._watched:
                self._deadlines.beat(message.node, time.monotonic_ns())

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            expired = self._deadlines.expired(time.monotonic_ns())
        if expired is not None:
            response.message = f"not reset: no sign of life from '{expired.name}' for {expired.age_s:.2f} s"
            return response
        if self._fault:
            self._recover()
        with self._lock:
            if not self._fault:
                self._servo.reset()
        response.success = not self._fault
        response.message = self._fault or "holding"
        self.get_logger().info(f"reset: {response.message}")
        return response

    def _recover(self) -> None:
        """Error recovery of the robot, only ever from the reset that a person asked for."""
        try:
            self._arm.recover()
            self._arm.start()
            with self._lock:
                self._begin(self._arm.state())
                self._fault = ""
                # It took up to 20 s of this thread, in which no heartbeat was taken: each silence counts from here on,
                # and a node that ended meanwhile is found out one deadline later.
                for name in self._watched:
                    self._deadlines.beat(name, time.monotonic_ns())
        except ArmError as error:
            self._fault = str(error)

    def _control(self, tick: Tick) -> None:
        now = time.time_ns()
        with self._lock:
            expired = self._deadlines.expired(time.monotonic_ns())
            # Until the first command the arm only holds, and nodes that still start up may be silent for a while.
            if expired is not None and self._commanded:
                self._servo.latch(f"no sign of life from '{expired.name}' for {expired.limit_s:.2f} s")
            output = self._servo.step(now)
        if not self._fault:
            self._stream(output)
        if tick.index % self._beat_every == 0:
            self.send_heartbeat()
        if tick.index % self.value("publish_every") == 0:
            self._publish(output, now)

    def _stream(self, output: ServoOutput) -> None:
        try:
            self._arm.command(output.setpoint)
            if output.gripper_width is not None:
                self._last_gripper = output.gripper_width
                self._arm.command_gripper(output.gripper_width)
        except ArmError as error:
            self._fault = str(error)
            self.get_logger().error(self._fault)

    def _publish(self, output: ServoOutput, now_ns: int) -> None:
        state = self._arm.state()
        if state.fault and not self._fault:
            self._fault = state.fault
            self.get_logger().error(self._fault)
        frame, stamp = self._task.base_frame, state.stamp_ns
        self._tool_poses.publish(pose_stamped(stamp, frame, state.tool_position, state.tool_quaternion))
        self._joint_states.publish(joint_message(self._arm.info, state, frame))
        setpoint = output.setpoint
        message = ArmStatus(
            mode=ArmStatus.FAULT if self._fault else MODES[output.mode],
            reason=self._fault or self._servo.latched,
            source=output.source,
            sequence=output.sequence,
            command_age=output.command_age_s,
            gripper_width=state.gripper_width,
            gripper_busy=state.gripper_busy,
            reference=pose_message(setpoint.position, setpoint.quaternion),
            reference_stamp=time_message(now_ns),
            reference_twist=np.concatenate([setpoint.linear_velocity, setpoint.angular_velocity]),
            reference_gripper=self._last_gripper,
        )
        message.header.stamp = time_message(stamp)
        message.header.frame_id = frame
        self._statuses.publish(message)

    def _fail(self, error: BaseException) -> None:
        """The control thread ended: stop the robot first, say why, then end the node."""
        self._arm.stop()
        self.thread_failed(f"the control thread ended: {error!r}")


def joint_message(info: ArmInfo, state: ArmState, frame: str) -> JointState:
    """Return the joints of an arm, and of its fingers if it has a gripper: each has half of the opening."""
    fingers = [state.gripper_width / 2] * len(info.finger_names)
    message = JointState(
        name=[*info.joint_names, *info.finger_names],
        position=[*state.joint_positions.tolist(), *fingers],
        velocity=[*state.joint_velocities.tolist(), *(0.0 for _ in fingers)],
    )
    message.header.stamp = time_message(state.stamp_ns)
    message.header.frame_id = frame
    return message


def main() -> None:
    """Run the arm node."""
    sys.exit(run_node(ArmNode))


if __name__ == "__main__":
    main()
