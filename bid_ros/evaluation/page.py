"""The results of an offline evaluation as one HTML page with its plots and pictures. It needs no other file."""

import base64
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from bid_ros.evaluation.measures import MEASURES
from bid_ros.evaluation.report import cell

TEMPLATE: Final = Path(__file__).with_name("page.html")
EPISODES: Final = "$episodes"


def write_page(found: dict[str, Any], pages: Sequence[Path], picture: Path, target: Path) -> None:
    """Write the page, one episode in memory at a time.

    Args:
        found: the summary, with ``task``, ``samples`` and ``data``.
        pages: a file for each episode to show, of :class:`bid_ros.evaluation.trace.Trace`.
        picture: PNG of the summary.
        target: file to write.
    """
    title = f"{found['task']}: {', '.join(found['decoders'])}"
    facts = {
        "episodes": found["episodes"],
        "decisions of each": found["decisions"],
        "decoders": len(found["decoders"]),
        "samples": found["samples"],
        "episodes shown below": len(pages),
    }
    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        data=escape(str(found["data"])),
        facts="".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in facts.items()),
        head="".join(f"<th>{escape(name)}</th>" for name in found["decoders"]),
        rows="\n".join(_row(name, text, found) for name, text in MEASURES.items()),
        jerk=f"{found['demonstrated_jerk']:.3g}",
        picture=base64.b64encode(picture.read_bytes()).decode(),
        decoders=json.dumps(list(found["decoders"])).replace("<", "\\u003c"),
        episodes=EPISODES,
    )
    head, tail = filled.split(EPISODES)
    part = target.with_name(f".{target.name}.part")
    with part.open("w", encoding="utf-8") as stream:
        stream.write(head)
        for number, page in enumerate(pages):
            stream.write((",\n" if number else "") + page.read_text(encoding="utf-8").replace("<", "\\u003c"))
        stream.write(tail)
    part.replace(target)


def _row(measure: str, text: str, found: dict[str, Any]) -> str:
    values = [item["measures"][measure] for item in found["decoders"].values()]
    cells = "".join(f"<td>{_number(value)}</td>" for value in values)
    return f"<tr><th>{measure}<small>{escape(text)}</small></th>{cells}</tr>"


def _number(value: list[float] | None) -> str:
    """Return the mean, and the interval below it."""
    return re.sub(r" \((.*)\)", r"<small>\1</small>", cell(value))
