"""Limits of a task from poses of the tool that a person brought it to: the table, the workspace, the start box.

A margin is taken off every wall: the boxes become smaller, the table higher.
"""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from bid_ros.calibration.reach import unreached
from bid_ros.control.arm_model import ArmModel
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import Array
from bid_ros.core.settings import Vector3
from bid_ros.core.shapes import KeepOut, ToolBalls, ToolPart
from bid_ros.core.task import Start, Task

TABLE, WORKSPACE, START = "table", "workspace", "start"
PARTS: Final = (TABLE, WORKSPACE, START)
"""What is measured, in this order: each is held against those before it."""
LEAST: Final = {TABLE: 3, WORKSPACE: 2, START: 2}
"""Least number of points of each."""
NAMES: Final = {TABLE: "the table", WORKSPACE: "the workspace", START: "the start box"}
MARGIN_M: Final = 0.01
MOST_MARGIN_M: Final = 0.1
FLAT_M: Final = 0.005  # that a point may be off the table's plane
APART_M: Final = 0.02  # standard deviation of the table's points across the line that fits them best
STEEP: Final = math.radians(10.0)  # of the table from the base's x-y plane
LEAST_EDGE_M: Final = 0.01  # of a box, without its margin
_TURNS: Final = 3  # the lowest point of a tool that is tilted depends on the plane, which depends on it


@dataclass(frozen=True)
class TablePlane:
    """The table: all below a plane.

    Attributes:
        normal: unit vector, up.
        offset: of the plane from the origin along the normal, m.
    """

    normal: Vector3
    offset: float


@dataclass(frozen=True)
class LimitBox:
    """A box along the axes of the base frame, from corner ``low`` to corner ``high``, m."""

    low: Vector3
    high: Vector3

    def corners(self) -> Array:
        """Return its corners ``(8, 3)`` m."""
        return np.array([*product(*zip(self.low, self.high, strict=True))])


@dataclass(frozen=True)
class MeasuredLimits:
    """What ``bid calibrate limits`` writes.

    Attributes:
        table: None: the task knows of no table.
        workspace: of the tool.
        start: of the tool at the start of an episode; None: no episodes are started.
    """

    table: TablePlane | None
    workspace: LimitBox
    start: LimitBox | None


def limits_of(task: Task) -> MeasuredLimits:
    """Return the limits that a task has.

    Raises:
        CalibrationError: its table is no plane.
    """
    found = next((place for place in task.limits.keep_out if place.name == TABLE), None)
    table = None
    if found is not None:
        if found.normal is None or found.offset is None:
            raise CalibrationError(f"keep_out '{TABLE}' is a box; valid is a plane of normal and offset")
        length = math.hypot(*found.normal)
        x, y, z = (value / length for value in found.normal)
        table = TablePlane((x, y, z), found.offset)
    start = None if task.start is None else LimitBox(task.start.tool_min, task.start.tool_max)
    return MeasuredLimits(table, LimitBox(task.limits.workspace_min, task.limits.workspace_max), start)


def with_limits(task: Task, limits: MeasuredLimits) -> Task:
    """Return a task with other limits. Raises TaskError if they contradict each other, or the tool's shape."""
    places, table = task.limits.keep_out, limits.table
    if table is not None:
        new = KeepOut(TABLE, normal=table.normal, offset=table.offset)
        places = tuple(new if place.name == TABLE else place for place in places)
        places += () if new in places else (new,)
    box, start = limits.workspace, limits.start
    changed = replace(task.limits, workspace_min=box.low, workspace_max=box.high, keep_out=places)
    return replace(task, limits=changed, start=None if start is None else Start(start.low, start.high))


def check_margin(margin: float) -> None:
    """Raise CalibrationError unless a margin in m is one."""
    if not 0.0 <= margin <= MOST_MARGIN_M:
        raise CalibrationError(f"--margin is {margin:g} m; valid is 0 to {MOST_MARGIN_M:g} m")


def measured(
    part: str, tools: Array, known: MeasuredLimits, task: Task, margin: float, arm: ArmModel | None
) -> MeasuredLimits:
    """Return the limits with a part that was measured.

    Args:
        part: one of :data:`PARTS`.
        tools: ``(n, 4, 4)`` poses of the tool at the points, base frame.
        known: the limits so far.
        task: its tool's shape and largest tilt.
        margin: m off every wall.
        arm: of the robot; None: nobody knows what it reaches.

    Raises:
        CalibrationError: there are too few points; those of the table lie on a line, or on no plane, or on a steep
            one; a box has no volume, or the margin eats it; the workspace is below the table, the start box outside
            the workspace, or a corner out of the arm's reach.
    """
    if len(tools) < LEAST[part]:
        raise CalibrationError(f"{NAMES[part]} has {len(tools)} points; valid are {LEAST[part]} or more")
    if part == TABLE:
        return replace(known, table=table_plane(tools, task.tool_shape, margin))
    box = limit_box(part, tools[:, :3, 3], margin)
    if part == WORKSPACE:
        _check_above(box, known.table)
    else:
        _check_inside(box, known.workspace)
    if arm is not None:
        _check_reached(part, box, arm, task.limits.max_tilt)
    return replace(known, workspace=box) if part == WORKSPACE else replace(known, start=box)


def table_plane(tools: Array, parts: tuple[ToolPart, ...], margin: float) -> TablePlane:
    """Return the plane that the tool touched, higher by a margin. No point that it touched is above it.

    Args:
        tools: ``(n, 4, 4)`` poses of the tool, base frame.
        parts: of the tool; what it may hold does not count. Without any, the tool's own point touched.
        margin: m.

    Raises:
        CalibrationError: the points lie on a line, or on no plane, or on a steep one.
    """
    normal = np.array([0.0, 0.0, 1.0])
    for _ in range(_TURNS):
        points = _lowest(tools, parts, normal)
        middle = points.mean(axis=0)
        _, sizes, axes = np.linalg.svd(points - middle, full_matrices=False)
        if sizes[1] / math.sqrt(len(points)) < APART_M:
            raise CalibrationError("the table's points lie on a line; valid are points far apart in two directions")
        normal = axes[2] * (1.0 if axes[2, 2] >= 0.0 else -1.0)
    off = (points - middle) @ normal
    if np.abs(off).max() > FLAT_M:
        raise CalibrationError(
            f"the table's points are up to {1e3 * np.abs(off).max():.0f} mm off a plane; valid is up to "
            f"{1e3 * FLAT_M:.0f} mm: touch it with the same point of the tool each time"
        )
    if math.acos(min(1.0, normal[2])) > STEEP:
        raise CalibrationError(
            f"the table's points are on a plane that is tilted by {math.degrees(math.acos(normal[2])):.0f} degrees; "
            f"valid is up to {math.degrees(STEEP):.0f} degrees"
        )
    x, y, z = (round(float(value), 5) + 0.0 for value in normal)
    written = np.array([x, y, z]) / math.hypot(x, y, z)
    return TablePlane((x, y, z), _up(float((points @ written).max()) + margin, 4))


def limit_box(part: str, points: Array, margin: float) -> LimitBox:
    """Return the box around points ``(n, 3)`` m, smaller by a margin in m at each wall.

    Args:
        part: whose box it is, for the sentence.
        points, margin: as above.

    Raises:
        CalibrationError: it has no volume, or the margin eats it.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    for axis, edge in zip("xyz", high - low, strict=True):
        if edge < LEAST_EDGE_M:
            raise CalibrationError(
                f"{NAMES[part]} has no volume, as its points span {edge:.3f} m along {axis}; valid is "
                f"{LEAST_EDGE_M:g} m or more"
            )
        if edge - 2.0 * margin < LEAST_EDGE_M:
            raise CalibrationError(
                f"a margin of {margin:g} m eats {NAMES[part]}, as its points span {edge:.3f} m along {axis}; valid is "
                f"up to {(edge - LEAST_EDGE_M) / 2.0:.3f} m"
            )
    lower, upper = (tuple(float(value) for value in corner) for corner in (low + margin, high - margin))
    return LimitBox(_each(lower, 1.0), _each(upper, -1.0))


def _each(corner: tuple[float, ...], way: float) -> Vector3:
    """Return a corner in whole mm, inwards: up for the lower one, down for the upper one."""
    x, y, z = (way * _up(way * value, 3) + 0.0 for value in corner)
    return x, y, z


def _up(value: float, digits: int) -> float:
    """Return a value rounded up. What is a whole one but for the last bits stays."""
    return float(round(math.ceil(round(value * 10.0**digits, 4)) / 10.0**digits, digits))


def _lowest(tools: Array, parts: tuple[ToolPart, ...], normal: Array) -> Array:
    """Return the points ``(n, 3)`` m of a tool at poses ``(n, 4, 4)`` that are lowest along a normal."""
    own = tuple(part for part in parts if part.held is None)
    places: Array = tools[:, :3, 3]
    if not own:
        return places
    balls = ToolBalls(own)
    points = balls.at(places, tools[:, :3, :3]) - balls.radii[:, None] * normal
    lowest = (points @ normal).argmin(axis=1)
    return np.asarray(points[np.arange(len(points)), lowest])


def _check_above(box: LimitBox, table: TablePlane | None) -> None:
    if table is None:
        return
    corners = box.corners()
    above = corners @ np.array(table.normal) - table.offset
    row = int(above.argmin())
    if above[row] < -1e-6:
        raise CalibrationError(
            f"the corner {_place(corners[row])} of the workspace is {-1e3 * above[row]:.0f} mm below the table with "
            "its margin; valid is a workspace above it"
        )


def _check_inside(box: LimitBox, outer: LimitBox) -> None:
    for axis, low, high, least, most in zip("xyz", box.low, box.high, outer.low, outer.high, strict=True):
        if not least <= low < high <= most:
            raise CalibrationError(
                f"the start box runs along {axis} from {low:.3f} to {high:.3f} m; valid is inside the workspace, "
                f"{least:.3f} to {most:.3f} m"
            )


def _check_reached(part: str, box: LimitBox, arm: ArmModel, max_tilt: float) -> None:
    corners = box.corners()
    if (row := unreached(arm, corners, max_tilt)) is not None:
        raise CalibrationError(
            f"the corner {_place(corners[row])} of {NAMES[part]} is outside the arm's reach; valid is a box of which "
            f"it reaches all corners, tilted by up to {max_tilt:g} rad"
        )


def _place(point: Array) -> str:
    return f"[{', '.join(f'{value:.3f}' for value in point)}] m"
