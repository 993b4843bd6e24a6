"""How a system is: rates, latencies, losses, safety, heartbeats and diagnostics, from its messages; and as text."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.margins import SAID
from bid_ros.core.tables import aligned
from bid_ros.core.topics import ARM_STATUS, DECISION, DIAGNOSTICS, EPISODE_EVENT, HEARTBEAT, SAFETY_STATE
from bid_ros.views.message_values import EVENTS, LATENCIES, LEVELS, MODES, SAFETY, decision_times_ms, state, word


def vitals_text(said: Mapping[str, Any]) -> str:
    """Return a snapshot of :class:`bid_ros.views.vitals.Vitals` as text for a terminal."""
    blocks = ["\n".join(f"{name:9} {text}" for name, text in summary(said))]
    if said["latencies"]:
        rows = [(name, *(f"{part:.1f}" for part in parts.values())) for name, parts in said["latencies"].items()]
        blocks.append(aligned([("latency", "p50", "p99", "max"), *rows]))
    for title in ("topics", "heartbeats"):
        rows = [(name, *heard(item)) for name, item in said[title].items()]
        blocks.append(aligned([(title, "Hz", "silent s"), *rows]))
    rows = [(name, item["level"], item["message"], values(item)) for name, item in said["diagnostics"].items()]
    blocks.append(aligned([("diagnostics", "level", "message", "values"), *rows]))
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
    return ", ".join(f"{name} {value}" for name, value in item["values"].items() if name != SAID)


WINDOW_S: Final = 5.0  # over which rates are counted
SHORTEST_NS: Final = NANOSECONDS  # in which less than what a rate needs was heard: it counts over this time
DECISIONS: Final = 300  # over which latencies are counted


class Arrivals:
    """When messages arrived."""

    def __init__(self) -> None:
        self._recent: deque[int] = deque()
        self._last: int | None = None
        self._first: int | None = None

    def add(self, stamp_ns: int) -> None:
        """Note an arrival, ns."""
        self._recent.append(stamp_ns)
        self._last = stamp_ns
        self._first = stamp_ns if self._first is None else self._first

    def rate(self, now_ns: int) -> float:
        """Return the messages in a second, over what was heard of the last :data:`WINDOW_S`."""
        begin = now_ns - round(WINDOW_S * NANOSECONDS)
        while self._recent and self._recent[0] < begin:
            self._recent.popleft()
        if self._first is None or not self._recent:
            return 0.0
        if self._first >= begin:  # it has not been listened to for the whole window
            # What waited for a late subscriber comes at once, and says nothing of a rate.
            span = max(self._recent[-1] - self._recent[0], now_ns - self._recent[-1], SHORTEST_NS)
            return (len(self._recent) - 1) * NANOSECONDS / span
        return len(self._recent) / WINDOW_S

    def silent_s(self, now_ns: int) -> float | None:
        """Return the seconds since the last message; None if there was none."""
        return None if self._last is None else max(0.0, (now_ns - self._last) / NANOSECONDS)


class Vitals:
    """Keeps what :meth:`snapshot` says. Any thread may call it.

    Args:
        topics: their rates are said, also of those that never come.
    """

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = {name: Arrivals() for name in topics}
        self._hearts: dict[str, tuple[Arrivals, float]] = {}
        self._decisions: deque[tuple[float, ...]] = deque(maxlen=DECISIONS)
        self._last: dict[str, Any] = {}
        self._statuses: dict[str, tuple[int, Any]] = {}
        self._lock = Lock()

    def add(self, topic: str, stamp_ns: int, message: Any) -> None:
        """Take a message that arrived at a time in ns. Of other topics than those of this module it may be bytes."""
        with self._lock:
            self._take(topic, stamp_ns, message)

    def _take(self, topic: str, stamp_ns: int, message: Any) -> None:
        self._topics.setdefault(topic, Arrivals()).add(stamp_ns)
        if topic == HEARTBEAT:
            arrivals, _ = self._hearts.get(message.node, (Arrivals(), 0.0))
            arrivals.add(stamp_ns)
            self._hearts[message.node] = arrivals, float(getattr(message, "work_age", 0.0))
        elif topic == DIAGNOSTICS:
            self._statuses |= {status.name: (stamp_ns, status) for status in message.status}
        elif topic in (ARM_STATUS, DECISION, EPISODE_EVENT, SAFETY_STATE):
            self._last[topic] = message
        if topic == DECISION:
            self._decisions.append(tuple(decision_times_ms(message).values()))

    def snapshot(self, now_ns: int) -> dict[str, Any]:
        """Return how the system is at a time in ns, as values that JSON has: numbers, texts, lists, None.

        ``safety``, ``arm``, ``episode`` and ``decision`` are None until the first message of theirs.
        """
        with self._lock:
            return self._said(now_ns)

    def _said(self, now_ns: int) -> dict[str, Any]:
        return {
            **{name: self._of_last(topic, said, now_ns) for name, (topic, said) in _LAST.items()},
            "latencies": self._latencies(),
            "topics": {name: _heard(arrivals, now_ns) for name, arrivals in self._topics.items()},
            "heartbeats": {
                name: {**_heard(arrivals, now_ns), "work_age_s": round(work, 3)}
                for name, (arrivals, work) in sorted(self._hearts.items())
            },
            "diagnostics": {name: _status(*self._statuses[name], now_ns) for name in sorted(self._statuses)},
        }

    def _of_last(self, topic: str, said: Callable[[Any], dict[str, Any]], now_ns: int) -> dict[str, Any] | None:
        """Return what the last message of a topic says, and for how long there was none; None before the first."""
        if topic not in self._last:
            return None
        return {**said(self._last[topic]), "silent_s": _heard(self._topics[topic], now_ns)["silent_s"]}

    def _latencies(self) -> dict[str, dict[str, float]]:
        if not self._decisions:
            return {}
        columns = np.array(self._decisions).T
        parts = {"p50": 50, "p99": 99, "max": 100}
        return {
            name: {part: round(float(np.percentile(column, share)), 2) for part, share in parts.items()}
            for name, column in zip(LATENCIES, columns, strict=True)
        }


def _heard(arrivals: Arrivals, now_ns: int) -> dict[str, float | None]:
    silent = arrivals.silent_s(now_ns)
    return {"rate_hz": round(arrivals.rate(now_ns), 2), "silent_s": None if silent is None else round(silent, 2)}


def _status(stamp_ns: int, status: Any, now_ns: int) -> dict[str, Any]:
    level = status.level[0] if isinstance(status.level, bytes) else int(status.level)
    values = {str(item.key): str(item.value) for item in status.values}
    silent_s = round(max(0.0, (now_ns - stamp_ns) / NANOSECONDS), 2)
    return {"level": word(LEVELS, level), "message": str(status.message), "values": values, "silent_s": silent_s}


def _finite(value: Any) -> float | None:
    """Return a number; None for what JSON has no number for."""
    return None if value is None or not np.isfinite(value) else round(float(value), 4)


def _texts(message: Any, *names: str) -> dict[str, str]:
    return {name: str(getattr(message, name)) for name in names}


def _numbers(message: Any, *names: str) -> dict[str, int]:
    return {name: int(getattr(message, name)) for name in names}


def _safety(last: Any) -> dict[str, Any]:
    rule = str(last.rule if hasattr(last, "rule") else last.trigger)  # its name in bags of an earlier version
    said = {**_texts(last, "reason", "source"), "state": word(SAFETY, last.state), "rule": rule}
    return {**said, **_numbers(last, "forwarded", "refused")}


def _arm(last: Any) -> dict[str, Any]:
    age = _finite(getattr(last, "command_age", None))
    return {"mode": word(MODES, last.mode), **_texts(last, "reason", "source"), "command_age_s": age}


def _episode(last: Any) -> dict[str, Any]:
    said = {"event": word(EVENTS, last.kind), "number": int(last.episode), "seed": int(last.seed)}
    return {**said, **_texts(last, "label", "outcome")}


def _decision(last: Any) -> dict[str, Any]:
    losses = {name: [_finite(value) for value in getattr(last, name)] for name in ("total", "backward", "forward")}
    return {
        "decoder": str(last.decoder),
        **_numbers(last, "samples", "missed"),
        "weak": int(last.weak_samples),
        "kept": int(np.sum(last.kept)) if len(last.kept) else int(last.samples),
        "selected": int(last.selected_index),
        "losses": losses,
    }


_LAST: Final = {
    "safety": (SAFETY_STATE, _safety),
    "arm": (ARM_STATUS, _arm),
    "episode": (EPISODE_EVENT, _episode),
    "decision": (DECISION, _decision),
}
"""By what is said of the system: the topic whose last message says it, and how it is read."""
