"""``events.jsonl``: what happened in a run, one JSON object a line, each with the SHA-256 of the line before it.

So a changed, removed, inserted or swapped line shows, and ``run.json`` names the hash of the last line, so that a cut
shows too. It proves nothing against somebody who rewrites the whole file and ``run.json`` with it.

A line is in the file when :meth:`EventLog.write` returns, so whoever kills the process loses no line. What must outlast
a power cut is synchronised with the disk: starts, stops and ends.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

FILE: Final = "events.jsonl"
RUN: Final = "run.json"
FIRST: Final = "0" * 64  # stands for the hash of a line before the first
LASTING: Final = ("start", "stop", "end")
"""Kinds of lines that outlast a power cut."""


class EventLog:
    """Writes the lines of a run, after those that are there already. One process at a time.

    Attributes:
        head: number of lines, and the hash of the last one.

    Args:
        folder: of the run; it exists.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        text = (folder / FILE).read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):  # a full disk took a part of a line
            os.ftruncate(self._file, len(whole))
        lines = whole.splitlines()
        self.head = len(lines), _hash(lines[-1]) if lines else FIRST

    def write(self, kind: str, **about: Any) -> None:
        """Append one line.

        Args:
            kind: what happened, one word.
            about: plain values, as JSON has them. A number that is none becomes null.

        Raises:
            OSError: the disk takes no more. Nothing of the line is left then.
        """
        number, before = self.head
        when = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "steady_s": round(time.monotonic(), 3)}
        content = {"line": number + 1, "kind": kind, **when, **plain(about), "before": before}
        line = json.dumps(content, allow_nan=False).encode()
        size = os.fstat(self._file).st_size
        if os.write(self._file, line + b"\n") <= len(line):
            os.ftruncate(self._file, size)
            raise OSError(f"no space is left for {FILE}")
        if kind in LASTING:
            os.fsync(self._file)
        self.head = number + 1, _hash(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def append_event(folder: Path, kind: str, **about: Any) -> tuple[int, str]:
    """Append one line to the events of a run; return what :attr:`EventLog.head` is then. Raises OSError."""
    log = EventLog(folder)
    try:
        log.write(kind, **about)
    finally:
        log.close()
    return log.head


def told_head(head: tuple[int, str]) -> dict[str, Any]:
    """Return what ``run.json`` says of the events: how many ``lines``, and the ``sha256`` of the last one."""
    return dict(zip(("lines", "sha256"), head, strict=True))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: tuples are lists, numbers that are none are null."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def check_events(folder: Path) -> str:
    """Return one sentence on the first broken line of a run's events; empty if the chain is whole.

    A run that has neither the file nor a ``run.json`` that speaks of it has none: that is not broken.
    """
    said = _told(folder)
    try:
        text = (folder / FILE).read_bytes()
    except OSError as error:
        return "" if said is None and isinstance(error, FileNotFoundError) else f"{FILE}: {error.strerror}"
    lines = text.split(b"\n")
    tail, hashes = lines.pop(), [FIRST]
    for number, line in enumerate(lines, start=1):
        if problem := _broken(line, number, hashes[-1]):
            return f"{FILE} line {number} {problem}"
        hashes.append(_hash(line))
    if tail:
        return f"{FILE} line {len(lines) + 1} is cut off"
    return "" if said is None else _against(said, hashes)


def read_run(folder: Path) -> dict[str, Any] | None:
    """Return what ``run.json`` in the folder of a run says; None: there is none, or a damaged one."""
    try:
        content = json.loads((folder / RUN).read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _told(folder: Path) -> Mapping[str, Any] | None:
    """Return what ``run.json`` says of the events; None if it says nothing."""
    said = (read_run(folder) or {}).get("events")
    return said if isinstance(said, dict) else None


def _broken(line: bytes, number: int, before: str) -> str:
    """Return what is wrong with a line, or an empty text."""
    try:
        content = json.loads(line)
        told, numbered = content["before"], content["line"]
    except (ValueError, TypeError, KeyError):
        return "is no line of this file: it cannot be read"
    if numbered != number:
        return f"says that it is line {numbered}: lines were removed, inserted or swapped"
    if told != before:
        return f"does not follow from line {number - 1}, which was changed" if number > 1 else "is not the first one"
    return ""


def _against(said: Mapping[str, Any], hashes: list[str]) -> str:
    """Return how the lines contradict what ``run.json`` says of them, or an empty text. Later lines may follow."""
    lines = said.get("lines")
    if not isinstance(lines, int) or not 0 <= lines < len(hashes):
        return f"{FILE} has {len(hashes) - 1} lines; {RUN} says that it has {lines}: it was cut"
    if hashes[lines] != said.get("sha256"):
        return f"{FILE} line {lines} was changed: its sha256 is not the one in {RUN}"
    return ""


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
