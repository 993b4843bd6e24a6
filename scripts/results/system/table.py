"""The table and the picture of what nodes cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.core.plot_style import BLUE, FAINT, LIMIT, clean, figure_of, save
from bid_ros.core.tables import markdown_table
from results.system.budget import BUDGETS
from results.system.cost import AROUND, Cost, around

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEAD: Final = ("node", "CPU %", "budget %", "middleware %", "executor's share %", "messages in/s", "out/s", "waits/s")
HEADS: Final = (*HEAD, "preempted/s", "MB")
_NAMED: Final = "".join(f", {name}" for name in AROUND)[2:]
COLORS: Final = {"before": FAINT, "now": BLUE}
_NOTHING: Final = Cost(0.0, 0.0, None, None, None, 0.0, 0.0, 0.0)


def markdown(nodes: Mapping[str, Cost], before: Mapping[str, Cost] | None = None) -> str:
    """Return the table of the nodes, the sum of those around the policy, and who is above its budget.

    Args:
        nodes: cost by node.
        before: of the nodes of another version, which stands in brackets behind the CPU time.
    """
    lines = [markdown_table(HEADS, [_cells(name, cost, (before or {}).get(name)) for name, cost in nodes.items()])]
    total = f"{around(nodes):.0f} % of a core"
    if before:
        total += f", {around(nodes) / max(around(before), 1e-9):.2f} of {around(before):.0f} % before"
    above = [sentence for name, cost in nodes.items() for sentence in cost.excess(name)]
    lines += ["", f"{_NAMED} together: {total}.", *(f"Above the budget: {sentence}." for sentence in above)]
    return "\n".join(lines if above else [*lines, "Every node is within its budget."])


def _cells(name: str, cost: Cost, before: Cost | None) -> tuple[str, ...]:
    cpu = f"{cost.cpu:.1f}" + ("" if before is None else f" ({before.cpu:.1f})")
    budget = f"{BUDGETS[name].cpu:g}" if name in BUDGETS else "-"
    counts = (cost.executor, cost.messages_in, cost.messages_out, cost.waits, cost.preemptions, cost.memory_mb)
    counted = ("-" if value is None else f"{value:.0f}" for value in counts)
    return name, cpu, budget, f"{cost.middleware:.1f}", *counted


def draw(nodes: Mapping[str, Cost], file: Path, before: Mapping[str, Cost] | None = None) -> None:
    """Write the picture: CPU time beside the budget, messages, and context switches of each node."""
    figure = figure_of(11, 0.9 + 0.42 * len(nodes))
    cpu, messages, switches = figure.subplots(1, 3, sharey=True)
    versions = {"now": nodes} if before is None else {"before": before, "now": nodes}
    height = 0.72 / len(versions)
    for column, (label, costs) in enumerate(versions.items()):
        places = [place + (column - (len(versions) - 1) / 2) * height for place in range(len(nodes))]
        shown = [costs.get(name, _NOTHING) for name in nodes]
        look: dict[str, Any] = {"height": height, "color": COLORS[label], "label": label}
        cpu.barh(places, [cost.cpu for cost in shown], **look)
        messages.barh(places, [(cost.messages_in or 0) + (cost.messages_out or 0) for cost in shown], **look)
        switches.barh(places, [cost.waits + cost.preemptions for cost in shown], **look)
    for place, name in enumerate(nodes):
        if name in BUDGETS:
            most = BUDGETS[name]
            cpu.plot([most.cpu] * 2, [place - 0.4, place + 0.4], color=LIMIT)
            messages.plot([most.messages_in + most.messages_out] * 2, [place - 0.4, place + 0.4], color=LIMIT)
    _label(cpu, list(nodes), "CPU, % of a core; red: budget")
    _label(messages, list(nodes), "messages in and out a second; red: budget")
    _label(switches, list(nodes), "context switches a second")
    if before is not None:
        figure.legend(*cpu.get_legend_handles_labels(), loc="outside upper right", ncols=2)
    save(figure, file)


def _label(axes: Axes, names: list[str], text: str) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(text)
    clean(axes, "x")
