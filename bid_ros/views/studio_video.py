"""A shaded picture or video of a recorded run in the twin's scene: arm, bodies, and the decisions in space."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.cameras.depth import read_picture
from bid_ros.cameras.model import CameraModel
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, DECISION, EPISODE_EVENT, body_topic, camera_topic
from bid_ros.recording.episodes import END, START
from bid_ros.recording.reader import BagReader
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.sim.studio import CAMERA
from bid_ros.tasks.registry import kind_of
from bid_ros.tasks.twins import picture_model
from bid_ros.views.outline import ScenePose
from bid_ros.views.overlay import ToolPlaces, chunks_of, decision_text, draw_chunks, panel
from bid_ros.views.video import compose, writer_of

Picture = NDArray[np.uint8]
State = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
SIZES: Final[Mapping[str, tuple[int, int]]] = {"480p": (854, 480), "720p": (1280, 720), "1080p": (1920, 1080)}
RUN: Final = "run"  # the small picture, with what the policy sees beside it
RUN_SIZE: Final = (480, 270)
GAP: Final = 6  # px between the pictures of a run
FRAMES_PER_SECOND: Final = {RUN: 10, "480p": 20, "720p": 20, "1080p": 20}
MAX_FRAMES: Final = {RUN: 100, "480p": 200, "720p": 150, "1080p": 80}  # 0.5 GB
HELD_S: Final = 0.6  # for which the end of an episode is shown
AWAY_Z: Final = -50.0  # m, where nobody sees a body of which the bag says nothing


THICKNESS: Final = 0.01  # m by which a point may lie behind what is seen: lines lie on surfaces
FROM_MUJOCO: Final = np.diag([1.0, -1.0, -1.0])  # MuJoCo's cameras look along -z, y up


class StudioEye:
    """A :class:`bid_ros.views.overlay.Eye` at the studio's camera.

    Args:
        model: MuJoCo's model of the scene.
        width, height: size of the picture in px.

    Attributes:
        depths: ``(height, width)`` m, what the camera sees; None: nothing is hidden.
    """

    def __init__(self, model: Any, width: int, height: int) -> None:
        camera = model.camera(CAMERA)
        turn = np.asarray(model.cam_mat0[camera.id]).reshape(3, 3) @ FROM_MUJOCO
        self._model = CameraModel(np.array(model.cam_pos0[camera.id]), turn, float(camera.fovy[0]), width, height)
        self.depths: NDArray[np.float64] | None = None
        self.width, self.height = width, height

    def project(self, points: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return pixels ``(..., 2)``, NaN where something else is in front, and depths ``(...)`` in m, of points."""
        pixels, depth = self._model.project(points)
        if self.depths is not None:
            inside = np.asarray((pixels >= 0).all(-1) & (pixels < (self.width, self.height)).all(-1))
            column, row = np.where(inside[..., None], pixels, 0.0).astype(int).T
            pixels[inside & (depth > self.depths[row.T, column.T] + THICKNESS)] = np.nan
        return pixels, depth


@dataclass(frozen=True, eq=False)
class Moment:
    """What a run was like at one instant.

    Attributes:
        state: positions of the scene, as :meth:`bid_ros.sim.renderer.SceneRenderer.render` takes them.
        decision: newest Decision message; None: none yet.
        text: number of the episode, and how it ended.
        images: newest images of the policy's cameras, in the order of the task.
    """

    state: State
    decision: Any | None
    text: str
    images: tuple[Any, ...] = ()


def write_studio(
    bag: Path,
    out: Path,
    task: Task,
    places: ToolPlaces,
    quality: str = "720p",
    at_s: float = 3.0,
    episode: int | None = None,
    drawn: Callable[[int], None] = lambda total: None,
) -> Path | None:
    """Write a video (MP4, WebP or GIF) of the episodes in a bag, or one picture (PNG), by the name of ``out``.

    Args:
        bag: the recording. A bag of the twin says where the bodies are; one of a robot shows the arm alone. Decisions
            in it are drawn in the scene, where they are not hidden.
        out: file to write.
        task: of the run.
        places: where chunks put the tool.
        quality: one of ``SIZES``, or ``RUN``: small, with the images of the policy beside it.
        at_s: s after the start of the first episode, of a picture.
        episode: number of the one that is shown, counted from 0; None: all.
        drawn: called with the number of pictures, after each.

    Returns:
        The file; None if the bag has no such episode.

    Raises:
        BidError: the name of ``out`` is that of neither a video nor a picture.
        RecordingError: the bag cannot be read, or its arm status does not say the joints of the task's robot.
        ArmError: there are no outlines of the robot, or the twin's packages are not installed.
        CameraError: no offscreen rendering works here.
    """
    rate, picture = FRAMES_PER_SECOND[quality], out.suffix == ".png"
    write = None if picture else writer_of(out)
    model = picture_model(task)
    with BagReader(bag) as reader:
        moments = list(_moments(reader, ScenePose(model), task, rate, episode, at_s if picture else None))
    if not moments:
        return None
    stride = max(1, -(-len(moments) // MAX_FRAMES[quality]))
    painter = StudioPainter(model, places, quality)
    try:
        pictures = []
        for moment in (kept := moments[::stride]):
            pictures.append(painter.paint(moment))
            drawn(len(kept))
    finally:
        painter.close()
    if write is not None:
        return write(pictures, out, rate / stride)
    out.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(out), pictures[0][:, :, ::-1])
    return out


class StudioPainter:
    """Draws moments of a run. Use it in the thread that made it; see :class:`bid_ros.sim.renderer.SceneRenderer`.

    Args:
        model: scene of :func:`bid_ros.tasks.twins.picture_model`. ``RUN`` changes its quality.
        places: where chunks put the tool.
        quality: one of ``SIZES``, or ``RUN``.
    """

    def __init__(self, model: Any, places: ToolPlaces, quality: str) -> None:
        self._places, self._run = places, quality == RUN
        width, height = RUN_SIZE if self._run else SIZES[quality]
        if self._run:  # smooth edges take two fifths of a picture's time, and show little at this size
            model.vis.quality.offsamples = 0
        self._renderer = SceneRenderer(model, width, height, [CAMERA], shaded=True)
        self._eye = StudioEye(model, width, height)

    def paint(self, moment: Moment) -> Picture:
        """Return the picture ``(height, width, 3)`` rgb, with the legend of a decision in it or below it."""
        image, depths = self._renderer.render_with_depths(*moment.state)[CAMERA]
        entries = []
        if moment.decision is not None and self._places.knows(moment.decision.dims):
            self._eye.depths = depths
            unit = max(0.5, len(image) / 900)
            entries = draw_chunks(image, self._eye, **chunks_of(moment.decision, self._places), unit=unit)
        text = moment.text if moment.decision is None else decision_text(moment.decision, moment.text)
        if self._run:
            whole = _beside(image, moment.images)
            return np.concatenate([whole, panel(whole.shape[1], 0.9, text, entries)])
        if entries:
            strip = panel(image.shape[1], len(image) / 720, text, entries)
            below = image[-len(strip) :]
            below[:] = cv2.addWeighted(strip, 0.72, below, 0.28, 0.0)
        return image

    def close(self) -> None:
        """Free the OpenGL context."""
        self._renderer.close()


def _beside(main: Picture, images: Sequence[Any]) -> Picture:
    """Put what the policy sees beside the picture, one image above the other."""
    if not images:
        return main
    height = (len(main) - GAP * (len(images) - 1)) // len(images) // 2 * 2
    column = np.zeros((len(main), height, 3), np.uint8)
    for number, message in enumerate(images):
        image = read_picture(message)
        scale = height / max(image.shape[:2])
        size = (round(image.shape[1] * scale), round(image.shape[0] * scale))
        top = number * (height + GAP)
        column[top : top + size[1], : size[0]] = cv2.resize(image, size, interpolation=cv2.INTER_CUBIC)
    return compose(main, column, gap=GAP)


def _moments(
    reader: BagReader, pose: ScenePose, task: Task, rate: float, wanted: int | None, at_s: float | None
) -> Iterator[Moment]:
    """Yield what to draw: ``rate`` moments a second of an episode and its end, or that ``at_s`` after a start alone."""
    bodies = {body_topic(name): name for name in kind_of(task).bodies}
    for name in bodies.values():
        pose.set_body(name, (0.0, 0.0, AWAY_Z), (1.0, 0.0, 0.0, 0.0))
    images: dict[str, Any] = dict.fromkeys(camera_topic(camera.name) for camera in task.cameras)
    due_ns, text, decision, step_ns = np.inf, "", None, 1e9 / rate

    def moment() -> Moment:
        state = pose.qpos.copy(), pose.mocap_pos.copy(), pose.mocap_quat.copy()
        return Moment(state, decision, text, tuple(image for image in images.values() if image is not None))

    for item in reader.messages([ARM_STATUS, DECISION, EPISODE_EVENT, *bodies, *images]):
        message = item.message
        if item.topic == EPISODE_EVENT:
            text = f"episode {message.episode + 1}   {message.outcome}".rstrip()
            if message.kind == END and np.isfinite(due_ns) and at_s is None:
                yield from [moment()] * round(HELD_S * rate)
            due_ns, decision = np.inf, None
            if message.kind == START and wanted in (None, message.episode):
                due_ns = stamp_ns(message) + (at_s or 0.0) * 1e9
        elif item.topic == DECISION:
            decision = message
        elif item.topic in images:
            images[item.topic] = message
        elif item.topic == ARM_STATUS:
            pose.set_arm(message.joint_positions, message.gripper_width)
            if stamp_ns(message) >= due_ns:
                yield moment()
                if at_s is not None:
                    return
                due_ns += step_ns
        else:
            at, turn = message.pose.position, message.pose.orientation
            pose.set_body(bodies[item.topic], (at.x, at.y, at.z), (turn.w, turn.x, turn.y, turn.z))
