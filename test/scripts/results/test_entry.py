"""``python scripts/results``: every name stands for something that starts, and says which pages it makes."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys

import pytest


@pytest.fixture
def made(root):
    return runpy.run_path(str(root / "scripts" / "results" / "__main__.py"))["MADE"]


def entry(root, *arguments):
    command = [sys.executable, "scripts/results", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)


def test_the_help_names_everything_and_an_unknown_name_is_refused(root, made):
    told = entry(root, "--help").stdout
    assert all(f"  {name} " in told for name in made)
    done = entry(root, "nothing")
    assert done.returncode == 2 and "invalid choice: 'nothing'" in done.stderr


def test_every_name_is_a_file_and_its_pages_name_it(root, made):
    for name, (pages, _) in made.items():
        file = root / "scripts" / "results" / name.replace("-", "_")
        assert any(path.is_file() for path in (file.with_suffix(".py"), file.with_suffix(".sh"), file / "command.py"))
        first = pages.split(",")[0]
        assert (root / "docs" / first).is_file(), f"{name}: docs/{first}"
        if name not in ("teleop-page", "tables"):
            assert re.search(rf"scripts/results {name}\b", (root / "docs" / first).read_text()), f"{name} in {first}"


def test_bad_input_is_one_sentence(root):
    done = entry(root, "system", "nowhere")
    assert done.returncode == 2 and done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1
