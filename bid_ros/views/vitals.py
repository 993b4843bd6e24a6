"""How a system is: rates, latencies, losses, state of safety, heartbeats and diagnostics, from its messages."""

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.topics import ARM_STATUS, DECISION, DIAGNOSTICS, EPISODE_EVENT, HEARTBEAT, SAFETY_STATE
from bid_ros.views.message_names import EVENTS, LEVELS, MODES, SAFETY, word

WINDOW_S: Final = 5.0  # over which rates are counted
DECISIONS: Final = 300  # over which latencies are counted
LATENCIES: Final = ("decision_ms", "observation_age_ms", "encode_ms", "sample_ms", "choose_ms")


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
            span = self._recent[-1] - self._recent[0]
            return (len(self._recent) - 1) * NANOSECONDS / span if span else 0.0
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
            self._decisions.append(tuple(float(getattr(message, name)) for name in LATENCIES))

    def snapshot(self, now_ns: int) -> dict[str, Any]:
        """Return how the system is at a time in ns, as values that JSON has: numbers, texts, lists, None.

        ``safety``, ``arm``, ``episode`` and ``decision`` are None until the first message of theirs.
        """
        with self._lock:
            return self._said(now_ns)

    def _said(self, now_ns: int) -> dict[str, Any]:
        return {
            "safety": self._safety(now_ns),
            "arm": self._arm(now_ns),
            "episode": self._episode(),
            "decision": self._decision(now_ns),
            "latencies": self._latencies(),
            "topics": {name: _heard(arrivals, now_ns) for name, arrivals in self._topics.items()},
            "heartbeats": {
                name: {**_heard(arrivals, now_ns), "work_age_s": round(work, 3)}
                for name, (arrivals, work) in sorted(self._hearts.items())
            },
            "diagnostics": {name: _status(*self._statuses[name], now_ns) for name in sorted(self._statuses)},
        }

    def _silent(self, topic: str, now_ns: int) -> float | None:
        return _heard(self._topics[topic], now_ns)["silent_s"]

    def _safety(self, now_ns: int) -> dict[str, Any] | None:
        last = self._last.get(SAFETY_STATE)
        if last is None:
            return None
        said = {name: str(getattr(last, name)) for name in ("trigger", "reason", "source")}
        counted = {name: int(getattr(last, name)) for name in ("forwarded", "refused")}
        return {"state": word(SAFETY, last.state), **said, **counted, "silent_s": self._silent(SAFETY_STATE, now_ns)}

    def _arm(self, now_ns: int) -> dict[str, Any] | None:
        last = self._last.get(ARM_STATUS)
        if last is None:
            return None
        said = {name: str(getattr(last, name)) for name in ("reason", "source")}
        age = _finite(getattr(last, "command_age", None))
        return {
            "mode": word(MODES, last.mode),
            **said,
            "command_age_s": age,
            "silent_s": self._silent(ARM_STATUS, now_ns),
        }

    def _episode(self) -> dict[str, Any] | None:
        last = self._last.get(EPISODE_EVENT)
        if last is None:
            return None
        said = {name: str(getattr(last, name)) for name in ("label", "outcome")}
        return {"event": word(EVENTS, last.kind), "number": int(last.episode), "seed": int(last.seed), **said}

    def _decision(self, now_ns: int) -> dict[str, Any] | None:
        last = self._last.get(DECISION)
        if last is None:
            return None
        kept = int(np.sum(last.kept)) if len(last.kept) else int(last.samples)
        losses = {name: [_finite(value) for value in getattr(last, name)] for name in ("total", "backward", "forward")}
        return {
            "decoder": str(last.decoder),
            "samples": int(last.samples),
            "weak": int(last.weak_samples),
            "kept": kept,
            "selected": int(last.selected_index),
            "missed": int(last.missed),
            "losses": losses,
            "silent_s": self._silent(DECISION, now_ns),
        }

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
