"""The commanded motion of a run as a table and as a picture (:mod:`bid_ros.curation.commanded`)."""

from pathlib import Path
from typing import Any

from bid_ros.core.limits import Limits
from bid_ros.curation.commanded import CommandedMotion


def commanded_table(report: dict[str, Any]) -> str:
    """Return the report as a table."""
    lines = [
        f"{report['set_points']} set-points in {report['seconds']:.1f} s, changes of chunk: "
        f"{report['changes_of_chunk']}, left out (faults, gaps): {report['left_out']}",
        f"{'':42}{'p50':>8}{'p99':>8}{'max':>8}{'limit':>8}{'above':>7}",
    ]
    for name, row in report["quantities"].items():
        numbers = "".join(f"{'-' if row[key] is None else format(row[key], '.3f'):>8}" for key in ("p50", "p99", "max"))
        lines.append(f"{name:42}{numbers}{row['limit']:8g}{row['above']:7d}")
    return "\n".join(lines)


def draw_commanded(motion: CommandedMotion, limits: Limits, path: Path) -> None:
    """Write a PNG: speed and acceleration of the set-point over time, changes of chunk marked, limits as lines."""
    from matplotlib.figure import Figure  # takes half a second to import, and only the picture needs it

    seconds = (motion.instants_ns - motion.instants_ns[0]) / 1e9
    figure = Figure(figsize=(9.0, 4.5), dpi=120, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(seconds, motion.speeds[:, 0], color="#2a6fbb", linewidth=0.8)
    above.axhline(limits.max_speed, color="#c03030", linewidth=1.0, linestyle="--")
    above.set_ylabel("speed, m/s")
    for shown, color, label in ((~motion.changed, "#bbbbbb", "elsewhere"), (motion.changed, "#2a6fbb", "at a change")):
        shown = shown & motion.continuous
        below.plot(seconds[1:][shown], motion.accelerations[shown, 0], ".", color=color, markersize=3, label=label)
    below.axhline(limits.max_acceleration, color="#c03030", linewidth=1.0, linestyle="--", label="limit")
    below.set(xlabel="s", ylabel="acceleration, m/s²")
    below.legend(loc="upper right", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png")
