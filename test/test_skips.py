"""What CI does with a test that is left out, seen from a run of pytest with such tests."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CONFTEST = """
import pytest
from skips import fail_if_forbidden

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    fail_if_forbidden(report)
    return report

@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    fail_if_forbidden(report)
    return report
"""
TESTS = """
import pytest

@pytest.mark.skipif(True, reason="no Chromium")
def test_a_browser(): ...

@pytest.mark.skipif(True, reason="only root may lower the niceness")
def test_of_root(): ...

@pytest.mark.xfail(reason="a known defect")
def test_a_defect(): raise AssertionError
"""
FILE = "import pytest\npytest.importorskip('no_module_has_this_name', reason='a library is missing')\n"


@pytest.fixture
def tests(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path


def outcome(folder, root, ci: str) -> tuple[int, str]:
    """Run the tests; return the exit status and what pytest said."""
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(root / "test")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_ci_fails_a_test_that_is_left_out_without_a_valid_reason(tests, root):
    status, said = outcome(tests, root, "true")
    assert status == 1 and "1 skipped, 1 xfailed, 1 error" in said, said
    assert "left out where CI=true: no Chromium; valid reasons are in test/skips.py" in said
    assert outcome(tests, root, "")[0] == 0, "whoever has no browser may leave it out"


def test_ci_fails_a_file_whose_library_is_missing(tests, root):
    (tests / "test_more.py").write_text(FILE)
    status, said = outcome(tests, root, "true")
    assert status != 0 and "left out where CI=true" in said and "a library is missing" in said, said
    assert "error" in said.splitlines()[-1]
