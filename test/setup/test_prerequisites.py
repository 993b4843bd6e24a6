"""What a computer must have before `make run`: the README's list, set-up's own, and what set-up says where it lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "scripts/setup.sh"
# What set-up's own first lines call.
TOOLS = ("bash", "dirname", "uname", "id", "python3", "printf", "env")


def set_up(tools: Path, *variables: str) -> subprocess.CompletedProcess[str]:
    """Call set-up where only the commands of a folder are found."""
    given = dict(text.split("=", 1) for text in variables)
    env = {"PATH": str(tools), "HOME": str(tools), **given}
    command = ["bash", SETUP, tools / "venv", "run"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def tools(tmp_path) -> Path:
    """A folder with few commands; python3 is the interpreter of these tests."""
    for name in TOOLS:
        found = sys.executable if name == "python3" else shutil.which(name)
        assert found, name
        (tmp_path / name).symlink_to(os.path.realpath(found))
    return tmp_path


def test_without_tools_and_apt_set_up_says_the_packages_in_one_sentence(tools):
    done = set_up(tools)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert re.match(r"error: missing cmake g\+\+.*; install with: sudo apt-get install cmake g\+\+", done.stderr)
    assert not (tools / "venv").exists()


def test_another_python_is_refused_with_those_that_are_valid(tools):
    done = set_up(tools, "PYTHON=/bin/false")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is not supported; valid are Python 3.11 and 3.12 (set PYTHON=...)" in done.stderr


def test_a_command_that_is_silent_for_long_says_that_it_runs_and_keeps_its_status():
    words = [ROOT / "scripts/telling.sh", "building", "bash", "-c", "read -t 0.35 <> <(:) ; echo done; exit 7"]
    done = subprocess.run(words, env={**os.environ, "TELL_S": "0.1"}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "done\n")
    lines = done.stderr.splitlines()
    assert len(lines) >= 2 and all(re.fullmatch(r"building: \d+ s", line) for line in lines)


def packages_of(text: str) -> set[str]:
    (line,) = re.findall(r"^sudo apt-get install (.*)$", text, re.MULTILINE)
    return set(line.split())


def test_the_list_of_the_readme_is_what_set_up_asks_for():
    readme = packages_of((ROOT / "README.md").read_text())
    assert packages_of((ROOT / "docs/tutorial/first-hour.md").read_text()) == readme
    script = SETUP.read_text()
    asked = {name.replace("$version", "3") for name in re.findall(r'lacks "?([\w$.+-]+\w|g\+\+)"?', script)}
    asked = {re.sub(r"^python3-", "python3-", name) for name in asked}
    asked |= set(re.search(r"for package in (.*?);", script).group(1).split())
    # libusb is of RealSense cameras, hidapi of tests alone.
    assert asked - {"libusb-1.0-0", "libhidapi-hidraw0", "$package"} == readme - {"git", "make", "python3"}
