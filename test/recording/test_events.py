"""The chain of a run's events: what breaks it, and what survives."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from bid_ros.recording.events import FILE, FIRST, RUN, EventLog, append_event, check_events, read_run, told_head


def written(folder, count=5):
    """Write a run of some events, and the statement of ``run.json``."""
    log = EventLog(folder)
    for number in range(count):
        log.write("episode", number=number)
    log.close()
    (folder / RUN).write_text(json.dumps({"events": told_head(log.head)}))
    return (folder / FILE).read_bytes().splitlines(keepends=True)


def test_each_line_names_the_hash_of_the_line_before(tmp_path):
    lines = [json.loads(line) for line in written(tmp_path)]
    assert [line["line"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[0]["before"] == FIRST and len({line["before"] for line in lines}) == 5
    assert check_events(tmp_path) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda lines: [lines[0], lines[1].replace(b'"number": 1', b'"number": 7'), *lines[2:]], "line 3 does not fol"),
        (lambda lines: [lines[0], *lines[2:]], "line 2 says that it is line 3: lines were removed"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2 says that it is line 3: lines were removed"),
        (lambda lines: lines[1:], "line 1 says that it is line 2"),
        (lambda lines: lines[:-1], f"has 4 lines; {RUN} says that it has 5: it was cut"),
        (lambda lines: [], f"has 0 lines; {RUN} says that it has 5: it was cut"),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], "line 5 is cut off"),
        (lambda lines: [*lines[:-1], lines[-1].replace(b'"number": 4', b'"number": 9')], "line 5 was changed: its sha"),
        (lambda lines: [b"\x00\xff\n", *lines[1:]], "line 1 is no line of this file"),
        (lambda lines: [b"[]\n", *lines[1:]], "line 1 is no line of this file"),
    ],
)
def test_the_first_broken_line_is_named(tmp_path, changed, said):
    (tmp_path / FILE).write_bytes(b"".join(changed(written(tmp_path))))
    found = check_events(tmp_path)
    assert said in found and "\n" not in found


def test_a_file_that_is_gone_is_missed_only_where_the_run_says_that_it_was_there(tmp_path):
    assert check_events(tmp_path) == ""
    written(tmp_path)
    (tmp_path / FILE).unlink()
    assert check_events(tmp_path) == f"{FILE}: No such file or directory"


def test_lines_after_the_last_statement_of_the_run_are_no_fault(tmp_path):
    written(tmp_path)
    append_event(tmp_path, "stop", rule="speed", measured=float("nan"), limits=(1.0, float("inf")))
    assert check_events(tmp_path) == ""
    last = json.loads((tmp_path / FILE).read_text().splitlines()[-1])
    assert last["measured"] is None and last["limits"] == [1.0, None] and last["line"] == 6


def test_another_process_goes_on_after_a_line_that_was_cut_off(tmp_path):
    lines = written(tmp_path)
    (tmp_path / FILE).write_bytes(b"".join(lines) + b'{"line": 6, "ki')
    head = append_event(tmp_path, "end")
    assert head[0] == 6 and check_events(tmp_path) == ""


def test_no_written_line_is_lost_when_the_process_is_killed(root, tmp_path):
    code = (
        "import sys; from pathlib import Path; from bid_ros.recording.events import EventLog\n"
        "log = EventLog(Path(sys.argv[1]))\n"
        "while True: log.write('episode', text='x' * 300); print(log.head[0], flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as writer:
        while int(writer.stdout.readline()) < 50:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        said = [int(line) for line in writer.stdout.read().splitlines() if line]
    lines = (tmp_path / FILE).read_bytes()
    assert lines.endswith(b"\n") and lines.count(b"\n") >= max(said, default=50)
    assert check_events(tmp_path) == ""


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path):
    log = EventLog(tmp_path)
    log.write("start")
    before = os.fstat(log._file).st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before + 40, hard))
        with pytest.raises(OSError, match="no space"):
            log.write("stop", rule="speed")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert os.fstat(log._file).st_size == before
    log.write("stop", rule="speed")
    log.close()
    assert check_events(tmp_path) == "" and log.head[0] == 2


@pytest.mark.parametrize(("content", "said"), [('{"seed": 3}', {"seed": 3}), ('{"seed": ', None), ("[3]", None)])
def test_a_run_that_cannot_be_read_says_nothing(content, said, tmp_path):
    assert read_run(tmp_path) is None
    (tmp_path / RUN).write_text(content)
    assert read_run(tmp_path) == said
