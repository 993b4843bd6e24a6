"""The report of ``bid accept`` as one HTML page that needs no other file."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from bid_ros.episodes.acceptance import cameras_of
from bid_ros.system.stages import STAGES

STYLE: Final = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: 3px 12px 3px 0; }
th, td { border-bottom: 1px solid #ddd; vertical-align: top; } .ok { color: #17723a; } .fail, .no { color: #b3261e; }
.warn { color: #8a5a00; } pre { background: #f4f4f4; padding: .7rem; overflow-x: auto; }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd; } th, td { border-color: #444; }
  pre { background: #242424; } .ok { color: #6fcf8f; } .fail, .no { color: #ff8a80; } .warn { color: #e6b450; } }
"""
STAGE_HEAD: Final = ("stage", "lag", "off p99", "at rest p50", "command age p50, p99", "missed decisions", "passed")
STOP_HEAD: Final = ("by", "noticed after", "rest after", "way", "speed before", "reason")
PASSED: Final = {True: "passed", False: "not passed"}


def acceptance_page(report: Mapping[str, Any]) -> str:
    """Return the page of a report."""
    where = f"robot {report['robot_ip']}" if report["robot_ip"] else "its twin, no hardware"
    title = f"{report['task']}: {report['robot']}, {where}"
    problems = "".join(f"<li>{escape(text)}</li>" for text in report["problems"])
    about = {**report["versions"], **report["computer"], "system": report["system"], "measured": report["date"]}
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="{"ok" if report["passed"] else "no"}">{PASSED[report["passed"]]}</p><ul>{problems}</ul>',
        _section("Stages", STAGE_HEAD, map(_stage, report["stages"])),
        _section("Cameras, last stage", ("topic", "rate", "longest gap", "age p50, p99"), _cameras(report)),
        _section("Stops", STOP_HEAD, (_stop(name, item) for name, item in report["stops"].items())),
        _compared(report.get("comparison")),
        _section("Versions", ("of", "is"), ((name, escape(str(value))) for name, value in about.items())),
        _section("Checks before", ("what", "state", "measured"), _checks(report["findings"])),
    ]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
    return f"{head}<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"


def _stage(item: Mapping[str, Any]) -> Sequence[str]:
    ages = item.get("command_age_ms") or {}
    asked = item.get("decisions", 0) + item.get("missed", 0)
    return (
        f"{item['stage']}: {item['motion']}" + (f" at {item['slow']:g}" if item["motion"] == STAGES[-1].motion else ""),
        _number(item.get("lag_s"), "ms", 1e3),
        _number((item.get("off_mm") or {}).get("p99"), "mm"),
        _number((item.get("resting_mm") or {}).get("p50"), "mm"),
        f"{_number(ages.get('p50'), 'ms')}, {_number(ages.get('p99'), 'ms')}",
        f"{item['missed']} of {asked}" if asked else "-",
        _marked("ok" if item["passed"] else "no", "yes" if item["passed"] else "no"),
    )


def _cameras(report: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    for name, camera in cameras_of(report).items():
        ages = f"{_number(camera['age_ms']['p50'], 'ms')}, {_number(camera['age_ms']['p99'], 'ms')}"
        yield name, _number(camera["rate_hz"], "Hz"), _number(camera["gap_ms"], "ms"), ages


def _stop(name: str, item: Mapping[str, Any]) -> Sequence[str]:
    return (
        name.replace("_", " "),
        _number(item.get("noticed_s"), "s"),
        _number(item.get("rest_s"), "s"),
        _number(item.get("way_mm"), "mm"),
        _number(item.get("speed"), "m/s"),
        escape(item.get("reason") or "; ".join(item["problems"])),
    )


def _compared(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    return _section("Beside the twin", ("measured", "this", "twin"), found["rows"]) + (
        f"<p>The twin would be alike with:</p><pre>{escape(found['text'])}</pre>"
    )


def _checks(findings: Iterable[Mapping[str, Any]]) -> Iterable[Sequence[str]]:
    for item in findings:
        yield escape(item["what"]), _marked(item["state"], item["state"]), escape(item["measured"])


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are HTML."""
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{name}</th>" for name in head)
    return f"<h2>{title}</h2><table><tr>{names}</tr>{lines}</table>" if lines else f"<h2>{title}</h2><p>none</p>"


def _number(value: float | None, unit: str, factor: float = 1.0) -> str:
    return "-" if value is None else f"{factor * value:.3g} {unit}"


def _marked(kind: str, text: str) -> str:
    return f'<span class="{kind}">{text}</span>'
