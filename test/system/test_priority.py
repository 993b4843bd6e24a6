"""What a process gets of a busy computer, seen from processes of their own."""

import os
import subprocess
import sys

import pytest
from niceness import may_raise

from bid_ros.system.priority import AUTOGROUP

CODE = """
import os
from bid_ros.system.priority import AUTOGROUP, raise_priority
raise_priority({by})
words = AUTOGROUP.read_text().split() if AUTOGROUP.exists() else []
print(os.nice(0), words[-1] if words else "none")
"""


def own_session() -> str | None:
    """Niceness of this process's session; None where there is none (no file, or an empty one)."""
    words = AUTOGROUP.read_text().split() if AUTOGROUP.exists() else []
    return words[-1] if words else None


def niceness(root, by: int, before: int, new_session: bool) -> tuple[int, str]:
    """Niceness of a process and of its session after ``raise_priority(by)``, started with ``before`` steps more."""
    done = subprocess.run(
        ["nice", "-n", str(before), sys.executable, "-c", CODE.format(by=by)],
        start_new_session=new_session,
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
    )
    own, session = done.stdout.split()
    return int(own), session


def test_a_session_gets_the_niceness_of_the_process_that_leads_it(root):
    own, session = niceness(root, 0, before=3, new_session=True)
    assert own == min(19, os.nice(0) + 3)
    assert session in (str(own), "none")


@pytest.mark.skipif(own_session() is None, reason="this session has no niceness of its own")
def test_a_process_in_somebody_else_s_session_leaves_that_alone(root):
    ours = own_session()
    _, session = niceness(root, 0, before=3, new_session=False)
    assert session == ours


@pytest.mark.skipif(not may_raise(2, before=5), reason="this user may not raise a priority")
def test_priority_is_raised_where_that_is_allowed(root):
    own, _ = niceness(root, 2, before=5, new_session=True)
    assert own == min(19, os.nice(0) + 5) - 2


EVERY_THREAD = """
import os, threading
from bid_ros.system.priority import raise_priority
end, lines = threading.Event(), {{}}
early = threading.Thread(target=end.wait)
early.start()
raise_priority(2, every_thread={every})
print(*(os.getpriority(os.PRIO_PROCESS, thread) for thread in (os.getpid(), early.native_id)))
end.set()
"""


@pytest.mark.skipif(not may_raise(2), reason="this user may not raise a priority")
@pytest.mark.parametrize("every", [True, False])
def test_threads_that_run_already_are_raised_where_that_is_asked(root, every):
    done = subprocess.run(
        [sys.executable, "-c", EVERY_THREAD.format(every=every)],
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
    )
    before = os.nice(0)
    assert done.stdout.split() == [str(before - 2), str(before - 2 if every else before)]


@pytest.mark.skipif(may_raise(2, before=5), reason="this user may raise a priority")
def test_without_the_right_everything_stays_as_it_is(root):
    own, _ = niceness(root, 2, before=5, new_session=True)
    assert own == min(19, os.nice(0) + 5)
