"""The evaluation script runs the seeds of a cell that nobody has judged yet, and no other ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "results" / "evaluate.sh"


def left(cell: Path, episodes: int) -> str:
    """Return what the script's function of this name says of a cell."""
    text = SCRIPT.read_text()
    function = text[text.index("left() {") : text.index("\n}\n", text.index("left() {")) + 3]
    command = f"python={sys.executable} first=5000 episodes={episodes}\n{function}\nleft {cell}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def write(cell: Path, part: str, *results: tuple[int, str, str]) -> None:
    (cell / part).mkdir(parents=True)
    said = [{"seed": seed, "outcome_class": kind, "outcome": text} for seed, kind, text in results]
    (cell / part / "run.json").write_text(json.dumps({"results": said}))


@pytest.mark.parametrize(("episodes", "found"), [(6, "5001 2"), (1, ""), (3, "5001 2")])
def test_a_stop_of_safety_is_judged_and_a_failure_of_the_computer_is_run_again(tmp_path, episodes, found):
    write(tmp_path, "a", (5000, "task", "success"), (5001, "infrastructure", "stopped: late"))
    write(tmp_path, "b", (5003, "safety", "stopped: too fast"))
    assert left(tmp_path, episodes) == found


def test_of_an_empty_cell_all_are_left_and_a_run_of_an_earlier_version_is_read(tmp_path):
    assert left(tmp_path, 4) == "5000 4"
    write(tmp_path, "a", (5000, "", "stopped: too fast"), (5001, "", "aborted: shut down"))
    assert left(tmp_path, 4) == "5001 3"
