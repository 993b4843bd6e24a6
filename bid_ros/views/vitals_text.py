"""The vitals of a system as plain text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bid_ros.views.message_names import state


def vitals_text(said: Mapping[str, Any]) -> str:
    """Return a snapshot of :class:`bid_ros.views.vitals.Vitals` as text for a terminal."""
    blocks = ["\n".join(f"{name:9} {text}" for name, text in summary(said))]
    if said["latencies"]:
        rows = [(name, *(f"{part:.1f}" for part in parts.values())) for name, parts in said["latencies"].items()]
        blocks.append(_table(("latency", "p50", "p99", "max"), rows))
    for title in ("topics", "heartbeats"):
        rows = [(name, *heard(item)) for name, item in said[title].items()]
        blocks.append(_table((title, "Hz", "silent s"), rows))
    rows = [(name, item["level"], item["message"], values(item)) for name, item in said["diagnostics"].items()]
    blocks.append(_table(("diagnostics", "level", "message", "values"), rows))
    return "\n\n".join(blocks)


def summary(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and text of what there is one of: safety, arm, episode, decision."""
    safety, arm, episode, decision = (said[name] for name in ("safety", "arm", "episode", "decision"))
    rows = []
    if safety is not None:
        counted = f"   forwarded {safety['forwarded']}, refused {safety['refused']}"
        rows.append(("safety", state(safety["state"], safety["reason"]) + counted))
    if arm is not None:
        source = f"   follows {arm['source']}" if arm["source"] else ""
        rows.append(("arm", state(arm["mode"], arm["reason"]) + source))
    if episode is not None:
        text = f"{episode['event']} {episode['number'] + 1}   seed {episode['seed']}   {episode['label']}"
        rows.append(("episode", f"{text}   {episode['outcome']}".rstrip()))
    if decision is not None:
        numbers = f"N {decision['samples']}, kept {decision['kept']}, weak {decision['weak']}"
        rows.append(("decoder", f"{decision['decoder']}   {numbers}   missed {decision['missed']}"))
        if losses := loss_text(decision):
            rows.append(("loss", losses))
    return rows or [("", "nothing was heard yet")]


def loss_text(decision: Mapping[str, Any]) -> str:
    """Return the total losses of the kept candidates in short; empty if the decoder has none."""
    total = decision["losses"]["total"]
    found = sorted(value for value in total if value is not None)
    if not found:
        return ""
    index = decision["selected"]
    chosen = total[index] if 0 <= index < len(total) else None
    selected = "" if chosen is None else f"   selected {chosen:.4f}"
    return f"best {found[0]:.4f}   median {found[len(found) // 2]:.4f}   worst {found[-1]:.4f}{selected}"


def heard(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return rate and silence of a topic or a node as texts."""
    silent = item["silent_s"]
    return f"{item['rate_hz']:.1f}", "never heard" if silent is None else f"{silent:.1f}"


def values(item: Mapping[str, Any]) -> str:
    """Return the values of a diagnostic status in one line."""
    return ", ".join(f"{name} {value}" for name, value in item["values"].items())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
