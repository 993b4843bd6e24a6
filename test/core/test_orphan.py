import os
import signal
import subprocess
import sys
import time

CHILD = """
import os, signal, sys
from bid_ros.core.orphan import wake_when_orphaned
if sys.argv[1] == "woken":
    wake_when_orphaned()
print(os.getpid(), flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
print("ended in order", flush=True)
"""
# Its child inherits the standard output, so that its last words arrive when this process is dead.
PARENT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {CHILD!r}, *sys.argv[1:]])
time.sleep(600)
"""
LIMIT_S = 20.0


def frozen_orphan(kind: str) -> tuple[int, subprocess.Popen[str]]:
    """Freeze a child and kill its parent; return the child's id, and the dead parent with the child's output."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, kind], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    end = time.monotonic() + LIMIT_S
    while state(child) != "T" and time.monotonic() < end:
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    return child, parent


def state(process: int) -> str:
    """Letter of a process's state, as in /proc."""
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
        return file.read().rsplit(")", 1)[1].split()[0]


def test_a_frozen_process_whose_parent_was_killed_goes_on_and_ends():
    _, parent = frozen_orphan("woken")
    assert parent.stdout.read() == "ended in order\n"


def test_without_it_nobody_wakes_the_process():
    child, parent = frozen_orphan("left")
    time.sleep(0.1)
    assert state(child) == "T"
    os.kill(child, signal.SIGCONT)
    assert parent.stdout.read() == "ended in order\n"
