"""What the numbers of a data set reach, and limits of a task that they are inside of."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array
from bid_ros.core.units import conversion
from bid_ros.formats.base import DataEpisode, Source
from bid_ros.formats.guessing import Guess
from bid_ros.formats.pick import ACTION
from bid_ros.formats.unit_evidence import Judged

MOST_ROWS: Final = 100_000  # whose numbers are looked at
MARGIN: Final = 0.25  # of what the data reach, added to it
LEAST_MARGIN_M: Final = 0.01
WIDEST_M: Final = 0.2  # that limits allow
GRIPPER_S: Final = 0.1  # over which the speed of a gripper counts
NOWHERE: Final = Limits((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
MOTION: Final = {
    "joints": ("max_joint_speed", "max_joint_acceleration"),
    "position": ("max_speed", "max_acceleration", "max_jerk"),
}
JUMP: Final = {"joints": "max_joint_jump", "position": "max_jump"}


class Numbers:
    """The numbers of the first rows of a data set, by feature.

    Args:
        source: opened data set.
        guesses: features whose numbers are wanted; pictures are not read.

    Attributes:
        rows: that were read.
        whole: whether these are all.
        text: of the first episode that says its task in words.
    """

    def __init__(self, source: Source, guesses: Sequence[Guess]) -> None:
        self._action = source.contents.action
        wanted = {self._column(guess) for guess in guesses if guess.at is not None and guess.kind}
        self._episodes: list[DataEpisode] = []
        self.rows, self.whole, self.text = 0, True, ""
        for episode in source.episodes(0, wanted - {ACTION}):
            if self.rows >= MOST_ROWS:
                self.whole = False
                break
            self._episodes.append(episode)
            self.rows += episode.rows
            self.text = self.text or episode.text

    def of(self, guess: Guess) -> list[Array]:
        """Return ``(T, n)`` of each episode."""
        at, name = list(guess.at or ()), self._column(guess)
        arrays = (each.actions if name == ACTION else each.observations[name] for each in self._episodes)
        return [np.asarray(each, dtype=np.float64).reshape(len(each), -1)[:, at] for each in arrays]

    def _column(self, guess: Guess) -> str:
        return ACTION if self._action.size and guess.column.name == self._action.name else guess.column.name


def ends_of(parts: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the smallest and the largest number; those that are not finite are left out. Of none 0, 0."""
    values = np.concatenate([np.zeros(0), *(part.reshape(-1) for part in parts)])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


class ReachedLimits:
    """How far and how fast the features of a data set move, in rad and m, with a margin.

    Args:
        seen, done: what is observed and commanded.
        units: of the features; one that is not decided is left out.
        numbers: of them.
        rate_hz: rows per second; None: unknown, so nobody knows how fast they move.

    Attributes:
        widest: largest opening of a gripper, m; 0: none is in m.
    """

    def __init__(
        self,
        seen: Sequence[Guess],
        done: Sequence[Guess],
        units: Mapping[str, Judged],
        numbers: Numbers,
        rate_hz: float | None,
    ) -> None:
        self._seen, self._done, self._units = seen, done, units
        self._numbers, self._rate, self._limits = numbers, rate_hz, NOWHERE
        both = [*seen, *done]
        metres = [guess for guess in both if guess.name in units and units[guess.name].unit == "m"]
        most = ends_of([part for guess in metres for part in self._rows(guess, "gripper")])[1]
        self.widest = min(WIDEST_M, _up((1 + MARGIN) * most)) if most > 0 else 0.0

    def box(self) -> tuple[list[float], list[float]] | None:
        """Return the corners of where the tool was and was sent, m; None: there is no position in a known unit."""
        places = [part for guess in (*self._done, *self._seen) for part in self._rows(guess, "position")]
        if not places:
            return None
        every = np.concatenate(places)
        low, high = np.nanmin(every, axis=0), np.nanmax(every, axis=0)
        margin = np.maximum(MARGIN * (high - low), LEAST_MARGIN_M)
        return np.round(low - margin, 3).tolist(), np.round(high + margin, 3).tolist()

    def motion(self) -> dict[str, float]:
        """Return the limits of motion that the data tell, by name."""
        found: dict[str, float] = {}

        def add(name: str, sizes: NDArray[np.float64]) -> None:
            found[name] = max(found.get(name, 0.0), float(np.nanmax(sizes, initial=0.0)))

        for guess in self._done:
            for kind, names in MOTION.items():
                for rows in self._rows(guess, kind):
                    for order, name in enumerate(names if self._rate else (), 1):
                        change = np.diff(rows, order, axis=0) * float(self._rate or 0) ** order
                        add(name, np.linalg.norm(change, axis=1) if kind == "position" else np.abs(change))
            for rows in self._rows(guess, "gripper") if self._rate else ():
                steps = max(1, round(GRIPPER_S * float(self._rate or 0)))
                add("max_gripper_rate", np.abs(rows[steps:] - rows[:-steps]) * float(self._rate or 0) / steps)
            for other in self._seen:
                if other.name == guess.name and other.size == guess.size:
                    for kind, name in JUMP.items():
                        pairs = zip(self._rows(guess, kind), self._rows(other, kind), strict=True)
                        for one, two in pairs:
                            add(name, np.abs(one - two))
        return {name: _up((1 + MARGIN) * value) for name, value in found.items() if value > 0}

    def _rows(self, guess: Guess, kind: str) -> list[Array]:
        """Return the rows of a feature in rad or m, by episode; none of another kind or of no known unit."""
        judged = self._units.get(guess.name)
        if guess.kind != kind or judged is None or not judged.unit:
            return []
        scale, offset = conversion(judged.unit, kind, guess.name, self._limits)
        return [rows * scale + offset for rows in self._numbers.of(guess)]


def _up(value: float) -> float:
    """Return a positive number rounded up to two digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.6g}")
