"""Draws a decision message over a camera image, live and from bags."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import decode_image
from bid_ros.core.errors import CameraError
from bid_ros.core.task import Task
from bid_ros.views.overlay import draw_decision

HEIGHT: Final = 384  # px of a picture, without the panel below it


class DecisionPainter:
    """Draws decision messages (of rclpy or read from a bag) over the images of one calibrated camera.

    Args:
        camera: the fixed, calibrated camera.
        task: layout of an action.

    Raises:
        CameraError: the camera is not calibrated, or the task commands no position.
    """

    def __init__(self, camera: CameraConfig, task: Task) -> None:
        shape = next(feature.shape for feature in task.cameras if feature.name == camera.name)
        model = camera.model(shape[1], shape[0])
        columns = task.columns("position")
        if model is None or columns is None:
            raise CameraError(f"camera '{camera.name}' has no position and quaternion, so nothing can be drawn over it")
        self._model, self._columns = model, columns

    def paint(self, image: Any, decision: Any | None, text: str) -> NDArray[np.uint8]:
        """Return the picture ``(height, width, 3)`` rgb of an Image message, with a Decision message drawn over it."""
        drawn: dict[str, Any] = {"strong": np.empty((0, 1, 3)), "selected": np.empty((0, 3))}
        if decision is not None:
            chunks = positions_of(decision, self._columns)
            drawn = {name: chunks[name] for name in ("strong", "weak")}
            drawn |= {name: chunks[name][0] for name in ("selected", "previous")}
            drawn |= {"kept": np.asarray(decision.kept, dtype=bool), "scores": np.asarray(decision.total, np.float64)}
        return draw_decision(decode_image(image), self._model, **drawn, text=text, height=HEIGHT)


def positions_of(decision: Any, columns: slice) -> dict[str, NDArray[np.float64]]:
    """Return the positions in a Decision message from its current step on, ``(number, steps, 3)`` in m, base frame.

    Args:
        decision: the message, of rclpy or read from a bag.
        columns: those of the position in an action.

    Returns:
        The chunks ``strong``, ``weak``, ``selected`` (one) and ``previous`` (one, without steps if there is none).
    """
    found, counts = {}, {"strong": decision.samples, "weak": decision.weak_samples, "selected": 1, "previous": 1}
    for name, count in counts.items():
        steps = decision.previous_steps if name == "previous" else decision.steps
        chunks = np.asarray(getattr(decision, name), np.float64).reshape(count, steps, decision.dims)
        found[name] = chunks[:, decision.current_step :, columns]
    return found


def decision_text(decision: Any, outcome: str) -> str:
    """Return one line about a decision: decoder, samples, latency, and the state of the episode."""
    return f"{decision.decoder}   N = {decision.samples}   decision {decision.decision_ms:.0f} ms   {outcome}"
