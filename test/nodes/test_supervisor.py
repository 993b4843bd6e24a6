"""The supervisor with real processes: who ends whom, which status comes out, and where the output goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bid_msgs.msg import Heartbeat
from bid_ros.nodes.qos import STATE

LIMIT_S = 40.0
SCRIPT = """
import json, sys
from pathlib import Path
from bid_ros.supervisor import supervise
sys.exit(supervise(json.loads(sys.argv[1]), {"ADDED": "yes"}, Path(sys.argv[2]), "main"))
"""
# Says that it runs, waits for its end, and says that it was asked for.
WAITING = "trap 'echo asked to end; exit 0' TERM; echo ready $ADDED; while true; do sleep 0.05; done"


def start(commands: dict[str, str], logs) -> subprocess.Popen[str]:
    import json

    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, json.dumps(commands), str(logs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
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


@pytest.mark.parametrize(("kind", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_process(tmp_path, kind, status):
    logs = tmp_path / "logs"
    process = start({"main": WAITING, "one": WAITING}, logs)
    end = time.monotonic() + LIMIT_S
    files = [logs / "main.log", logs / "one.log"]
    while not all(file.exists() and "ready" in file.read_text() for file in files):
        assert time.monotonic() < end, "the processes did not start"
        time.sleep(0.02)
    os.kill(process.pid, kind)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == status
    assert "asked to end" in (logs / "one.log").read_text()


def test_a_node_ends_when_its_supervisor_was_killed(bench, root, monkeypatch):
    supervisor = subprocess.Popen(["sleep", "600"])
    monkeypatch.setenv("BID_SUPERVISOR", str(supervisor.pid))
    beats: list[Heartbeat] = []
    bench.node.create_subscription(Heartbeat, "/heartbeat", beats.append, STATE)
    bench.start("safety", {"task": str(root / "config" / "franka_place.yaml")})
    assert bench.until(lambda: beats, LIMIT_S)
    supervisor.kill()
    supervisor.wait()
    status, output = bench.finish("safety", LIMIT_S)
    assert status == 1 and "Traceback" not in output
