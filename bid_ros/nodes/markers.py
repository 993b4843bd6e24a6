"""The parts of a scene as markers, which RViz and Foxglove show."""

from itertools import product
from typing import Any, Final

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.nodes.ros_messages import duration_message, point
from bid_ros.views.drawn import Box, Lines, Part

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
