"""The scene in Rerun: what the messages of a system say, as Rerun's own objects. Messages may be live or from a bag."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.depth import read_picture
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.extras import extra
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, DECISION, EPISODE_EVENT, ROSOUT, SAFETY_STATE, camera_topic
from bid_ros.views.drawn import Box, Lines, Part
from bid_ros.views.message_values import EVENTS, LATENCIES, MODES, SAFETY, decision_times_ms, state, word
from bid_ros.views.overlay import DecisionPainter, ToolPlaces, decision_text
from bid_ros.views.scene import ViewedScene

if TYPE_CHECKING:
    from bid_ros.views.outline import Outline

with extra("view", "bid view"):
    import rerun as rr
    import rerun.blueprint as rrb

TIMELINE: Final = "time"
SPACE: Final = "space"
QUALITY: Final = 85  # of the pictures, as JPEG
SCALARS: Final = {
    "latency_ms": LATENCIES,
    "loss": ("best", "median", "worst", "selected"),
}
TITLES: Final = {"latency_ms": "latency, ms", "loss": "total loss"}
SHOWN_S: Final = 30.0  # of the plots, up to the time that is looked at
WHITE: Final = (255, 255, 255)  # on a grey label
SERIES: Final = ((230, 180, 20), (150, 90, 230), (60, 160, 220), (40, 170, 100), (230, 110, 40))
EYE: Final = (0.66, -0.46, 0.28)  # m from the middle of the workspace
BACKGROUND: Final = (24, 26, 32)
LOG_LEVELS: Final = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "CRITICAL"}


class RerunView:
    """Logs messages to a Rerun recording.

    Args:
        recording: where to.
        task: of the system.
        cameras: its cameras; the decision is drawn over the first calibrated one. Empty: images stay as they are.
        places: where chunks put the tool. None: where the task commands its position.
        outline: of its robot; None: the robot is not drawn.

    Attributes:
        topics: what it shows, by their names in bid_ros.
    """

    def __init__(
        self,
        recording: "rr.RecordingStream",
        task: Task,
        cameras: Mapping[str, CameraConfig],
        places: ToolPlaces | None = None,
        outline: "Outline | None" = None,
    ) -> None:
        self._log, self._set_time = recording.log, recording.set_time
        self._scene = ViewedScene(task, places)
        self._decision: Any = None
        self._safety = self._mode = ""
        self._until: dict[str, int] = {}
        names = [camera.name for camera in task.cameras]
        drawn = next((name for name in names if name in cameras and cameras[name].is_fixed), None)
        self._painter = None if drawn is None else DecisionPainter(cameras[drawn], task, places)
        self._others: Mapping[str, Callable[[Any], None]] = {
            DECISION: self._on_decision,
            SAFETY_STATE: self._on_safety,
            ARM_STATUS: self._on_arm,
            EPISODE_EVENT: self._on_event,
            ROSOUT: self._on_log,
            **{camera_topic(name): partial(self._on_image, name, name == drawn) for name in names},
        }
        self.topics: Sequence[str] = tuple(dict.fromkeys([*self._scene.topics, *self._others]))
        self._log(SPACE, rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        for group, parts in SCALARS.items():
            for part, color in zip(parts, SERIES, strict=False):
                self._log(f"{group}/{part}", rr.SeriesLines(names=part, colors=color), static=True)
        self._robot = None
        if outline is not None:
            from bid_ros.views.rerun_robot import RerunRobot  # with MuJoCo, which not every computer has

            self._robot = RerunRobot(self._log, outline, SPACE)
        recording.send_blueprint(blueprint(task, drawn))

    def add(self, topic: str, stamp_ns: int, message: Any) -> None:
        """Show a message of one of :attr:`topics` that arrived at a time in ns since the epoch.

        Raises:
            CameraError: an image has an unknown encoding or size.
        """
        self.at(stamp_ns)
        if topic in self._scene.topics:
            for part in self._scene.add(topic, message):
                self._show(part, stamp_ns)
        if topic in self._others:
            self._others[topic](message)

    def begin(self, stamp_ns: int) -> None:
        """Show what is there before the first message, from a time on."""
        self.at(stamp_ns)
        for part in self._scene.standing():
            self._show(part, stamp_ns)

    def at(self, stamp_ns: int) -> None:
        """Go on to a time. What lasts only for a while and is over, such as the plan of a dead policy, goes away."""
        self._set_time(TIMELINE, timestamp=np.datetime64(stamp_ns, "ns"))
        for where in [where for where, end_ns in self._until.items() if end_ns < stamp_ns]:
            del self._until[where]
            self._log(where, rr.Clear(recursive=False))

    def _show(self, part: Part, stamp_ns: int) -> None:
        where = f"{SPACE}/{part.name}"
        if isinstance(part, Lines):
            lines = [line for line in part.lines if len(line) > 1]
            if part.lasting_s is not None:
                self._until[where] = stamp_ns + round(part.lasting_s * NANOSECONDS)
            self._log(where, rr.LineStrips3D(lines, colors=part.colors[: len(lines)], radii=part.width / 2))
        elif isinstance(part, Box):
            low, size = np.array(part.low), np.subtract(part.high, part.low)
            box = rr.Boxes3D(mins=[low], sizes=[size], colors=[part.color], radii=0.0015, fill_mode="majorwireframe")
            self._log(where, box)
        else:
            self._log(where, rr.Points3D([part.position], labels=[part.text], colors=[WHITE], radii=0.004))

    def _on_image(self, name: str, drawn: bool, message: Any) -> None:
        if drawn and self._painter is not None:
            text = "no decision yet" if self._decision is None else decision_text(self._decision, "")
            picture = self._painter.paint(message, self._decision, text)
        else:
            picture = read_picture(message, name)
        self._log(f"camera/{name}", rr.Image(picture).compress(jpeg_quality=QUALITY))

    def _on_decision(self, message: Any) -> None:
        self._decision = message
        for part, value in decision_times_ms(message).items():
            self._log(f"latency_ms/{part}", rr.Scalars(value))
        for part, value in loss_summary(message).items():
            self._log(f"loss/{part}", rr.Scalars(value))
        self._log("samples", rr.Scalars(message.samples))
        self._say()

    def _on_safety(self, message: Any) -> None:
        name = word(SAFETY, message.state)
        said = state(name, message.reason)
        if said != self._safety:
            self._safety = said
            self._note("safety", said, "INFO" if name == "RUNNING" else "WARN")
            self._say()

    def _on_arm(self, message: Any) -> None:
        if self._robot is not None and len(message.joint_positions):
            self._robot.move(stamp_ns(message), message.joint_positions, message.gripper_width)
        said = state(word(MODES, message.mode), message.reason)
        if said != self._mode:
            self._mode = said
            self._say()

    def _on_event(self, message: Any) -> None:
        self._note(
            "episode",
            f"{word(EVENTS, message.kind)} {message.episode + 1} {message.label} {message.outcome}".strip(),
            "INFO",
        )

    def _on_log(self, message: Any) -> None:
        self._note(str(message.name), str(message.msg), LOG_LEVELS.get(message.level, "INFO"))

    def _note(self, who: str, text: str, level: str) -> None:
        self._log("notes", rr.TextLog(f"{who}: {text}", level=level))

    def _say(self) -> None:
        """Show the state in words."""
        rows = {"safety": self._safety or "no word", "arm": self._mode or "no word"}
        if self._decision is not None:
            said = self._decision
            kept = int(np.sum(said.kept)) if len(said.kept) else said.samples
            rows |= {"decoder": said.decoder, "candidates": f"{said.samples}, kept {kept}, weak {said.weak_samples}"}
            rows |= {"decision": f"{decision_times_ms(said)['decision_ms']:.0f} ms", "missed": said.missed}
        table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
        self._log("state", rr.TextDocument(f"| | |\n|---|---|\n{table}", media_type="text/markdown"))


def loss_summary(decision: Any) -> dict[str, float]:
    """Return the ``best``, ``median`` and ``worst`` total loss of the kept candidates, and that of the ``selected``.

    Empty if the decoder has no losses; without ``selected`` if the decision is none of the candidates.
    """
    total = np.asarray(decision.total, np.float64)
    finite = total[np.isfinite(total)]
    if not len(finite):
        return {}
    found = {"best": float(finite.min()), "median": float(np.median(finite)), "worst": float(finite.max())}
    index = int(decision.selected_index)
    if 0 <= index < len(total) and math.isfinite(total[index]):
        found["selected"] = float(total[index])
    return found


def blueprint(task: Task, drawn: str | None) -> "rrb.Blueprint":
    """Return how the window is divided.

    Args:
        task: its cameras have a picture each; the scene is seen over its workspace.
        drawn: the camera that the decision is drawn over, which comes first.
    """
    order = sorted((camera.name for camera in task.cameras), key=lambda name: name != drawn)
    low, high = np.array(task.limits.workspace_min), np.array(task.limits.workspace_max)
    middle = (low + high) / 2
    eye = rrb.EyeControls3D(position=np.add(middle, EYE), look_target=middle, eye_up=[0, 0, 1])
    recent = rrb.VisibleTimeRange(
        TIMELINE,
        start=rrb.TimeRangeBoundary.cursor_relative(seconds=-SHOWN_S),
        end=rrb.TimeRangeBoundary.cursor_relative(),
    )
    space = rrb.Spatial3DView(origin=SPACE, name="scene", background=BACKGROUND, eye_controls=eye)
    plots = [rrb.TimeSeriesView(origin=group, name=title, time_ranges=recent) for group, title in TITLES.items()]
    pictures = [rrb.Spatial2DView(origin=f"camera/{name}", name=name.replace("_", " ")) for name in order]
    words = [rrb.TextDocumentView(origin="state", name="state"), rrb.TextLogView(origin="notes", name="notes")]
    shares = [2.0, *[1.0] * (len(pictures) - 1), 1.6, 0.9] if pictures else [1, 1]
    left = rrb.Vertical(space, rrb.Horizontal(*plots), row_shares=[2.4, 1])
    return rrb.Blueprint(
        rrb.Horizontal(left, rrb.Vertical(*pictures, *words, row_shares=shares), column_shares=[1.8, 1]),
        rrb.TimePanel(state="collapsed", timeline=TIMELINE),
        rrb.BlueprintPanel(state="collapsed"),
        rrb.SelectionPanel(state="collapsed"),
    )
