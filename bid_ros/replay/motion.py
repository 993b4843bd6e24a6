"""The motion of a recorded episode: the set-points that were streamed to the arm."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.recording.episodes import find_episodes
from bid_ros.recording.reader import BagReader
from bid_ros.recording.references import References
from bid_ros.recording.rows import LAG_NS

STEP_NS: Final = NANOSECONDS // 50


@dataclass(frozen=True, eq=False)
class RecordedMotion:
    """A recorded motion.

    Attributes:
        times: ``(T,)`` s from 0 on.
        actions: ``(T, D)`` set-points, as the task's actions.
        seed: of the episode's scene.
        outcome: of the episode.
    """

    times: Array
    actions: Array
    seed: int
    outcome: str

    def save(self, path: Path, task: Task) -> None:
        """Write the file that the device ``retrace`` reads."""
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, times=self.times, actions=self.actions, signature=task.signature())

    def described(self, task: Task, speed: float) -> str:
        """Return what a person should know before an arm follows the motion ``speed`` times as fast."""
        columns = task.columns("position")
        assert columns is not None, "a motion has a position"
        place = self.actions[:, columns]
        steps = np.linalg.norm(np.diff(place, axis=0), axis=1)
        fastest = float((steps / np.diff(self.times)).max()) * speed
        low, high = place.min(axis=0), place.max(axis=0)
        box = ", ".join(f"{axis} {a:.3f} to {b:.3f}" for axis, a, b in zip("xyz", low, high, strict=True))
        return (
            f"motion       {self.times[-1]:.1f} s, at {speed:g} times its speed {self.times[-1] / speed:.1f} s\n"
            f"path         {steps.sum():.2f} m, at most {fastest:.2f} m/s (limit {task.limits.max_speed:g})\n"
            f"tool         {box} m\n"
            f"first        the tool goes slowly to {' '.join(f'{value:.3f}' for value in place[0])} m"
        )


def read_recorded_motion(reader: BagReader, task: Task, number: int) -> RecordedMotion:
    """Return the motion of an episode, from START to END.

    Args:
        reader: the bag.
        task: layout of the actions.
        number: of the episode in the bag, from 0 on.

    Raises:
        RecordingError: there is no such episode, or it holds no set-points of the arm.
    """
    episodes = find_episodes(reader)
    if not 0 <= number < len(episodes):
        valid = f"0 to {len(episodes) - 1}" if episodes else "none, as the bag has no episode"
        raise RecordingError(f"episode is {number}; valid in {reader.path} is {valid}")
    episode = episodes[number]
    end_ns = episode.end_ns or reader.span_ns[1]
    until_ns = (episode.end_received_ns or reader.span_ns[1]) + LAG_NS
    references = References(task.with_frame_prefix(reader.frame_prefix))
    for item in reader.messages(references.topics, episode.start_received_ns - LAG_NS, until_ns):
        references.take(item.topic, item.message)
    stamps = np.arange(episode.start_ns, end_ns, STEP_NS, dtype=np.int64)
    actions, known = references.at(stamps)
    if known.sum() < 2:
        raise RecordingError(f"episode {number} of {reader.path} holds no set-points of the arm, so no motion")
    first, last = np.flatnonzero(known)[[0, -1]]
    if not known[first:last].all():
        gap = int(np.diff(np.flatnonzero(known)).max()) * STEP_NS / NANOSECONDS
        raise RecordingError(f"episode {number} of {reader.path} lacks set-points for {gap:.2f} s; valid is no gap")
    stamps, actions = stamps[first : last + 1], actions[first : last + 1]
    times = (stamps - stamps[0]) / NANOSECONDS
    return RecordedMotion(times, actions, episode.seed, episode.outcome)
