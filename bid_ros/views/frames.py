"""Draws a decision message over a camera image, live and from bags."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import decode_image
from bid_ros.core.errors import CameraError
from bid_ros.core.task import Task
from bid_ros.views.decision_times import decision_times_ms
from bid_ros.views.overlay import draw_decision
from bid_ros.views.places import ToolPlaces

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
            chunks = positions_of(decision, self._places)
            drawn = {name: chunks[name] for name in ("strong", "weak")}
            drawn |= {name: chunks[name][0] for name in ("selected", "previous")}
            drawn |= {"kept": np.asarray(decision.kept, dtype=bool), "scores": np.asarray(decision.total, np.float64)}
        return draw_decision(decode_image(image), self._model, **drawn, text=text, height=HEIGHT)


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
