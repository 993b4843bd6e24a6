"""What ends a test that pytest-timeout cannot end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = """
import signal, time
import pytest

def hang():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # as if it waited in C++
    time.sleep(1000)

@pytest.fixture
def stuck():
    yield
    hang()

def test_hangs():
    hang()

def test_fails_and_hangs_in_its_fixture(stuck):
    assert False

def test_works():
    pass
"""
CONFTEST = """
import deadlock, lanes
pytest_plugins = ["deadlock"]
deadlock.GRACE_S = 1.0

def pytest_xdist_make_scheduler(config, log):
    return lanes.Lanes(config, log)
"""


def test_a_test_that_hangs_in_compiled_code_is_named_and_the_others_run(tmp_path):
    (tmp_path / "test_three.py").write_text(TESTS)
    (tmp_path / "test_last.py").write_text("def test_works_too():\n    pass\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 1\n")
    plugins = ["-p", "xdist", "-p", "pytest_timeout"]  # each worker would import those of other packages for seconds
    command = [sys.executable, "-m", "pytest", *plugins, "-n", "1", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment["PYTHONPATH"] = f"{HERE}{os.pathsep}{HERE.parent}"
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    output = run.stdout + run.stderr
    assert run.returncode == 1 and "replacing crashed worker gw2" not in output, "what crashed was run again"
    for name in ("test_hangs", "test_fails_and_hangs_in_its_fixture"):
        assert f"crashed while running 'test_three.py::{name}'" in output
    assert 'test_three.py", line 7 in hang' in output, "it does not say where"
    assert "2 passed" in output
