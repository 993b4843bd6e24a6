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
from std_srvs.srv import SetBool, Trigger

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.settings import parse_settings
from bid_ros.core.task import load_task
from bid_ros.core.topics import (
    ARM_STATUS,
    BODIES,
    EPISODE_DISCARD,
    EPISODE_EVENT,
    EPISODE_OUTCOME,
    TELEOP_CHUNK,
    Qos,
    Topic,
    body_topic,
    recorded_topics,
)
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.convert import chunk_to_message, pose_arrays
from bid_ros.nodes.grants import subscribe_grants
from bid_ros.nodes.parameters import Parameter
from bid_ros.safety.envelope import EnvelopeConfig
from bid_ros.teleop.base import Start
from bid_ros.teleop.command import AXES, Steering
from bid_ros.teleop.registry import DEVICES

STEERING = Steering()
AT_REST_NS = 600_000_000  # after which a motion at full speed has braked
PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("device", "scripted", "name of the teleoperation device"),
    Parameter("device_settings", "", "settings of the device, in YAML, for example 'path: /dev/input/event5'"),
    Parameter("rate_hz", 0.0, "chunks a second; 0: as the device needs", 0.0, 100.0),
    Parameter("steps", 12, "actions in a chunk", 2, 100),
    Parameter("dt_s", 0.05, "time between two actions of a chunk in s", 0.01, 0.5),
    Parameter("linear_speed", STEERING.linear_speed, "m/s of the tool at full deflection", 0.005, 0.5),
    Parameter("angular_speed", STEERING.angular_speed, "rad/s of the tool at full deflection", 0.02, 1.5),
    Parameter("scale", STEERING.scale, "m of the tool for 1 m of a device that is moved in space", 0.05, 3.0),
    Parameter("frame", STEERING.frame, "whose axes a deflection means: base or tool"),
    Parameter("locked", list(STEERING.locked), f"axes that do not move, of {', '.join(AXES)}; [''] for none"),
)
STEERED = tuple(item.name for item in fields(Steering))


class TeleopNode(BidNode):
    """Gives the arm to a device at the start of an episode. Publishes the device's chunks while somebody grants it."""

    changeable = STEERED

    def __init__(self) -> None:
        super().__init__("teleop", PARAMETERS)
        self._task = self.load_task()
        found = DEVICES.find(self.value("device"))
        options = found.read(self.value("device_settings"))
        # Devices know the task's own frames; the prefix of this system is added to their chunks.
        self._names, self._device = found.bodies(self._task), found.open(load_task(self.value("task")), options)
        self._dt_ns = min(round(self.value("dt_s") * 1e9), self._task.dt_ns)  # safety refuses a coarser grid
        # A chunk must be long enough to end at rest, and not longer than safety takes.
        enough = max(self.value("steps"), math.ceil(AT_REST_NS / self._dt_ns))
        self._steps = min(enough, EnvelopeConfig().max_horizons * self._task.horizon)
        self._steer({})
        self._driving = False
        self._bodies: dict[str, NDArray[np.float64]] = {}
        self._tool: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._chunks = self.advertise(TELEOP_CHUNK)
        self.subscribe(ARM_STATUS, self._on_status, newest=True)
        for name in self._names:
            self.subscribe(body_topic(name), partial(self._on_body, name), BODIES)
        self.subscribe(EPISODE_EVENT, self._on_event)
        own = recorded_topics(self._task)
        for topic, kind in found.topics(self._task, options).items():
            # What this system publishes itself is known; of others only the type is.
            known = own.get(topic, Topic(kind, Qos(10, "best_effort")))
            self.subscribe(topic, partial(self._hear, topic), known, patient=True)
        self._outcome = self.create_client(SetBool, EPISODE_OUTCOME)
        self._discard = self.create_client(Trigger, EPISODE_DISCARD)
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
        self._device.hear(topic, message, self.now_ns())

    def _end(self, mark: str) -> None:
        """Tell the episode runner how the person ended the episode. Nobody waits for its answer."""
        if mark == "discard":
            self._discard.call_async(Trigger.Request())
        else:
            self._outcome.call_async(SetBool.Request(data=mark == "success"))

    def _on_status(self, message: ArmStatus) -> None:
        self._tool = pose_arrays(message.tool)

    def _on_body(self, name: str, message: PoseStamped) -> None:
        self._bodies[name] = pose_arrays(message.pose)[0]

    def _on_event(self, event: EpisodeEvent) -> None:
        self._driving = False
        self._device.end()
        if event.kind != EpisodeEvent.START:
            return
        missing = [name for name in self._names if name not in self._bodies]
        if self._tool is None or missing:
            what = ", ".join(missing if self._tool is not None else ["tool", *missing])
            self.get_logger().error(f"no pose of {what} has arrived, so the episode is not driven")
            return
        position, quaternion = self._tool
        rotation = matrix_to_6d(matrix_from_quaternion(quaternion))
        seed, now_ns = int(event.seed), self.now_ns()
        self._device.begin(Start(event.label, seed, position, rotation, dict(self._bodies), now_ns))
        self._driving = True

    def _publish(self) -> None:
        if not self._driving or not self._grants.live("teleop", time.monotonic_ns()):
            return
        chunk = self._device.chunk_at(self.now_ns(), self._steps, self._dt_ns)
        if mark := self._device.take_mark():
            self._end(mark)
        if self._device.problem:
            self.get_logger().error(self._device.problem, throttle_duration_sec=5.0)
        if chunk is not None:
            self._chunks.publish(chunk_to_message(chunk, self._task, self.robot, self.frame_prefix))


main = TeleopNode.main
