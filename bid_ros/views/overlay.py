"""Draws decisions over camera images, live and from bags: where chunks put the tool, their lines, and the painter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.depth import read_picture
from bid_ros.cameras.model import CameraModel
from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import tool_task
from bid_ros.core.errors import CameraError
from bid_ros.core.task import Task
from bid_ros.robots.registry import task_arm
from bid_ros.views.message_values import decision_times_ms
from bid_ros.views.strokes import Color, Image, Points, dots, stroke, text_width, write

Array = NDArray[np.float64]


class ToolPlaces:
    """Finds the tool along the chunks of one system.

    A system that commands joints may have a policy that predicts poses. Its decisions are of poses, its chunks of
    joints: the width of a row tells them apart.

    Args:
        task: of the system.
        arm: kinematics, of a task that commands joints. None: its chunks of joints cannot be drawn.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        poses = tool_task(task)
        self._columns, self._width = poses.columns("position"), poses.action_dim
        self._joints, self._joints_width, self._arm = task.columns("joints"), task.action_dim, arm

    def knows(self, width: int) -> bool:
        """Whether the tool is known along rows of ``width`` values."""
        if self._joints is not None and width == self._joints_width:
            return self._arm is not None
        return self._columns is not None and width == self._width

    def of(self, rows: ArrayLike) -> Array:
        """Return the tool's positions ``(..., 3)`` in m, base frame, along rows ``(..., D)`` that are known."""
        values = np.asarray(rows, dtype=np.float64)
        if self._joints is not None and self._arm is not None and values.shape[-1] == self._joints_width:
            return self._arm.forward(values[..., self._joints])[0]
        places: Array = values[..., self._columns]
        return places


def tool_places(task: Task, robot: Path, twin: bool) -> ToolPlaces:
    """Return where chunks of a task put the tool.

    Args:
        task: of the system.
        robot: path of its ``robot.yaml``. If there is none, the robot's own numbers hold.
        twin: its section ``twin`` holds.

    Raises:
        BidError: as :func:`bid_ros.robots.registry.task_arm`.
    """
    config: Any = robot if robot.is_file() else ""
    return ToolPlaces(task, task_arm(task, config, twin))


TRIMMED: Final = (255, 255, 255)
KEPT: Final = (60, 235, 140)
WEAK: Final = (255, 84, 84)
PREVIOUS: Final = (190, 90, 255)
SELECTED: Final = (255, 216, 40)
CASING: Final = (16, 18, 24)
PANEL: Final = (16, 18, 24)
TEXT: Final = (238, 240, 245)
MUTED: Final = (168, 174, 186)


def draw_decision(
    image: Image,
    camera: CameraModel,
    strong: Array,
    selected: Array,
    previous: Array | None = None,
    kept: NDArray[np.bool_] | None = None,
    weak: Array | None = None,
    text: str = "",
    scores: Array | None = None,
    height: int = 480,
) -> Image:
    """Return the picture, enlarged, with a decision drawn over it and a legend below it.

    Args:
        image: ``(rows, columns, 3)`` uint8, rgb. Its size may differ from that of the camera model.
        camera: model of the camera that took it.
        strong: ``(N, H, 3)`` tool positions of the candidates, m, base frame; N may be 0.
        selected: ``(H, 3)`` tool positions of the decision; empty = no decision yet.
        previous: ``(P, 3)`` rest of the previous decision; None or empty = none.
        kept: ``(N,)`` which candidates were kept; None or empty = all.
        weak: ``(M, H, 3)`` samples of the weak policy; None or empty = none.
        text: one line below the picture, for example ``bid   decision 41 ms   success 2 of 3``.
        scores: ``(N,)`` minimised value, NaN where trimmed; None or empty = all equal.
        height: height of the enlarged picture in px, without the panel below it.

    Returns:
        ``(height + panel, width, 3)`` uint8, rgb. Both sizes are even, because video encoders need that.
    """
    height = 2 * round(height / 2)
    width = 2 * round(height * image.shape[1] / image.shape[0] / 2)
    canvas = cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.uint8, copy=False)
    entries = draw_chunks(canvas, camera, strong, selected, previous, kept, weak, scores, height / 480)
    return np.concatenate([canvas, panel(width, height / 480, text, entries)])


class Eye(Protocol):
    """What sees the scene: a :class:`bid_ros.cameras.model.CameraModel`, or one that also knows what is hidden."""

    @property
    def width(self) -> int:
        """Width of its image in px."""

    @property
    def height(self) -> int:
        """Height of its image in px."""

    def project(self, points: ArrayLike) -> tuple[Array, Array]:
        """As :meth:`bid_ros.cameras.model.CameraModel.project`; NaN for a point that it does not see."""


def draw_chunks(
    canvas: Image,
    camera: Eye,
    strong: Array,
    selected: Array,
    previous: Array | None = None,
    kept: NDArray[np.bool_] | None = None,
    weak: Array | None = None,
    scores: Array | None = None,
    unit: float = 1.0,
) -> list[tuple[str, Color]]:
    """Draw a decision into ``canvas`` in place, and return what is in it for the legend: names and colours.

    Args:
        canvas: ``(height, width, 3)`` uint8, rgb. Its size may differ from that of the camera's image.
        camera: that sees the scene.
        strong, selected, previous, kept, weak, scores: as :func:`draw_decision`.
        unit: px that a line of width 1 is wide.
    """
    scale = np.array([canvas.shape[1] / camera.width, canvas.shape[0] / camera.height])

    def pixels(points: Array) -> Points:
        return np.asarray(camera.project(points)[0] * scale)

    mask = np.ones(len(strong), dtype=bool) if kept is None or len(kept) == 0 else np.asarray(kept, dtype=bool)
    lines = pixels(np.asarray(strong))
    faint = [] if weak is None or len(weak) == 0 else list(pixels(np.asarray(weak)))
    stroke(canvas, faint, WEAK, 1.2 * unit, 0.36)
    stroke(canvas, lines[~mask], TRIMMED, 1.2 * unit, 0.5)
    opacities = _opacities(scores, mask)
    best_last = np.argsort(opacities)
    stroke(canvas, lines[mask][best_last], KEPT, 2.0 * unit, opacities[best_last].tolist())
    has_previous = previous is not None and len(previous) > 1
    if has_previous:
        _draw_previous(canvas, pixels(np.asarray(previous)), unit)
    _draw_selected(canvas, pixels(np.asarray(selected)), unit)
    entries = [("selected", SELECTED)] if len(selected) else []
    entries += [("candidates" if mask.all() else "kept", KEPT)] if mask.any() else []
    entries += [("trimmed", TRIMMED)] if not mask.all() else []
    entries += [("weak", WEAK)] if faint else []
    entries += [("previous", PREVIOUS)] if has_previous else []
    return entries


def _opacities(scores: Array | None, mask: NDArray[np.bool_]) -> Array:
    """Return the opacity of each kept candidate by the rank of its score. The smallest score is the most opaque."""
    count = int(mask.sum())
    if scores is None or len(scores) == 0 or count < 2:
        return np.full(count, 0.65)
    order = np.argsort(np.argsort(np.nan_to_num(np.asarray(scores, dtype=np.float64)[mask], nan=np.inf)))
    return np.asarray(0.9 - 0.6 * order / (count - 1), dtype=np.float64)


def _draw_previous(canvas: Image, line: Points, unit: float) -> None:
    dash = (9.0 * unit, 6.0 * unit)
    stroke(canvas, [line], CASING, 5.0 * unit, 0.35, dash)
    stroke(canvas, [line], PREVIOUS, 3.0 * unit, 0.95, dash)


def _draw_selected(canvas: Image, line: Points, unit: float) -> None:
    """Draw a bold line with a dark border, which is visible on any background, and one dot for each action."""
    stroke(canvas, [line], CASING, 7.0 * unit, 0.55)
    stroke(canvas, [line], SELECTED, 4.0 * unit)
    radii = np.linspace(3.8, 2.4, len(line)) * unit
    dots(canvas, line, CASING, (radii + 1.4 * unit).tolist(), 0.8)
    dots(canvas, line, SELECTED, radii.tolist())


def panel(width: int, unit: float, text: str, entries: Sequence[tuple[str, Color]]) -> Image:
    """Return a panel of ``width`` px with a line of text and the legend of :func:`draw_chunks`; 64 units high."""
    size, margin = 15.0 * unit, 14.0 * unit
    plain = np.full((2 * round(32 * unit), width, 3), PANEL, dtype=np.uint8)
    x, y = margin, 46.0 * unit
    texts = [(text, (margin, 20.0 * unit), TEXT)]
    for name, color in entries:
        dash = (7.0 * unit, 4.0 * unit) if name == "previous" else None
        stroke(plain, [np.array([[x, y], [x + 18 * unit, y]])], color, 3.0 * unit, 1.0, dash)
        texts.append((name, (x + 24 * unit, y), MUTED))
        x += 24 * unit + text_width(name, 0.9 * size) + 16 * unit
    return write(np.array(write(plain, texts[1:], 0.9 * size)), texts[:1], size)


HEIGHT: Final = 384  # px of a picture, without the panel below it


class DecisionPainter:
    """Draws decision messages (of rclpy or read from a bag) over the images of one calibrated camera.

    Args:
        camera: the fixed, calibrated camera.
        task: layout of an action.
        places: where chunks put the tool. None: where the task commands its position.

    Raises:
        CameraError: the camera is not calibrated, or nothing says where chunks put the tool.
    """

    def __init__(self, camera: CameraConfig, task: Task, places: ToolPlaces | None = None) -> None:
        shape = next(feature.shape for feature in task.cameras if feature.name == camera.name)
        model = camera.model(shape[1], shape[0])
        if model is None:
            raise CameraError(f"camera '{camera.name}' has no position and quaternion, so nothing can be drawn over it")
        self._model, self._places = model, places or ToolPlaces(task)
        if not self._places.knows(task.action_dim):
            kinds = ", ".join(item.kind for item in task.action)
            raise CameraError(f"task '{task.name}' commands {kinds}, so nothing says where its chunks put the tool")

    def paint(self, image: Any, decision: Any | None, text: str) -> NDArray[np.uint8]:
        """Return the picture ``(height, width, 3)`` rgb of an Image message, with a Decision message drawn over it."""
        drawn: dict[str, Any] = {"strong": np.empty((0, 1, 3)), "selected": np.empty((0, 3))}
        if decision is not None and self._places.knows(decision.dims):
            drawn = chunks_of(decision, self._places)
        return draw_decision(read_picture(image), self._model, **drawn, text=text, height=HEIGHT)


def chunks_of(decision: Any, places: ToolPlaces) -> dict[str, Any]:
    """Return the arguments of :func:`draw_chunks` that a Decision message says; arguments as :func:`positions_of`."""
    chunks = positions_of(decision, places)
    found: dict[str, Any] = {name: chunks[name] for name in ("strong", "weak")}
    found |= {name: chunks[name][0] for name in ("selected", "previous")}
    return found | {"kept": np.asarray(decision.kept, dtype=bool), "scores": np.asarray(decision.total, np.float64)}


def positions_of(decision: Any, places: ToolPlaces) -> dict[str, NDArray[np.float64]]:
    """Return the positions in a Decision message from its current step on, ``(number, steps, 3)`` in m, base frame.

    Args:
        decision: the message, of rclpy or read from a bag.
        places: where chunks put the tool; it knows the message's.

    Returns:
        The chunks ``strong``, ``weak``, ``selected`` (one) and ``previous`` (one, without steps if there is none).
    """
    found, counts = {}, {"strong": decision.samples, "weak": decision.weak_samples, "selected": 1, "previous": 1}
    for name, count in counts.items():
        steps = decision.previous_steps if name == "previous" else decision.steps
        chunks = np.asarray(getattr(decision, name), np.float64).reshape(count, steps, decision.dims)
        found[name] = places.of(chunks[:, decision.current_step :])
    return found


def decision_text(decision: Any, outcome: str) -> str:
    """Return one line about a decision: decoder, samples, latency, and the state of the episode."""
    took_ms = decision_times_ms(decision)["decision_ms"]
    return f"{decision.decoder}   N = {decision.samples}   decision {took_ms:.0f} ms   {outcome}"
