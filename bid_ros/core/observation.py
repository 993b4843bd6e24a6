"""Observation history on the policy's time grid. Live use, replay and training share this code."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ObservationError
from bid_ros.core.task import Feature, Task


@dataclass(frozen=True)
class Observation:
    """The input of a policy for one decision.

    Attributes:
        stamp_ns: time of the newest camera frames, or of the newest vector if the task has no camera.
        values: ``(To, *shape)`` by feature name, oldest first. Images are uint8 rgb, vectors float64.
    """

    stamp_ns: int
    values: Mapping[str, NDArray[Any]]


class ObservationBuffer:
    """Bounded history of every observed feature, assembled on the policy's time grid.

    Row ``k`` of an observation belongs to ``stamp - (To - 1 - k) * dt``. Cameras set the stamp. Each row takes the
    sample nearest to its instant. A row before the first sample repeats the first sample, as in training.

    Args:
        task: names, shapes and rates of the features.
        tolerance_s: largest distance in s between a row's instant and its sample. The repeated rows at the start of
            an episode are exempt.
        history_s: age in s up to which samples are kept.
    """

    def __init__(self, task: Task, tolerance_s: float = 0.08, history_s: float = 1.0) -> None:
        self._task = task
        self._tolerance_ns = round(tolerance_s * NANOSECONDS)
        self._features = {item.name: item for item in task.observation}
        self._samples: dict[str, deque[tuple[int, NDArray[Any]]]] = {
            item.name: deque(maxlen=max(8, int(history_s * item.rate_hz * 4))) for item in task.observation
        }

    def reset(self) -> None:
        """Forget every sample, as at the start of an episode."""
        for samples in self._samples.values():
            samples.clear()

    def add(self, name: str, stamp_ns: int, value: NDArray[Any]) -> None:
        """Append a sample. A sample that is not newer than the last one of its feature is ignored.

        Raises:
            ObservationError: the name is unknown, or shape or values differ from the task.
        """
        feature = self._features.get(name)
        if feature is None:
            raise ObservationError(
                f"observation '{name}' is not in task '{self._task.name}'; valid are {', '.join(self._features)}"
            )
        array = _checked(feature, value)
        samples = self._samples[name]
        if not samples or stamp_ns > samples[-1][0]:
            samples.append((stamp_ns, array))

    def newest_ns(self, name: str) -> int | None:
        """Stamp of the newest sample of a feature, None before the first."""
        samples = self._samples[name]
        return samples[-1][0] if samples else None

    def stamp_ns(self) -> int | None:
        """Stamp of the next observation: the newest time that all cameras (else all vectors) have reached."""
        leading = self._task.cameras or self._task.vectors
        newest = [self.newest_ns(item.name) for item in leading]
        return None if any(stamp is None for stamp in newest) else min(stamp for stamp in newest if stamp is not None)

    def assemble(self, stamp_ns: int | None = None) -> Observation:
        """Return the observation at ``stamp_ns`` (default: the newest complete one).

        Raises:
            ObservationError: a feature has no sample yet, or none within the tolerance. The message names it.
        """
        stamp = self.stamp_ns() if stamp_ns is None else stamp_ns
        for name, samples in self._samples.items():
            if not samples:
                raise ObservationError(f"observation '{name}' has not arrived yet")
        assert stamp is not None  # as every feature has a sample
        steps = self._task.observation_steps
        ages = [(steps - 1 - k) * self._task.dt_ns for k in range(steps)]
        values = {name: np.stack([self._nearest(name, stamp, age) for age in ages]) for name in self._samples}
        return Observation(stamp, values)

    def _nearest(self, name: str, stamp: int, age: int) -> NDArray[Any]:
        samples = self._samples[name]
        instant = stamp - age
        if samples[0][0] >= instant and age > 0 and len(samples) < (samples.maxlen or 0):
            # A past row repeats the first sample as long as the history still holds the episode's first sample.
            return samples[0][1]
        nearest, value = min(samples, key=lambda sample: abs(sample[0] - instant))  # the older of two as near
        distance = abs(nearest - instant)
        if distance > self._tolerance_ns:
            raise ObservationError(
                f"observation '{name}' is {distance / 1e6:.0f} ms away from the instant it is needed for; "
                f"valid is up to {self._tolerance_ns / 1e6:.0f} ms"
            )
        return value


def _checked(feature: Feature, value: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(value)
    if array.shape != feature.shape:
        raise ObservationError(f"observation '{feature.name}' has shape {array.shape}; the task says {feature.shape}")
    if feature.kind == "image":
        if array.dtype != np.uint8:
            raise ObservationError(f"image '{feature.name}' has type {array.dtype}; valid is uint8")
        # Drivers reuse their buffers, so the history keeps a copy.
        return array.copy()
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ObservationError(f"observation '{feature.name}' holds a value that is not finite")
    return array


def blank_observation(task: Task) -> Observation:
    """Return an observation of black images and zeros: to warm up, and to measure what a decision takes."""
    shape = (task.observation_steps,)
    values: dict[str, NDArray[Any]] = {
        item.name: np.zeros(shape + item.shape, np.uint8 if item.kind == "image" else np.float64)
        for item in task.observation
    }
    return Observation(0, values)
