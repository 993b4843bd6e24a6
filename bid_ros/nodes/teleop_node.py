"""Teleoperation node: a device commands the arm instead of the policy, through the safety node."""

import math
import time
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import scipy.interpolate  # noqa: F401  # a third of a second, in which the first motion would hold the node up
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool, Trigger

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.control.joint_chunks import TaskChunks, tool_task
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.settings import parse_settings
from bid_ros.core.task import load_task
from bid_ros.core.topics import (
    ARM_STATUS,
    BODIES,
    DIAGNOSTICS,
    EPISODE_DISCARD,
    EPISODE_EVENT,
    EPISODE_NOTE,
    EPISODE_OUTCOME,
    EPISODE_START,
    EPISODE_UNDO,
    TELEOP_CHUNK,
    TELEOP_SWITCH,
    TF_STATIC,
    Qos,
    Topic,
    body_topic,
)
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.grants import subscribe_grants
from bid_ros.nodes.joints import ARM_CONFIG, TWIN, arm_of
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.ros_messages import chunk_to_message
from bid_ros.safety.envelope import MAX_HORIZONS
from bid_ros.tasks.topics import system_topics
from bid_ros.teleop.base import AXES, DEVICES, EpisodeStart, Steering

STEERING = Steering()
AFTER_END_NS = 1_000_000_000  # in which a key that is still pressed does not concern the episode before
BETWEEN = {"success": EPISODE_START, "discard": EPISODE_UNDO, "failure": EPISODE_OUTCOME}
AT_REST_NS = 600_000_000  # after which a motion at full speed has braked
PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("device", "scripted", "name of the teleoperation device"),
    Parameter("device_settings", "", "settings of the device, in YAML, for example 'path: /dev/input/event5'"),
    Parameter("rate_hz", 0.0, "chunks a second; 0: as the device needs", 0.0, 100.0),
    Parameter("takeover", False, "the policy drives, and the device does while its dead man's switch is held"),
    Parameter("prepared", True, "the arm goes to a start before; otherwise the gripper begins as it is, too"),
    Parameter("steps", 12, "actions in a chunk", 2, 100),
    Parameter("dt_s", 0.05, "time between two actions of a chunk in s", 0.01, 0.5),
    Parameter("linear_speed", STEERING.linear_speed, "m/s of the tool at full deflection", 0.005, 0.5),
    Parameter("angular_speed", STEERING.angular_speed, "rad/s of the tool at full deflection", 0.02, 1.5),
    Parameter("scale", STEERING.scale, "m of the tool for 1 m of a device that is moved in space", 0.05, 3.0),
    Parameter("frame", STEERING.frame, "whose axes a deflection means: base or tool"),
    ARM_CONFIG,
    TWIN,
    Parameter("locked", list(STEERING.locked), f"axes that do not move, of {', '.join(AXES)}; [''] for none"),
)
STEERED = tuple(item.name for item in fields(Steering))


class TeleopNode(BidNode):
    """Gives the arm to a device at the start of an episode. Publishes the device's chunks while somebody grants it.

    Where a person may take over, the device gets the arm whenever somebody grants it in the episode, and the node says
    all the time whether the dead man's switch is held. It is silent about a device that is gone.
    """

    changeable = STEERED
    outlives = (EPISODE_EVENT,)  # a device may show how the run has ended

    def __init__(self) -> None:
        super().__init__("teleop", PARAMETERS)
        self._task = self.load_task()
        found = DEVICES.find(self.value("device"))
        options = found.read(self.value("device_settings"))
        # Devices know the task's own frames; their chunks get the prefix of this system. They plan for the tool.
        own_task = tool_task(load_task(self.value("task")))
        self._names, self._device = found.bodies(self._task), found.open(own_task, options)
        self._task_chunks = TaskChunks(self._task, arm_of(self, self._task))
        self._dt_ns = min(round(self.value("dt_s") * 1e9), self._task.dt_ns)  # safety refuses a coarser grid
        # A chunk must be long enough to end at rest, and not longer than safety takes.
        enough = max(self.value("steps"), math.ceil(AT_REST_NS / self._dt_ns))
        self._steps = min(enough, MAX_HORIZONS * self._task.horizon)
        self._steer({})
        self._takeover = self.value("takeover")
        self._driving = False
        self._episode: EpisodeEvent | None = None
        self._ended_ns, self._problem = 0, ""
        self._status: ArmStatus | None = None
        self._bodies: dict[str, NDArray[np.float64]] = {}
        self._tool: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._chunks = self.advertise(TELEOP_CHUNK)
        self.subscribe(ARM_STATUS, self._on_status, newest=True)
        for name in self._names:
            self.subscribe(body_topic(name), partial(self._on_body, name), BODIES)
        self.subscribe(EPISODE_EVENT, self._on_event)
        own = system_topics(self._task)
        for topic, kind in found.topics(self._task, options).items():
            # What this system publishes itself is known; of others only the type is.
            known = own.get(topic, Topic(kind, Qos(10, "best_effort")))
            self.subscribe(topic, partial(self._hear, topic), known, patient=True)
        self._outcome = self.create_client(SetBool, EPISODE_OUTCOME)
        triggers = (EPISODE_START, EPISODE_DISCARD, EPISODE_UNDO)
        self._triggers = {name: self.create_client(Trigger, name) for name in triggers}
        self._notes = self.advertise(EPISODE_NOTE)
        self._switch = self.advertise(TELEOP_SWITCH) if found.help else None  # a person holds it
        self._grants = subscribe_grants(self)
        self.create_timer(1.0 / (self.value("rate_hz") or found.rate_hz), self._publish)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return whether a device drives an episode, and whether it is there."""
        summary = self._device.problem or ("driving" if self._driving else "waiting for an episode")
        return not self._device.problem, summary, {"device": self.value("device")}

    def change(self, values: Mapping[str, Any]) -> None:
        """Take new settings of the steering, from the next chunk on. Raises BidError if one is not valid."""
        super().change(values)
        steered = {name: values[name] for name in STEERED if name in values}
        if steered:
            self._steer(steered)

    def close(self) -> None:
        """Release the device."""
        self._device.close()

    def _steer(self, changed: Mapping[str, Any]) -> None:
        given = {name: self.value(name) for name in STEERED} | dict(changed)
        given["locked"] = [axis for axis in given["locked"] if axis]  # ROS has no empty list of texts
        self._device.steer(parse_settings(Steering, given, "node 'teleop'"))

    def _hear(self, topic: str, message: Any) -> None:
        if topic == DIAGNOSTICS:  # all robots on the network speak there
            message.status = [status for status in message.status if status.hardware_id == self.hardware_id]
        elif topic == TF_STATIC:
            message.transforms = self._own_transforms(message)
        self._device.hear(topic, message, self.now_ns())

    def _own_transforms(self, message: Any) -> list[Any]:
        """Return the transforms of this system, with the frames as devices know them: without its prefix."""
        prefix, own = self.frame_prefix, []
        for transform in message.transforms:
            names = (transform.header.frame_id, transform.child_frame_id)
            # Without a prefix, whatever has one is of another system.
            if all(name.startswith(prefix) and "/" not in name.removeprefix(prefix) for name in names):
                transform.header.frame_id, transform.child_frame_id = (name.removeprefix(prefix) for name in names)
                own.append(transform)
        return own

    def _mark(self, mark: str) -> None:
        """Tell the episode runner what the person did. Nobody waits for its answer."""
        now_ns = time.monotonic_ns()
        if self._episode is None and now_ns - self._ended_ns < AFTER_END_NS:
            return
        during = EPISODE_DISCARD if mark == "discard" else EPISODE_OUTCOME
        name = BETWEEN[mark] if self._episode is None else during
        client = self._triggers.get(name, self._outcome)
        if client.service_is_ready():
            request = SetBool.Request(data=mark == "success") if name == EPISODE_OUTCOME else Trigger.Request()
            client.call_async(request).add_done_callback(self._on_answer)

    def _on_answer(self, future: Any) -> None:
        answer = future.result()
        if answer is not None and not answer.success:
            self.get_logger().info(f"not taken: {answer.message}")

    def _on_status(self, message: ArmStatus) -> None:
        self._tool, self._status = pose_arrays(message.tool), message

    def _on_body(self, name: str, message: PoseStamped) -> None:
        self._bodies[name] = pose_arrays(message.pose)[0]

    def _on_event(self, event: EpisodeEvent) -> None:
        self._let_go()
        if self._episode is not None:
            self._ended_ns = time.monotonic_ns()
        self._episode = event if event.kind == EpisodeEvent.START else None
        if self._episode is not None and not self._takeover:
            width = math.nan if self._status is None or self.value("prepared") else float(self._status.gripper_width)
            self._take_arm(self._tool, width if math.isfinite(width) else None)

    def _take_arm(self, tool: tuple[NDArray[np.float64], NDArray[np.float64]] | None, width: float | None) -> None:
        """Give the arm to the device, from a pose of the tool on, with the gripper as it is asked for."""
        assert self._episode is not None, "only called in an episode"
        missing = [name for name in self._names if name not in self._bodies]
        if tool is None or missing:
            what = ", ".join(missing if tool is not None else ["tool", *missing])
            self.get_logger().error(f"no pose of {what} has arrived, so the episode is not driven")
            return
        rotation = matrix_to_6d(matrix_from_quaternion(tool[1]))
        label, seed, now_ns = self._episode.label, int(self._episode.seed), self.now_ns()
        self._device.begin(EpisodeStart(label, seed, tool[0], rotation, dict(self._bodies), now_ns, width))
        if self._status is not None:
            self._task_chunks.begin(self._status.joint_positions, now_ns)
        self._driving = True

    def _let_go(self) -> None:
        self._driving = False
        self._device.end()

    def _follow_grant(self, granted: bool) -> None:
        """Take the arm over where its set-point rests, and give it back."""
        if self._driving and not granted:
            self._let_go()
        elif granted and not self._driving and self._episode is not None and self._status is not None:
            asked = self._status.reference_gripper
            width = asked if math.isfinite(asked) else self._status.gripper_width
            self._take_arm(pose_arrays(self._status.reference), float(width))

    def _publish(self) -> None:
        granted = self._grants.live("teleop", time.monotonic_ns())
        if self._takeover:
            self._follow_grant(granted)
        chunk = None
        if self._driving and granted and not self.ended:
            chunk = self._device.chunk_at(self.now_ns(), self._steps, self._dt_ns)
        else:
            self._device.look()
        if mark := self._device.take_mark():
            self._mark(mark)
        if note := self._device.take_note():
            self._notes.publish(String(data=note))
        if self._switch is not None and self._device.held is not None:
            self._switch.publish(Bool(data=self._device.held))
        if self._device.problem != self._problem:
            self._problem = self._device.problem
            if self._problem:
                print(f"error: {self._problem}; the arm holds until it is back", flush=True)
        if chunk is not None:
            self._send(chunk)

    def _send(self, chunk: ActionChunk) -> None:
        """Publish what the device asks for, as a chunk of the task."""
        try:
            made = self._task_chunks.of(chunk)
        except ArmError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        self._chunks.publish(chunk_to_message(made, self._task, self.robot, self.frame_prefix))


main = TeleopNode.main
