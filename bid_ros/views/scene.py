"""What is drawn of a system in space: named lines, boxes and words, made from its messages. Every viewer shows these.

=============== ====================================================================================================
part            meaning
=============== ====================================================================================================
candidates      strong candidates that were kept, green = the smallest total loss to blue = the largest
trimmed         strong candidates that were trimmed, white and faint
weak            samples of the weak policy, red and faint
previous        previous decision from now on, violet
selected        decision, yellow
forwarded       chunk of a person or of the episode node that safety let through, light blue
trail           where the tool was since the episode was prepared, orange
workspace       box that the task's limits keep the tool in; red while safety stops the arm
safety          state of the safety node in words, above the workspace
start           box of the tool's start positions, grey
keep_out/table  place where nothing of the tool may be, by its name, dark red; a plane is as large as the workspace
new/table       this limit as ``bid calibrate limits`` measures it, pink
new/workspace   likewise
new/start       likewise
new/points      the points that limits are made of, pink
=============== ====================================================================================================

The messages may be those of rclpy or read from a bag: only their fields are used.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, DECISION, EPISODE_EVENT, MEASURED_LIMITS, SAFETY_CHUNK, SAFETY_STATE
from bid_ros.recording.episodes import PREPARE, START
from bid_ros.views import overlay
from bid_ros.views.drawn import Box, Lines, Part, Words, plain_lines
from bid_ros.views.limit_parts import limit_parts, measured_parts
from bid_ros.views.message_values import SAFETY, state, word
from bid_ros.views.overlay import ToolPlaces, positions_of

BEST: Final = overlay.KEPT
WORST: Final = (50, 90, 255)
TRAIL: Final = (255, 140, 40)
FORWARDED: Final = (150, 220, 255)
FREE: Final = (77, 153, 255)
STOP: Final = (255, 60, 50)
WAIT: Final = (255, 190, 60)
SHORT_S: Final = 1.0  # for which a decision is shown: an older one is nobody's plan any more
TRAIL_STEP: Final = 0.002  # m between two points of the trail
TRAIL_POINTS: Final = 1500
COLORS: Final = {"RUNNING": FREE, "STOPPED": STOP}  # of states of safety; the others are like WAIT


def loss_colors(total: ArrayLike, count: int) -> NDArray[np.uint8]:
    """Return the colours ``(count, 4)`` of candidates: :data:`BEST` for the smallest loss to :data:`WORST`.

    Args:
        total: ``(count,)`` losses; empty (the decoder has none) or all equal: every candidate is like the best.
        count: of the candidates.
    """
    losses = np.nan_to_num(np.asarray(total, np.float64), nan=np.inf, posinf=np.inf)
    share = np.zeros(count)
    finite = losses[np.isfinite(losses)]
    if len(losses) and len(finite) and np.ptp(finite) > 0:
        share = np.clip((losses - finite.min()) / np.ptp(finite), 0.0, 1.0)
    colors = np.array(BEST) + share[:, None] * (np.array(WORST) - np.array(BEST))
    return np.concatenate([colors.round(), np.full((count, 1), 220)], axis=1).astype(np.uint8)


def decision_lines(decision: Any, places: ToolPlaces) -> list[Lines]:
    """Return the parts of a Decision message. Each is there, also without lines, so that it replaces the one before.

    Args:
        decision: the message.
        places: where chunks put the tool; it knows the message's.
    """
    groups = positions_of(decision, places)
    strong, count = groups["strong"], int(decision.samples)
    kept = np.asarray(decision.kept, dtype=bool) if len(decision.kept) else np.ones(count, dtype=bool)
    total = np.asarray(decision.total, np.float64)
    colors = loss_colors(total[kept] if len(total) else total, int(kept.sum()))
    return [
        Lines("candidates", strong[kept], colors, 0.002, SHORT_S),
        plain_lines("trimmed", strong[~kept], (*overlay.TRIMMED, 70), 0.0012, SHORT_S),
        plain_lines("weak", groups["weak"], (*overlay.WEAK, 80), 0.0012, SHORT_S),
        plain_lines("previous", groups["previous"], (*overlay.PREVIOUS, 240), 0.004, SHORT_S),
        plain_lines("selected", groups["selected"], (*overlay.SELECTED, 255), 0.006, SHORT_S),
    ]


class ViewedScene:
    """Keeps what is to be drawn of one system.

    Args:
        task: layout of an action, and the workspace.
        places: where chunks put the tool. None: where the task commands its position.
    """

    def __init__(self, task: Task, places: ToolPlaces | None = None) -> None:
        self._places = places or ToolPlaces(task)
        limits = task.limits
        self._low, self._high = limits.workspace_min, limits.workspace_max
        self._task, self._fixed = task, limit_parts(task)
        self._measured: list[Part] = []
        self._trail = np.empty((TRAIL_POINTS, 3))
        self._points = 0
        self._safety: tuple[str, tuple[int, int, int]] = ("no word from safety", WAIT)
        self._add: Mapping[str, Callable[[Any], list[Part]]] = {
            DECISION: self._on_decision,
            ARM_STATUS: self._on_arm,
            SAFETY_STATE: self._on_safety,
            SAFETY_CHUNK: self._on_chunk,
            EPISODE_EVENT: self._on_event,
            MEASURED_LIMITS: self._on_measured,
        }

    @property
    def topics(self) -> Iterable[str]:
        """The topics whose messages change the scene."""
        return self._add.keys()

    def add(self, topic: str, message: Any) -> list[Part]:
        """Take a message of one of :attr:`topics`, and return the parts that are different now."""
        return self._add[topic](message)

    def standing(self) -> list[Part]:
        """Return what is there without a decision: limits and state of safety."""
        return [*self._state(), *self._fixed, *self._measured]

    def _state(self) -> list[Part]:
        text, color = self._safety
        middle = ((self._low[0] + self._high[0]) / 2, (self._low[1] + self._high[1]) / 2)
        return [
            Box("workspace", self._low, self._high, (*color, 200)),
            Words("safety", text, (*middle, self._high[2] + 0.05), 0.035, (*color, 255)),
        ]

    def trail(self) -> Lines:
        """Return where the tool was."""
        lines = self._trail[None, : self._points].copy() if self._points > 1 else np.empty((0, 0, 3))
        return plain_lines("trail", lines, (*TRAIL, 255), 0.003)

    def _on_decision(self, message: Any) -> list[Part]:
        return [*decision_lines(message, self._places)] if self._places.knows(message.dims) else []

    def _on_arm(self, message: Any) -> list[Part]:
        if not hasattr(message, "tool"):  # a bag of an earlier version
            return []
        place = message.tool.position
        here = np.array([place.x, place.y, place.z])
        last = self._trail[self._points - 1] if self._points else None
        if last is not None and np.linalg.norm(here - last) < TRAIL_STEP:
            return []
        if self._points == TRAIL_POINTS:  # every second point of the older half is enough
            thinned = np.concatenate([self._trail[: TRAIL_POINTS // 2 : 2], self._trail[TRAIL_POINTS // 2 :]])
            self._points = len(thinned)
            self._trail[: self._points] = thinned
        self._trail[self._points] = here
        self._points += 1
        return [self.trail()]

    def _on_safety(self, message: Any) -> list[Part]:
        name = word(SAFETY, message.state)
        said = (state(name, message.reason), COLORS.get(name, WAIT))
        if said == self._safety:
            return []
        self._safety = said
        return self._state()

    def _on_chunk(self, message: Any) -> list[Part]:
        """A policy's chunk is the decision already."""
        if not self._places.knows(message.dims) or message.source == "policy" or message.steps < 2:
            return []
        actions = np.asarray(message.actions, np.float64).reshape(1, message.steps, message.dims)
        return [plain_lines("forwarded", self._places.of(actions), (*FORWARDED, 255), 0.003, SHORT_S)]

    def _on_event(self, message: Any) -> list[Part]:
        if message.kind not in (PREPARE, START):
            return []
        self._points = 0
        return [self.trail()]

    def _on_measured(self, message: Any) -> list[Part]:
        self._measured = measured_parts(message.data, self._task) or self._measured
        return self._measured
