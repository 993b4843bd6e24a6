"""Observation history on the policy's time grid. Live use, replay and training share this code."""

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import SET_BACK_NS
from bid_ros.core.errors import ObservationError
from bid_ros.core.feature import Feature
from bid_ros.core.task import Task


class History(NamedTuple):
    """The observed steps that a policy wants.

    Attributes:
        steps: To, their number, the newest one included.
        dt_ns: time between two of them, ns.
    """

    steps: int
    dt_ns: int


def task_history(task: Task) -> History:
    """Return the steps that a task says: those of every policy whose bundle says no others."""
    return History(task.observation_steps, task.dt_ns)


@dataclass(frozen=True)
class Observation:
    """The input of a policy for one decision.

    Attributes:
        stamp_ns: time of the newest camera frames, or of the newest vector if the task has no camera.
        values: ``(To, *shape)`` by feature name, oldest first. Images are uint8 rgb or uint16 mm,
            vectors float64.
        samples_ns: ``(To,)`` stamps of the samples that the rows were taken from, by feature name. Empty if the values
            did not come from samples.
    """

    stamp_ns: int
    values: Mapping[str, NDArray[Any]]
    samples_ns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def digest(self) -> int:
        """Return 64 bits that tell observations of one task apart by their values, whatever their stamps are."""
        found = hashlib.blake2b(digest_size=8)
        for name in sorted(self.values):
            found.update(np.ascontiguousarray(self.values[name]).data)
        return int.from_bytes(found.digest(), "little")


class ObservationBuffer:
    """Bounded history of every observed feature, assembled on the policy's time grid.

    Row ``k`` of an observation belongs to ``stamp - (To - 1 - k) * dt``, with To and dt of the history. Cameras set the
    stamp. Each row takes the sample nearest to its instant. A row before the first sample repeats the first sample, as
    in training.

    Args:
        task: names, shapes and rates of the features.
        tolerance_s: largest distance in s between a row's instant and its sample. The repeated rows at the start of
            an episode are exempt.
        history_s: age in s up to which samples are kept. A given history may need older ones, which are kept too.
        history: steps of an observation. None: those of the task.
    """

    def __init__(
        self, task: Task, tolerance_s: float = 0.08, history_s: float = 1.0, history: History | None = None
    ) -> None:
        self._task = task
        self._history = history or task_history(task)
        if history is not None:
            history_s = max(history_s, history.steps * history.dt_ns / NANOSECONDS + tolerance_s)
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

        One that is more than a second older means that its clock was set back: those before it are forgotten.

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
        if samples and stamp_ns < samples[-1][0] - SET_BACK_NS:
            samples.clear()
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
        steps, dt_ns = self._history
        ages = [(steps - 1 - k) * dt_ns for k in range(steps)]
        return _stacked(stamp, {name: [self._nearest(name, stamp, age) for age in ages] for name in self._samples})

    def assemble_from(self, stamp_ns: int, samples_ns: Mapping[str, Sequence[int]]) -> Observation:
        """Return the observation at ``stamp_ns`` from given samples: the one that was decided on, in a replay.

        A feature without a header has the time of its arrival as its stamp, which nobody can replay exactly. So the
        nearest sample counts, up to a quarter of the feature's period.

        Raises:
            ObservationError: a feature is unknown, or one of its samples is not in the history.
        """
        if samples_ns.keys() != self._samples.keys():
            raise ObservationError(f"samples are of {', '.join(samples_ns)}; valid are {', '.join(self._samples)}")
        return _stacked(stamp_ns, {name: [self._sample(name, at) for at in samples_ns[name]] for name in self._samples})

    def _sample(self, name: str, instant: int) -> tuple[int, NDArray[Any]]:
        slack = NANOSECONDS / self._features[name].rate_hz / 4
        found = min(self._samples[name], key=lambda sample: abs(sample[0] - instant), default=None)
        if found is None or abs(found[0] - instant) > slack:
            raise ObservationError(f"the sample of observation '{name}' with stamp {instant} ns is not in the history")
        return found

    def _nearest(self, name: str, stamp: int, age: int) -> tuple[int, NDArray[Any]]:
        samples = self._samples[name]
        instant = stamp - age
        if samples[0][0] >= instant and age > 0 and len(samples) < (samples.maxlen or 0):
            # A past row repeats the first sample as long as the history still holds the episode's first sample.
            return samples[0]
        nearest, value = min(samples, key=lambda sample: abs(sample[0] - instant))  # the older of two as near
        distance = abs(nearest - instant)
        if distance > self._tolerance_ns:
            raise ObservationError(
                f"observation '{name}' is {distance / 1e6:.0f} ms away from the instant it is needed for; "
                f"valid is up to {self._tolerance_ns / 1e6:.0f} ms"
            )
        return nearest, value


def _stacked(stamp_ns: int, rows: Mapping[str, Sequence[tuple[int, NDArray[Any]]]]) -> Observation:
    return Observation(
        stamp_ns,
        {name: np.stack([value for _, value in row]) for name, row in rows.items()},
        {name: tuple(stamp for stamp, _ in row) for name, row in rows.items()},
    )


def _checked(feature: Feature, value: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(value)
    if array.shape != feature.shape:
        raise ObservationError(f"observation '{feature.name}' has shape {array.shape}; the task says {feature.shape}")
    if feature.kind == "image":
        if array.dtype != feature.dtype:
            raise ObservationError(f"image '{feature.name}' has type {array.dtype}; valid is {feature.dtype}")
        # Drivers reuse their buffers, so the history keeps a copy.
        return array.copy()
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ObservationError(f"observation '{feature.name}' holds a value that is not finite")
    return array


def check_observed(values: Mapping[str, NDArray[Any]], task: Task, steps: int) -> None:
    """Raise ObservationError if a feature of the task is missing, or has another shape than ``(steps, *shape)``."""
    for feature in task.observation:
        value, shape = values.get(feature.name), (steps, *feature.shape)
        if value is None or value.shape != shape:
            found = "is missing" if value is None else f"has shape {value.shape}"
            raise ObservationError(f"observation '{feature.name}' {found}; the policy needs {shape}")


def seen_by_network(feature: Feature, images: NDArray[Any]) -> NDArray[Any]:
    """Return images ``(..., height, width, channels)`` as networks take them, in training as live.

    Colours stay uint8. Distances, uint16 mm, become float32 from -0.5 to 0.5 between the two of the feature's
    ``depth``. What is nearer or farther is at an end, what is not measured at the far one.
    """
    if feature.depth is None:
        return images
    near, far = (np.float32(1e3 * distance) for distance in feature.depth)
    shares: NDArray[np.float32] = np.clip((images.astype(np.float32) - near) / (far - near), 0.0, 1.0) - np.float32(0.5)
    shares[images == 0] = 0.5
    return shares


def blank_observation(task: Task, history: History | None = None) -> Observation:
    """Return an observation of black images and zeros: to warm up, and to measure what a decision takes.

    Args:
        task: what is observed.
        history: steps of the observation. None: those of the task.
    """
    shape = ((history or task_history(task)).steps,)
    values: dict[str, NDArray[Any]] = {item.name: np.zeros(shape + item.shape, item.dtype) for item in task.observation}
    return Observation(0, values)
