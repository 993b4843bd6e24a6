"""The supervisor with real processes: who ends whom, which status comes out, and where the output goes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time

import pytest
from qos import EVERY_STATE
from real_time import OWN_SESSION

from bid_msgs.msg import Heartbeat
from bid_ros.system.ended import NOTE, Ended, read_end

LIMIT_S = 40.0
HUNG_S, KILL_S = 2.0, 3.0
SCRIPT = f"""{OWN_SESSION}
import json, sys
from pathlib import Path
from bid_ros.system.processes import supervise
sys.exit(supervise(json.loads(sys.argv[1]), {{"ADDED": "yes"}}, Path(sys.argv[2]), "main", {HUNG_S}, {KILL_S}))
"""
# Says that it runs, waits for its end, and says that it was asked for.
WAITING = "trap 'echo asked to end; exit 0' TERM; echo ready $ADDED; while true; do sleep 0.05; done"


# Gives one sign of life, and then hangs: nothing but a kill ends it.
HUNG = "trap '' TERM; echo . >/dev/fd/$BID_ALIVE; echo ready; while true; do sleep 0.05; done"


def start(commands: dict[str, str], logs, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, json.dumps(commands), str(logs)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )


def supervised(commands: dict[str, str], logs) -> tuple[int, str]:
    process = start(commands, logs)
    _, errors = process.communicate(timeout=LIMIT_S)
    return process.returncode, errors


def until_ready(logs, *names: str) -> str:
    """Shell words that wait until these processes run."""
    return " ".join(f"until grep -qs ready {logs / name}.log; do sleep 0.05; done;" for name in names)


@pytest.mark.parametrize("status", [0, 3])
def test_when_the_foreground_ends_all_end_and_its_status_is_returned(tmp_path, status):
    logs = tmp_path / "logs"
    commands = {"one": WAITING, "two": WAITING, "main": until_ready(logs, "one", "two") + f" echo done; exit {status}"}
    returned, output = supervised(commands, logs)
    assert returned == status
    assert output == "done\n"
    for name in ("one", "two"):
        log = (logs / f"{name}.log").read_text()
        assert "ready yes" in log and "asked to end" in log
    assert "done" in (logs / "main.log").read_text()


@pytest.mark.parametrize(("end", "status"), [("exit 0", 1), ("exit 5", 5), ("kill -9 $$", 1)])
def test_a_run_that_another_process_ended_is_never_a_success(tmp_path, end, status):
    logs = tmp_path / "logs"
    returned, output = supervised({"main": WAITING, "one": until_ready(logs, "main") + end}, logs)
    assert returned == status
    assert "error: one ended first" in output and str(logs / "one.log") in output


def test_the_process_that_ended_a_run_is_named_and_noted_before_the_others_are_asked_to_end(tmp_path):
    logs = tmp_path / "logs"
    reads = f"trap 'cat {tmp_path / NOTE}; exit 0' TERM; echo ready; while true; do sleep 0.05; done"
    _, output = supervised({"main": reads, "one": until_ready(logs, "main") + "kill -9 $$"}, logs)
    assert f"error: one ended first (status -9, killed by SIGKILL); see {logs / 'one.log'}" in output
    assert read_end(tmp_path) == Ended("one", -9)
    assert json.dumps({"name": "one", "status": -9}) in (logs / "main.log").read_text()


def test_a_foreground_that_is_killed_is_named_too_and_one_that_ends_by_itself_is_not(tmp_path):
    status, output = supervised({"main": "kill -9 $$"}, tmp_path / "killed" / "logs")
    assert status == 1 and "error: main ended first (status -9, killed by SIGKILL)" in output
    assert read_end(tmp_path / "killed") == Ended("main", -9)
    status, output = supervised({"main": "exit 3"}, tmp_path / "ended" / "logs")
    assert (status, output, read_end(tmp_path / "ended")) == (3, "", None)


@pytest.mark.parametrize(("end", "asked"), [("kill -9 $$", "again"), ("exit 2", "again"), ("exit 0", "once")])
def test_who_waits_for_the_last_words_of_a_node_that_failed_is_told_that_there_are_none(tmp_path, end, asked):
    """A killed arm node is on the graph for 20 s. One that ends in order leaves it, and nobody is hurried."""
    logs = tmp_path / "logs"
    counts = "N=0; trap 'N=$((N+1))' TERM; echo ready; while [ $N -lt 1 ]; do sleep 0.02; done;"
    counts += " for i in $(seq 50); do sleep 0.02; done; [ $N -gt 1 ] && echo asked again || echo asked once"
    supervised({"main": WAITING, "twin": counts, "arm": until_ready(logs, "main", "twin") + end}, logs)
    assert f"asked {asked}" in (logs / "twin.log").read_text()


def test_what_a_node_says_about_bad_input_is_shown_once(tmp_path):
    logs = tmp_path / "logs"
    bad = until_ready(logs, "main") + "echo noise; echo 'error: the cup is empty' >&2; exit 2"
    returned, output = supervised({"main": WAITING, "one": bad}, logs)
    assert returned == 2
    assert output.count("error: ") == 1 and "the cup is empty" in output and "noise" not in output


def test_progress_lines_are_thinned_where_there_is_no_terminal(tmp_path):
    returned, output = supervised({"main": "printf '\\037begun\\n\\037half done\\nall done\\n'"}, tmp_path / "logs")
    assert returned == 0
    assert output == "begun\nall done\n"
    assert "half done" in (tmp_path / "logs" / "main.log").read_text()


def test_a_progress_line_that_is_wider_than_the_terminal_is_cut(tmp_path):
    """One that wraps around is not overwritten: ten lines a second would stay."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 40))
    wide = "import sys; print(chr(0x1f) + 'x' * 100); print(chr(0x1f) + 'short')"
    process = start({"main": f'{sys.executable} -c "{wide}"'}, tmp_path / "logs", stderr=slave)
    assert process.wait(LIMIT_S) == 0
    os.close(slave)
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert shown == f"\r\x1b[K{'x' * 38}…\r\x1b[Kshort"


def started(commands: dict[str, str], logs) -> subprocess.Popen[str]:
    """Start the processes and wait until each has said that it runs."""
    process = start(commands, logs)
    end = time.monotonic() + LIMIT_S
    files = [logs / f"{name}.log" for name in commands]
    while not all(file.exists() and "ready" in file.read_text() for file in files):
        if time.monotonic() > end:
            process.terminate()
            raise AssertionError(f"the processes did not start: {[file.read_text() for file in files]}")
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    ("kind", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_a_signal_ends_every_process(tmp_path, kind, status):
    logs = tmp_path / "logs"
    process = started({"main": WAITING, "one": WAITING}, logs)
    os.kill(process.pid, kind)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == status
    assert "asked to end" in (logs / "one.log").read_text()


def test_more_signals_skip_nothing(tmp_path):
    logs = tmp_path / "logs"
    slow = "trap 'sleep 1; echo closed; exit 0' TERM; echo ready; while true; do sleep 0.05; done"
    process = started({"main": WAITING, "one": slow}, logs)
    end = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < end:
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.1)
    _, output = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and "Traceback" not in output
    assert "ending: waiting for" in output and "closed" in (logs / "one.log").read_text()


def test_processes_that_hang_end_the_run_in_time_and_are_named(tmp_path):
    """Nobody ends by itself, so only the missing signs of life tell. Three runs at once, as each waits long."""
    names = ("main", "one", "two")
    others = "trap 'echo closed; exit 0' TERM; echo ready; while true; do echo . >/dev/fd/$BID_ALIVE; sleep 0.05; done"
    runs = []
    for hung in (("main",), ("one",), names):
        logs = tmp_path / "-".join(hung)
        process = started({name: HUNG if name in hung else others for name in names}, logs)
        runs.append((hung, logs, process, time.monotonic()))
    for hung, logs, process, begun in runs:
        _, output = process.communicate(timeout=LIMIT_S)
        assert time.monotonic() - begun < HUNG_S + KILL_S + 3.0
        assert process.returncode == 1
        (said,) = [line for line in output.splitlines() if line.endswith(" hung: no sign of life for 2 s")]
        # They began to hang at slightly different times, and the first one found ends the run.
        assert set(said.removeprefix("error: ").split(" hung")[0].split(", ")) <= set(hung)
        assert f"error: {', '.join(hung)} did not end within 3 s and had to be killed" in output
        assert all("closed" in (logs / f"{name}.log").read_text() for name in set(names) - set(hung))


def test_a_signal_ends_a_run_in_which_everybody_hangs(tmp_path):
    logs = tmp_path / "logs"
    silent = HUNG.replace("echo . >/dev/fd/$BID_ALIVE;", "")
    process = started({"main": silent, "one": silent}, logs)
    os.kill(process.pid, signal.SIGINT)
    begun = time.monotonic()
    _, output = process.communicate(timeout=LIMIT_S)
    assert time.monotonic() - begun < KILL_S + 2.0
    assert process.returncode == 130 and "main, one did not end within 3 s" in output


def test_a_process_that_was_frozen_is_woken_to_end(tmp_path):
    logs = tmp_path / "logs"
    process = started({"main": WAITING, "one": "echo $$; " + WAITING}, logs)
    frozen = int((logs / "one.log").read_text().splitlines()[0].split()[-1])
    os.kill(frozen, signal.SIGSTOP)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=LIMIT_S)
    assert "asked to end" in (logs / "one.log").read_text()


def test_a_child_that_keeps_the_output_open_holds_nobody_up(tmp_path):
    returned, output = supervised({"main": "sleep 600 & echo $!; exit 0"}, tmp_path / "logs")
    os.kill(int(output), signal.SIGKILL)
    assert returned == 0


def test_a_node_ends_when_its_supervisor_was_killed(bench, root, monkeypatch):
    supervisor = subprocess.Popen(["sleep", "600"])
    monkeypatch.setenv("BID_SUPERVISOR", str(supervisor.pid))
    beats: list[Heartbeat] = []
    bench.node.create_subscription(Heartbeat, "/heartbeat", beats.append, EVERY_STATE)
    bench.start("safety", {"task": str(root / "config" / "franka_place" / "task.yaml"), "twin": True})
    assert bench.until(lambda: beats, LIMIT_S)
    supervisor.kill()
    supervisor.wait()
    status, output = bench.finish("safety", LIMIT_S)
    assert status == 1 and "Traceback" not in output
