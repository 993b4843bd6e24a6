"""Writes a data set as bags: one for each episode, with the messages that a recorder would have written."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from bid_ros.cameras.image import encode_image
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.outcome import CLASSES, TASK
from bid_ros.core.rotation import matrix_from_6d
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    ARM_STATUS,
    EPISODE_EVENT,
    IMAGE_TYPE,
    TOPICS,
    camera_topic,
    feature_topic,
    optical_frame,
)
from bid_ros.formats.base import Contents, DataEpisode, Options, lost_extras
from bid_ros.recording.definitions import Encoder
from bid_ros.recording.files import marked
from bid_ros.recording.references import PERSON, check_recorded
from bid_ros.recording.writer import BagWriter

START, END = 1, 2  # kinds of bid_msgs/EpisodeEvent
MARGIN_NS: Final = 1_000_000  # between an event and the row next to it
EARLIEST_NS: Final = NANOSECONDS  # rows that count from the start of the episode: a bag has no time before 0
BETWEEN: Final = (0.35, 0.7)  # of a period: where states stand between two rows, so that none is far from the next
LONGEST_DT_NS: Final = 200_000_000
ORTHONORMAL: Final = 1e-5
KEPT: Final = frozenset(("stamps", "label", "seed", "success", "interventions"))
LOSSES: Final = (
    "states between two rows are interpolated",
    "when a bag is read, still rows at its start are left out, except three, and so is an episode without success",
)


class BagsWriter:
    """Writes each episode as a bag of its own, as ``bid record`` does: camera images, arm status and episode events.

    Args:
        contents: of the data set; its columns are the features of the task.
        task: what is observed and commanded.

    Raises:
        RecordingError: no task is known, a feature is not in the messages of bid_ros, or joints are commanded.
    """

    def __init__(self, contents: Contents, task: Task | None) -> None:
        if task is None or contents.task != task.name:
            raise RecordingError("a bag needs the task of the data; valid is to name the task file with --task")
        check_recorded(task)
        if task.columns("joints") is not None:
            raise RecordingError(f"task '{task.name}' commands joints; valid for a bag is one that commands a pose")
        self._task, self._held = task, contents.extras
        self._status: list[Feature] = []
        for feature in task.observation:
            self._add(feature)
        if task.dt_ns > LONGEST_DT_NS:
            raise RecordingError(f"task '{task.name}' has {task.rate_hz:g} rows a second; valid for a bag is 5 or more")

    def write_part(self, episode: DataEpisode, folder: Path) -> None:
        """Write one episode as the bag ``bag`` in a folder."""
        stamps = bag_stamps(episode.stamps_ns)
        encoders = {topic: Encoder(kind) for topic, kind in self._topics().items()}
        about = {"task": self._task.name, **marked(self._invented(episode, encoders[ARM_STATUS].fields))}
        with BagWriter(folder / "bag", custom_data=about) as bag:
            for topic, encoder in encoders.items():
                bag.add_topic(f"/{topic}", encoder.definition)
            for topic, stamp, values in self._messages(episode, stamps):
                data = encoders[topic].encode(values)
                while not bag.write(f"/{topic}", stamp, data):
                    bag.flush()

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Put the bags into one folder: ``0000``, ``0001`` and so on."""
        target.mkdir()
        for number, part in enumerate(parts):
            (part / "bag").rename(target / f"{number:04d}")

    def _add(self, feature: Feature) -> None:
        """Note how a feature is recorded. Raises RecordingError if no message of bid_ros has it."""
        if feature.kind == "image":
            return
        try:
            own = feature.kind != "vector" and feature_topic(feature) == ARM_STATUS
        except TaskError:
            own = False
        if not own or feature.frame not in ("", None, self._task.base_frame):
            raise RecordingError(
                f"observation '{feature.name}' cannot be written to a bag; valid are images, and what the arm's status "
                f"holds: pose in frame '{self._task.base_frame}', gripper and joints"
            )
        self._status.append(feature)

    def _topics(self) -> dict[str, str]:
        cameras = {camera_topic(camera.name): IMAGE_TYPE for camera in self._task.cameras}
        return cameras | {topic: TOPICS[topic].type_name for topic in (ARM_STATUS, EPISODE_EVENT)}

    def _invented(self, episode: DataEpisode, status: Sequence[str]) -> Iterator[str]:
        """Yield each field, as ``TOPIC.FIELD``, that the messages must have and the data set does not hold.

        Args:
            episode: what is held.
            status: names of the fields of an arm's status.
        """
        if "stamps" not in self._held:
            yield from (f"{topic}.header.stamp" for topic in self._topics())
        yield from (f"{EPISODE_EVENT}.{name}" for name in ("seed", "label") if name not in self._held)
        if "success" not in self._held or episode.success is None:
            ended = ("success", "outcome", "outcome_class", "outcome_code")
            yield from (f"{EPISODE_EVENT}.{name}" for name in ended)
        measured, asked = ({item.kind for item in items} for items in (self._status, self._task.action))
        known = {
            *("header", "robot", "reason", "joint_positions", "tool", "reference", "reference_stamp"),
            *(["source"] if "interventions" in self._held else []),
            *(["gripper_width"] if "gripper" in measured else []),
            *(["reference_gripper"] if "gripper" in asked else []),
        }
        yield from (f"{ARM_STATUS}.{name}" for name in status if name not in known)
        for name, kinds in (("tool", measured), ("reference", asked)):
            for part, kind in (("position", "position"), ("orientation", "rotation_6d")):
                if kind not in kinds:
                    yield f"{ARM_STATUS}.{name}.{part}"

    def _messages(self, episode: DataEpisode, stamps: NDArray[np.int64]) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Yield topic, time and values of each message, in the order of their times."""
        first, last = int(stamps[0]), int(stamps[-1])
        yield EPISODE_EVENT, first - MARGIN_NS, self._event(episode, START, first - MARGIN_NS)
        row = 0
        for stamp, state in self._states(episode, stamps):
            yield ARM_STATUS, stamp, state
            if row < len(stamps) and stamp == stamps[row]:  # the row is whole when its images arrive: after its state
                for camera in self._task.cameras:
                    yield camera_topic(camera.name), stamp, self._image(camera, episode, row, stamp)
                row += 1
        end = last + MARGIN_NS
        yield EPISODE_EVENT, end, self._event(episode, END, end, (end - first) / NANOSECONDS)

    def _event(self, episode: DataEpisode, kind: int, stamp: int, duration: float = 0.0) -> dict[str, Any]:
        values = {"header": self._header(stamp), "kind": kind, "seed": episode.seed, "label": episode.label}
        if kind == END:
            success = episode.success is not False  # nobody said that this demonstration failed
            outcome = "success" if success else "failure"
            said = {"outcome": outcome, "outcome_class": CLASSES.index(TASK), "outcome_code": outcome}
            values |= {"success": success, **said, "duration": duration}
        return values

    def _image(self, camera: Feature, episode: DataEpisode, row: int, stamp: int) -> dict[str, Any]:
        picture = np.ascontiguousarray(episode.observations[camera.name][row], camera.dtype)
        fields = encode_image(picture)
        return {
            "header": self._header(stamp, optical_frame(camera.name)),
            **fields,
            "data": np.frombuffer(fields["data"], np.uint8),
        }

    def _header(self, stamp: int, frame: str = "") -> dict[str, Any]:
        seconds, nanoseconds = divmod(int(stamp), NANOSECONDS)
        return {
            "stamp": {"sec": seconds, "nanosec": nanoseconds},
            "frame_id": frame or self._task.base_frame,
        }

    def _states(self, episode: DataEpisode, stamps: NDArray[np.int64]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield time and values of the arm's status at each row, and at two times between two rows."""
        steps = np.diff(stamps)
        between = [stamps[:-1] + np.round(part * steps).astype(np.int64) for part in BETWEEN]
        times = np.sort(np.concatenate([stamps, *between]))
        reference = _sampled(self._task.action, _columns(self._task, episode), stamps, times)
        measured = _sampled(self._status, episode.observations, stamps, times)
        newest = np.searchsorted(stamps, times, side="right") - 1
        for number, (time, row) in enumerate(zip(times, newest, strict=True)):
            asked, seen = ({kind: part[number] for kind, part in parts.items()} for parts in (reference, measured))
            yield (
                int(time),
                {
                    "header": self._header(time),
                    "mode": 1,  # TRACKING
                    "source": PERSON if episode.by_person[row] else "policy",
                    "tool": _pose(seen),
                    "joint_positions": seen.get("joints", []),
                    "gripper_width": float(seen["gripper"][0]) if "gripper" in seen else 0.0,
                    "reference": _pose(asked),
                    "reference_stamp": self._header(time)["stamp"],
                    "reference_gripper": float(asked["gripper"][0]) if "gripper" in asked else 0.0,
                },
            )


def bag_stamps(stamps_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the times that the rows of an episode have in a bag, ns."""
    return stamps_ns + (EARLIEST_NS if stamps_ns[0] < EARLIEST_NS else 0)


def losses(contents: Contents, options: Options) -> list[str]:
    """Return what bags do not hold of a data set."""
    return [*lost_extras(contents, KEPT), *LOSSES]


def _columns(task: Task, episode: DataEpisode) -> dict[str, NDArray[np.float64]]:
    ends = np.cumsum([feature.size for feature in task.action])
    parts = np.split(np.asarray(episode.actions, np.float64), ends[:-1], axis=1)
    return {feature.name: part for feature, part in zip(task.action, parts, strict=True)}


def _sampled(
    features: Sequence[Feature],
    values: Mapping[str, NDArray[Any]],
    stamps: NDArray[np.int64],
    times: NDArray[np.int64],
) -> dict[str, NDArray[np.float64]]:
    """Return the values ``(times, n)`` of features by their kind; a rotation as quaternion (x, y, z, w).

    Raises:
        RecordingError: a rotation is none.
    """
    seconds, wanted = (stamps - stamps[0]) * 1e-9, (times - stamps[0]) * 1e-9
    newest = np.searchsorted(stamps, times, side="right") - 1
    found: dict[str, NDArray[np.float64]] = {}
    for feature in features:
        rows = np.asarray(values[feature.name], np.float64)
        if feature.kind == "gripper":
            found[feature.kind] = rows[newest]  # a width between two requests was never asked for
        elif feature.kind == "rotation_6d":
            turns = Rotation.from_matrix(_matrices(feature, rows))
            one = len(stamps) == 1
            found[feature.kind] = (turns if one else Slerp(seconds, turns)(wanted)).as_quat()
        else:
            found[feature.kind] = np.stack([np.interp(wanted, seconds, part) for part in rows.T], axis=1)
    return found


def _matrices(feature: Feature, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    columns = rows.reshape(-1, 2, 3)
    wrong = np.abs(columns @ columns.transpose(0, 2, 1) - np.eye(2)).max(axis=(1, 2)) > ORTHONORMAL
    if wrong.any():
        row = int(wrong.argmax())
        raise RecordingError(
            f"'{feature.name}' of row {row} is no rotation: {rows[row].round(4).tolist()}; valid are two perpendicular "
            "columns of length 1"
        )
    return matrix_from_6d(rows)


def _pose(parts: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    place = parts.get("position", np.zeros(3))
    turn = parts.get("rotation_6d", np.array([0.0, 0.0, 0.0, 1.0]))
    return {"position": _named("xyz", place), "orientation": _named("xyzw", turn)}


def _named(names: str, values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(names, map(float, values), strict=True))
