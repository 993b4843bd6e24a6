"""The tutorial "Your first hour": its commands, in their order, with fewer episodes and steps. A controller drives."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from forked_bid import bid
from gamepad_person import sitting

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "first-hour.md"
COMMAND = re.compile(r"^bid .+", re.M)
# A test has no hour. Nobody clicks on its page: a virtual gamepad drives instead.
SHORTER = {
    "--device page": "--device joy",
    "--episodes 5": "--episodes 1 --seed 3000",
    "--episodes 1 --out hour/drive": "--episodes 1 --seed 3001 --out hour/drive",
    "--steps 300": "--steps 10",
    "--timeout 8": "--timeout 2",
}
LIMIT_S = 180.0  # of one command
DRIVEN = ("teleop", "record")
# Ten steps of training make a policy that may move too fast. Then safety ends the run, and says so with status 3.
STATUSES = {"up": (0, 3)}


def commands() -> list[str]:
    """The commands of the page in their order."""
    return COMMAND.findall(PAGE.read_text())


def shortened(command: str) -> list[str]:
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    return shlex.split(command)[1:]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_every_command_of_the_first_hour_works(ros_domain, tmp_path, patient, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed: dict[str, str] = {}
    assert len(commands()) == 12
    for command in commands():
        words = shortened(command)
        if words[0] in (*DRIVEN, "up"):
            words += ["--parameters", patient]
        if words[0] in DRIVEN:
            with sitting(starts=words[0] == "record"):
                done = bid(*words, limit_s=LIMIT_S)
        else:
            done = bid(*words, limit_s=LIMIT_S)
        assert done.returncode in STATUSES.get(words[0], (0,)), (
            f"{command}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        )
        printed[" ".join(words[:2])] = done.stdout
    hour = tmp_path / "hour"
    assert [row["success"] for row in json.loads((hour / "drive" / "run.json").read_text())["results"]] == [True]
    assert "success" in printed["episodes list"] and (hour / "sheet.png").stat().st_size > 10_000
    with np.load(hour / "dataset.npz") as data:
        assert len(data["episode_ends"]) == 1 and data["episode_ends"][0] > 30
    assert json.loads((hour / "run" / "run.json").read_text())["decisions"] > 0
    assert (hour / "evaluation" / "evaluation.html").stat().st_size > 10_000


def test_the_test_shortens_what_is_on_the_page():
    page = PAGE.read_text()
    assert all(long in page for long in SHORTER), "a change of the page must not make the test long"
