"""A comparison as a table and as a picture."""

from pathlib import Path

from bid_ros.core.errors import BidError
from bid_ros.core.plot_style import COLORS, clean, figure_of, legend, save
from results.peers.comparison import Comparison
from results.timing import STAGES


def markdown(result: Comparison) -> str:
    """Return two tables: durations by stage and procedure, and ours beside the floor."""
    lines = ["| stage | procedure | p50 ms | p99 ms | theirs / ours (95 %) |", "|---|---|---|---|---|"]
    for stage in STAGES:
        for name, stages in result.times.items():
            time = stages[stage]
            middle, low, high = time.ratio
            ratio = "" if name == result.ours else f"{middle:.2f} ({low:.2f} to {high:.2f})"
            lines.append(f"| {stage} | {name} | {time.p50_ms:.2f} | {time.p99_ms:.2f} | {ratio} |")
    lines += ["", "| stage | MFLOP | MB | floor ms | ours / floor |", "|---|---|---|---|---|"]
    for stage, floor in result.floors.items():
        work = f"{floor.flops / 1e6:.2f} | {floor.bytes / 1e6:.2f}"
        lines.append(f"| {stage} | {work} | {floor.ms:.3f} | {floor.ratio:.2f} |")
    lines += [
        "",
        f"{result.decisions} decisions each. The machine delivered {result.flops_per_s / 1e9:.0f} GFLOP/s "
        f"(best {result.best_flops_per_s / 1e9:.0f}) and {result.bytes_per_s / 1e9:.0f} GB/s "
        f"(best {result.best_bytes_per_s / 1e9:.0f}) meanwhile.",
    ]
    return "\n".join(lines)


def plot(result: Comparison, path: Path) -> None:
    """Draw the medians as horizontal bars, a group for each procedure and the floor, on a logarithmic axis of time.

    Raises:
        BidError: the file cannot be written.
    """
    names = ["floor", *result.times]
    figure = figure_of(8.0, 1.3 + 0.42 * len(names))
    axes = figure.add_subplot(xscale="log", xlabel="ms a decision, median (logarithmic)")
    height = 0.8 / len(STAGES)
    for index, stage in enumerate(STAGES):
        values = [result.floors[stage].ms, *(times[stage].p50_ms for times in result.times.values())]
        places = [row + (index - (len(STAGES) - 1) / 2) * height for row in range(len(names))]
        axes.barh(places, values, height, color=COLORS[index], label=stage)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    clean(axes, "x")
    legend(figure, axes)
    try:
        save(figure, path)
    except (OSError, ValueError) as error:
        raise BidError(f"cannot write the picture {path}: {error}") from error
