"""The vitals of a system on a terminal, renewed twice a second."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Literal

from bid_ros.core.extras import extra
from bid_ros.views.vitals import heard, loss_text, summary, values

with extra("view", "bid top"):
    from rich.table import Table
    from rich.text import Text
    from textual.app import App, ComposeResult
    from textual.containers import Horizontal, VerticalScroll
    from textual.widgets import Footer, Static

PERIOD_S: Final = 0.5
LATE_S: Final = 1.5  # s of silence of a node or a topic that was heard, from which it is marked
LOST_S: Final = 5.0
COLORS: Final = {"RUNNING": "green", "STOPPED": "red", "WAITING": "yellow", "OK": "green", "ERROR": "red"}
BARS: Final = "▁▂▃▄▅▆▇█"


class TopScreen(App[None]):
    """Shows snapshots of :class:`bid_ros.views.vitals.Vitals`.

    Args:
        name: of the system, for the title.
        snapshot: returns the newest.
        alive: whether somebody still listens to the system; once not, the screen ends.
    """

    CSS = """
    Screen { background: #14161c; color: #e6e8ee; }
    #state { height: auto; padding: 0 1; border: round #3a4050; border-title-color: #9aa3b5; }
    .panel { border: round #3a4050; border-title-color: #9aa3b5; padding: 0 1; scrollbar-size-vertical: 1; }
    #middle { height: 3fr; }
    #topics { width: 5fr; }
    #right { width: 6fr; }
    #decision { height: auto; }
    #heartbeats { height: 1fr; }
    #diagnostics { height: 2fr; }
    Footer { background: #14161c; }
    """
    BINDINGS: ClassVar = [("q", "quit", "quit"), ("p", "pause", "hold still")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, name: str, snapshot: Callable[[], Mapping[str, Any]], alive: Callable[[], bool]) -> None:
        super().__init__()
        self.title = name
        self._snapshot, self._alive = snapshot, alive
        self._held = False

    def compose(self) -> ComposeResult:
        """Return the parts of the screen."""
        yield _titled(Static(id="state"), self.title)
        with Horizontal(id="middle"):
            with _titled(VerticalScroll(id="topics", classes="panel"), "topics"):
                yield Static(id="topics-table")
            with VerticalScroll(id="right"):
                yield _titled(Static(id="decision", classes="panel"), "decisions")
                yield _titled(Static(id="heartbeats", classes="panel"), "heartbeats")
        with _titled(VerticalScroll(id="diagnostics", classes="panel"), "diagnostics"):
            yield Static(id="diagnostics-table")
        yield Footer()

    def on_mount(self) -> None:
        """Show the first snapshot, and go on."""
        self.renew()
        self.set_interval(PERIOD_S, self.renew)

    def action_pause(self) -> None:
        """Hold the numbers still, or let them go on."""
        self._held = not self._held
        self.query_one("#state", Static).border_subtitle = "held" if self._held else ""

    def renew(self) -> None:
        """Show the newest snapshot."""
        if not self._alive():
            self.exit()
        if self._held:
            return
        said = self._snapshot()
        parts = {
            "state": _state(said),
            "topics-table": _heard_table("topic", said["topics"]),
            "decision": _decision(said),
            "heartbeats": _heard_table("node", said["heartbeats"]),
            "diagnostics-table": _diagnostics(said["diagnostics"]),
        }
        for name, part in parts.items():
            self.query_one(f"#{name}", Static).update(part)


def _titled(widget: Any, title: str) -> Any:
    widget.border_title = title
    return widget


def _grid(*head: str) -> Table:
    """Return a table without lines; columns whose title ends in ``>`` are aligned to the right, and never cut.

    On a narrow terminal the names take a second line.
    """
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="#9aa3b5")
    for title in head:
        number = title.endswith(">")
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(title.rstrip(">"), justify=justify, no_wrap=number, overflow="fold")
    return table


def _state(said: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    for name, text in summary(said):
        color = "#e6e8ee"
        if name == "safety":
            silent = said["safety"]["silent_s"] or 0.0
            color = COLORS.get(said["safety"]["state"], "yellow") if silent < LATE_S else "red"
            text += f"   silent for {silent:.0f} s" if silent >= LATE_S else ""
        table.add_row(Text(name, "#9aa3b5"), Text(text, f"bold {color}" if name == "safety" else color))
    return table


def _heard_table(title: str, items: Mapping[str, Any]) -> Table:
    """Return rates and silences. A node that has gone stays, in red: that is what one looks for."""
    table = _grid(title, "Hz>", "silent s>")
    for name, item in items.items():
        silent, slow = item["silent_s"], 0.0 < item["rate_hz"] < 1.0 / LATE_S
        color = "#e6e8ee"
        if silent is None:
            color = "#626a7a"
        elif silent > LATE_S and not slow:
            color = "red" if silent > LOST_S and title == "node" else "yellow" if title == "node" else "#9aa3b5"
        rate, silence = heard(item)
        table.add_row(*(Text(cell, color) for cell in (name, rate, "never" if silent is None else silence)))
    return table


def _decision(said: Mapping[str, Any]) -> Table:
    table = _grid("latency, ms", "p50>", "p99>", "max>")
    for name, parts in said["latencies"].items():
        table.add_row(name.removesuffix("_ms").replace("_", " "), *(f"{part:.1f}" for part in parts.values()))
    if not said["latencies"]:
        table.add_row(Text("no decision yet", "#626a7a"))
    elif loss_text(said["decision"]):
        table.add_row(Text("loss of each candidate", "#9aa3b5"))
        table.add_row(_bars(said["decision"]))
    return table


def _bars(decision: Mapping[str, Any]) -> Text:
    """Return a bar for the total loss of each candidate: yellow the selected, grey a dot for a trimmed one."""
    total = decision["losses"]["total"]
    found = [value for value in total if value is not None]
    low, high = min(found), max(found)
    bars = Text()
    for number, value in enumerate(total):
        share = 0.0 if value is None or high == low else (value - low) / (high - low)
        mark = "·" if value is None else BARS[round(share * (len(BARS) - 1))]
        color = "#626a7a" if value is None else "#ffd828" if number == decision["selected"] else "#3ceb8c"
        bars.append(mark * 2, color)
    return bars


def _diagnostics(items: Mapping[str, Any]) -> Table:
    table = _grid("node", "level", "message")
    table.add_column("values", overflow="fold", ratio=1)
    for name, item in items.items():
        gone = item["silent_s"] > LOST_S
        color = "red" if gone else COLORS.get(item["level"], "yellow")
        level = f"silent {item['silent_s']:.0f} s" if gone else item["level"]
        table.add_row(
            name.removeprefix("bid_ros: "), Text(level, color), item["message"], Text(values(item), "#9aa3b5")
        )
    return table
