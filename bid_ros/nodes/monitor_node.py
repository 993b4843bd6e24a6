"""Monitor node: shows what the system considers and does as markers, and drawn over a camera image."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from sensor_msgs.msg import Image
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from bid_msgs.msg import ArmStatus, Decision, SafetyState
from bid_ros.cameras.config import load_cameras
from bid_ros.cameras.image import encode_image
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.topics import (
    ARM_STATUS,
    DECISION,
    EPISODE_EVENT,
    IMAGES,
    MARKERS,
    MEASURED_LIMITS,
    MEASURES,
    OVERLAY,
    SAFETY_CHUNK,
    SAFETY_STATE,
    Topic,
    camera_topic,
)
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.joints import ARM_CONFIG, arm_of
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.robot_model import robot_model
from bid_ros.nodes.ros_messages import duration_message, point
from bid_ros.views.drawn import Box, Lines, Part
from bid_ros.views.overlay import DecisionPainter, ToolPlaces, decision_text
from bid_ros.views.scene import ViewedScene

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("cameras", "", "path of the camera file, whose first calibrated camera is drawn over"),
    Parameter("robot_model", True, "publish the robot's outline; false where robot_state_publisher does"),
    Parameter("twin", False, "the system runs in its twin: the sections `twin` of cameras and arm_config hold"),
    ARM_CONFIG,
)
TRAIL_S, STANDING_S = 0.25, 1.0  # between two messages with the trail, or with what changes seldom


class MonitorNode(BidNode):
    """Displays decisions and motion. No node depends on it."""

    def __init__(self) -> None:
        super().__init__("monitor", PARAMETERS, sim_time=True)
        self._task = self.load_task()
        names = [camera.name for camera in self._task.cameras]
        cameras = load_cameras(Path(self.value("cameras")), names, self.value("twin"))
        self._markers = self.advertise(MARKERS, Topic("visualization_msgs/msg/MarkerArray"))
        self._overlays = self.advertise(OVERLAY, IMAGES)
        places = ToolPlaces(self._task, arm_of(self, self._task))
        self._scene = ViewedScene(self._task, places)
        self._decision: Any = None
        self._stop = ""
        self._moved = False
        self.subscribe(DECISION, self._on_decision)
        self.subscribe(SAFETY_STATE, self._on_safety)
        self.subscribe(SAFETY_CHUNK, partial(self._on_message, SAFETY_CHUNK))
        self.subscribe(EPISODE_EVENT, partial(self._on_message, EPISODE_EVENT))
        self.subscribe(MEASURED_LIMITS, partial(self._on_message, MEASURED_LIMITS), MEASURES)
        self._model = robot_model(self, self._task) if self.value("robot_model") else None
        self.subscribe(ARM_STATUS, self._on_arm, patient=True)
        drawn = next((camera for camera in cameras.values() if camera.is_fixed), None)
        if drawn is None:
            self.get_logger().warning(f"no camera of {self.value('cameras')} is calibrated, so no overlay is drawn")
        else:
            painter = DecisionPainter(drawn, self._task, places)
            self.subscribe(camera_topic(drawn.name), partial(self._on_image, painter), IMAGES)
        self.create_timer(TRAIL_S, self._publish_trail)
        self.create_timer(STANDING_S, lambda: self._publish(self._scene.standing()))

    def _on_safety(self, message: SafetyState) -> None:
        self._stop = message.reason
        self._on_message(SAFETY_STATE, message)

    def _on_image(self, painter: DecisionPainter, message: Image) -> None:
        if self._overlays.get_subscription_count() == 0:
            return
        text = self._stop or (decision_text(self._decision, "") if self._decision is not None else "no decision yet")
        picture = Image(**encode_image(painter.paint(message, self._decision, text)))
        picture.header = message.header
        self._overlays.publish(picture)

    def _on_decision(self, message: Decision) -> None:
        self._decision = message
        if self._markers.get_subscription_count():
            self._on_message(DECISION, message)

    def _on_arm(self, message: ArmStatus) -> None:
        self._moved = bool(self._scene.add(ARM_STATUS, message)) or self._moved
        if self._model is not None:
            self._model.add(message)

    def _on_message(self, topic: str, message: Any) -> None:
        self._publish(self._scene.add(topic, message))

    def _publish_trail(self) -> None:
        if self._moved:
            self._moved = False
            self._publish([self._scene.trail()])

    def _publish(self, parts: list[Part]) -> None:
        if parts and self._markers.get_subscription_count():
            frame = self._task.base_frame
            self._markers.publish(MarkerArray(markers=[to_marker(part, frame) for part in parts]))


EDGE_WIDTH: Final = 0.003  # m, of a box


def to_marker(part: Part, frame_id: str) -> Marker:
    """Return the marker of a part; its namespace is the part's name, so that each can be switched off.

    Its stamp is zero, which means now: what is drawn must not wait for a transform of its time.
    """
    marker = Marker(ns=part.name, action=Marker.ADD)
    marker.header.frame_id = frame_id
    marker.pose.orientation.w = 1.0
    if isinstance(part, Lines):
        _draw_lines(marker, part)
    elif isinstance(part, Box):
        marker.type, marker.scale.x = Marker.LINE_LIST, EDGE_WIDTH
        marker.color, marker.points = _color(part.color), _edges(part)
    else:
        marker.type, marker.text, marker.color = Marker.TEXT_VIEW_FACING, part.text, _color(part.color)
        marker.pose.position, marker.scale.z = point(part.position), part.height
    return marker


def _draw_lines(marker: Marker, part: Lines) -> None:
    marker.scale.x = part.width
    if part.lasting_s is not None:
        marker.lifetime = duration_message(round(part.lasting_s * NANOSECONDS))
    if len(part.lines) == 1:
        marker.type, marker.points = Marker.LINE_STRIP, _points(part.lines[0])
        marker.color = _color(part.colors[0])
        return
    marker.type = Marker.LINE_LIST
    if not part.lines.size:
        return
    ends = np.repeat(part.lines, 2, axis=1)[:, 1:-1]
    marker.points = _points(ends.reshape(-1, 3))
    if (part.colors == part.colors[0]).all():
        marker.color = _color(part.colors[0])
    else:
        marker.color = _color(part.colors[0])  # RViz hides a marker whose own colour is transparent
        marker.colors = [color for one in part.colors for color in [_color(one)] * ends.shape[1]]


def _points(places: NDArray[np.float64]) -> list[Point]:
    return [Point(x=x, y=y, z=z) for x, y, z in places.tolist()]


def _edges(box: Box) -> list[Point]:
    """Return the ends of the twelve edges of a box."""
    corners = [np.array(corner) for corner in product(*zip(box.low, box.high, strict=True))]
    pairs = [(one, other) for one in corners for other in corners if (one != other).sum() == 1 and (one <= other).all()]
    return [point(end) for pair in pairs for end in pair]


def _color(color: Any) -> ColorRGBA:
    red, green, blue, alpha = (float(part) / 255 for part in color)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


main = MonitorNode.main
