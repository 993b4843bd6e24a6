"""Monitor node: shows the candidates of the policy as RViz markers, and drawn over a camera image."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from bid_msgs.msg import Decision, SafetyState
from bid_ros.cameras.config import load_cameras
from bid_ros.cameras.image import encode_image
from bid_ros.core.topics import DECISION, IMAGES, MARKERS, OVERLAY, SAFETY_STATE, Topic, camera_topic
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.convert import point
from bid_ros.nodes.parameters import Parameter
from bid_ros.views.frames import DecisionPainter, decision_text, positions_of

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("cameras", "", "path of the camera file, whose first calibrated camera is drawn over"),
    Parameter("twin", False, "the system runs in its twin: the cameras' sections `twin` hold"),
)
COLORS = {
    "trimmed": (1.0, 1.0, 1.0, 0.25),
    "kept": (0.2, 0.9, 0.5, 0.7),
    "weak": (1.0, 0.3, 0.3, 0.3),
    "previous": (0.75, 0.35, 1.0, 0.9),
    "selected": (1.0, 0.85, 0.15, 1.0),
    "workspace": (0.3, 0.6, 1.0, 0.8),
}
WIDTHS = {"selected": 0.006, "previous": 0.004}


class MonitorNode(BidNode):
    """Displays decisions. No node depends on it."""

    def __init__(self) -> None:
        super().__init__("monitor", PARAMETERS, sim_time=True)
        self._task = self.load_task()
        names = [camera.name for camera in self._task.cameras]
        cameras = load_cameras(Path(self.value("cameras")), names, self.value("twin"))
        self._markers = self.advertise(MARKERS, Topic("visualization_msgs/msg/MarkerArray"))
        self._overlays = self.advertise(OVERLAY, IMAGES)
        self._decision: Any = None
        self._stop = ""
        self.subscribe(DECISION, self._on_decision)
        self.subscribe(SAFETY_STATE, self._on_safety)
        drawn = next((camera for camera in cameras.values() if camera.position is not None), None)
        if drawn is None:
            self.get_logger().warning(f"no camera of {self.value('cameras')} is calibrated, so no overlay is drawn")
        else:
            painter = DecisionPainter(drawn, self._task)
            self.subscribe(camera_topic(drawn.name), partial(self._on_image, painter), IMAGES)
        self.create_timer(1.0, self._publish_workspace)

    def _on_safety(self, message: SafetyState) -> None:
        self._stop = message.reason

    def _on_image(self, painter: DecisionPainter, message: Image) -> None:
        if self._overlays.get_subscription_count() == 0:
            return
        text = self._stop or (decision_text(self._decision, "") if self._decision is not None else "no decision yet")
        picture = Image(**encode_image(painter.paint(message, self._decision, text)))
        picture.header = message.header
        self._overlays.publish(picture)

    def _on_decision(self, message: Decision) -> None:
        self._decision = message
        columns = self._task.columns("position")
        if columns is None or self._markers.get_subscription_count() == 0:
            return
        groups = positions_of(message, columns)
        strong = groups.pop("strong")
        kept = np.asarray(message.kept, dtype=bool) if len(message.kept) else np.ones(message.samples, dtype=bool)
        groups = {"trimmed": strong[~kept], "kept": strong[kept], **groups}
        markers = [self._lines(message, name, chunks) for name, chunks in groups.items()]
        self._markers.publish(MarkerArray(markers=markers))

    def _lines(self, message: Decision, name: str, chunks: NDArray[np.float64]) -> Marker:
        marker = self._marker(name, Marker.LINE_LIST, WIDTHS.get(name, 0.0015))
        marker.header = message.header
        marker.points = [point(p) for chunk in chunks for pair in pairwise(chunk) for p in pair]
        return marker

    def _publish_workspace(self) -> None:
        limits = self._task.limits
        marker = self._marker("workspace", Marker.CUBE, 0.0)
        marker.header.frame_id = self._task.base_frame
        low, high = np.array(limits.workspace_min), np.array(limits.workspace_max)
        marker.pose.position = point((low + high) / 2)
        marker.scale.x, marker.scale.y, marker.scale.z = map(float, high - low)
        marker.color.a = 0.08
        self._markers.publish(MarkerArray(markers=[marker]))

    def _marker(self, name: str, kind: int, width: float) -> Marker:
        red, green, blue, alpha = COLORS[name]
        marker = Marker(ns=name, id=0, type=kind, action=Marker.ADD, color=ColorRGBA(r=red, g=green, b=blue, a=alpha))
        marker.scale.x = width
        marker.pose.orientation.w = 1.0
        return marker


main = MonitorNode.main
