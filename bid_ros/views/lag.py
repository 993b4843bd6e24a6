"""How the tool followed its set-points in a run: how late, how far off besides, and how far turned.

The lag is the shift in time at which the measured places fit the set-points best, in the sense of least squares.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bid_ros.core.poses import pose_numbers
from bid_ros.core.stamps import stamp_ns
from bid_ros.curation.commanded import set_points

Array = NDArray[np.float64]
LONGEST_S: Final = 0.4  # the arm node makes up for 0.3 s at most
STEP_S: Final = 0.001
GAP_S: Final = 0.1  # between two set-points, in which nothing is known
MOVING: Final = 0.02  # m/s: a standing tool tells no lag
LEAST: Final = 20  # measurements of a moving tool


@dataclass(frozen=True, eq=False)
class Followed:
    """How a tool followed.

    Attributes:
        lag_s: s by which the tool came after its set-points; NaN if it hardly moved. ``LONGEST_S``: that much or more,
            and then the other two say little.
        off_m: ``(n,)`` distances from the set-point of that much earlier, m, of a moving tool.
        turned_rad: ``(n,)`` turns of the tool against it, rad.
    """

    lag_s: float
    off_m: Array
    turned_rad: Array


def read_followed(bag: Path) -> Followed:
    """Return how the tool of a bag followed its set-points, where both moved and the arm was in control.

    Raises:
        RecordingError: the bag cannot be read, or its set-points have no times.
    """
    wanted, measured = dict[int, list[float]](), dict[int, list[float]]()
    for instant_ns, message in set_points(bag):
        if message.mode not in (message.FAULT, message.STOPPED):
            wanted[instant_ns] = pose_numbers(message.reference)
            measured[stamp_ns(message)] = pose_numbers(message.tool)
    if min(len(wanted), len(measured)) < 2:
        return Followed(float("nan"), np.zeros(0), np.zeros(0))
    return followed(*_rows(wanted), *_rows(measured))


def followed(wanted_s: Array, wanted: Array, measured_s: Array, measured: Array) -> Followed:
    """Return how a tool followed.

    Args:
        wanted_s, measured_s: ``(k,)`` and ``(m,)`` s, increasing.
        wanted, measured: ``(k, 7)`` and ``(m, 7)`` m and xyzw.
    """
    first, last = wanted_s[0] + LONGEST_S, wanted_s[-1]
    speeds = np.linalg.norm(np.gradient(measured[:, :3], measured_s, axis=0), axis=1)
    gaps = np.flatnonzero(np.diff(wanted_s) > GAP_S)
    usable = (speeds > MOVING) & (measured_s > first) & (measured_s < last)
    for gap in gaps:
        usable &= (measured_s < wanted_s[gap]) | (measured_s > wanted_s[gap + 1] + LONGEST_S)
    if usable.sum() < LEAST:
        return Followed(float("nan"), np.zeros(0), np.zeros(0))
    times, places = measured_s[usable], measured[usable]
    shifts = np.linspace(0.0, LONGEST_S, round(LONGEST_S / STEP_S) + 1)
    errors = [float((_distances(_at(times - shift, wanted_s, wanted), places) ** 2).mean()) for shift in shifts]
    lag_s = float(shifts[int(np.argmin(errors))])
    then = wanted[np.clip(np.searchsorted(wanted_s, times - lag_s), 0, len(wanted_s) - 1)]
    turned = (Rotation.from_quat(then[:, 3:]).inv() * Rotation.from_quat(places[:, 3:])).magnitude()
    return Followed(lag_s, _distances(_at(times - lag_s, wanted_s, wanted), places), turned)


def followed_report(found: Followed) -> dict[str, Any]:
    """Return lag, and percentiles of what remains, for :func:`followed_line` and for JSON."""
    if not len(found.off_m):
        return {"lag_s": None, "off_mm": None, "turned_rad": None}
    return {
        "lag_s": round(found.lag_s, 3),
        "off_mm": _percentiles(1000 * found.off_m),
        "turned_rad": _percentiles(found.turned_rad),
    }


def followed_line(report: dict[str, Any]) -> str:
    """Return the report as a line."""
    if report["lag_s"] is None:
        return "the tool moved too little to tell its lag"
    if report["lag_s"] >= LONGEST_S:
        return f"the tool lags by {1000 * LONGEST_S:.0f} ms or more: it does not follow its set-points"
    off, turned = report["off_mm"], report["turned_rad"]
    return (
        f"the tool lags by {1000 * report['lag_s']:.0f} ms; but for that it is off by {off['p50']:.1f} mm (p50), "
        f"{off['p99']:.1f} mm (p99), and turned by {turned['p50']:.3f} and {turned['p99']:.3f} rad"
    )


def _percentiles(values: Array) -> dict[str, float]:
    return dict(zip(("p50", "p99", "max"), np.percentile(values, (50, 99, 100)).tolist(), strict=True))


def _rows(by_time: dict[int, list[float]]) -> tuple[Array, Array]:
    """Return times in s since 1970, and the rows, in order."""
    times = sorted(by_time)
    return np.array(times, dtype=np.int64) / 1e9, np.array([by_time[at] for at in times])


def _at(times: Array, wanted_s: Array, wanted: Array) -> Array:
    """Return the places ``(n, 3)`` m of set-points at times ``(n,)`` s."""
    return np.stack([np.interp(times, wanted_s, wanted[:, axis]) for axis in range(3)], axis=1)


def _distances(one: Array, other: Array) -> Array:
    lengths: Array = np.linalg.norm(one - other[:, :3], axis=1)
    return lengths
