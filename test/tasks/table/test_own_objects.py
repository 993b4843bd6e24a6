"""``docs/how-to/own-objects.md``: its commands, typed as they stand there, for each robot."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest
from forked_bid import bid
from tiny_bundle import make_tiny_bundle

from bid_ros.core.topics import body_topic
from bid_ros.recording.dataset import Dataset
from bid_ros.recording.reader import BagReader
from bid_ros.system.folder import find_system


@pytest.fixture
def page(root):
    return (root / "docs" / "how-to" / "own-objects.md").read_text()


@pytest.fixture(params=["franka", "ur"])
def typed(request, page, tmp_path, monkeypatch, ros_domain):
    """Return a function that types a command of the page in a folder with its system, of either robot."""
    monkeypatch.chdir(tmp_path)
    commands = [line.split("  #")[0].strip() for line in page.splitlines() if line.startswith("bid ")]

    def run(command, *more, status=0, **options):
        assert command in commands, f"the page does not say {command!r}"
        words = [request.param if word == "franka" else word for word in shlex.split(command)[1:]]
        done = bid(*words, *more, **options)
        assert done.returncode == status and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("bid new push_cup --robot franka")
    (block,) = re.findall(r'^```yaml title="task.yaml"\n(.*?)^```$', page, re.M | re.S)
    with (tmp_path / "push_cup" / "task.yaml").open("a") as file:
        file.write(block)
    return run


def test_a_push_is_demonstrated_judged_and_rehearsed_in_lockstep(typed, tmp_path):
    typed("bid demos push_cup --lockstep data/push_cup.npz --count push=50", "--count", "push=2")
    found = Dataset.load(tmp_path / "data" / "push_cup.npz")
    assert found.labels == ("push", "push") and found.task == "push_cup"
    tool = found.observations["tool_position"]
    assert np.ptp(tool[:, 0]) > 0.1, "nothing was pushed"
    file = tmp_path / "push_cup" / "task.yaml"
    # The rehearsal only has to end.
    file.write_text(re.sub(r"(?m)^episode_timeout: .*$", "episode_timeout: 2.0", file.read_text()))
    make_tiny_bundle(tmp_path / "push_cup" / "bundle", find_system(tmp_path / "push_cup").task)
    settings = ("--episodes", "1", "--samples", "2", "--json")
    said = typed("bid rehearse push_cup --bundle push_cup/bundle --episodes 20", *settings)
    (run,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert run["results"][0]["outcome"] == "timeout", "the tiny policy stays where it is"


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_push_is_recorded_and_scored_in_the_twin(typed, tmp_path):
    command = "bid up push_cup --driver scripted --styles push --episodes 1 --out runs/push"
    said = typed(command, "--json", limit_s=150.0)
    (run,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert run["results"][0]["outcome"] == "success" and run["task"] == "push_cup"
    with BagReader(tmp_path / "runs" / "push" / "bag") as reader:
        cups = [item.message.pose.position for item in reader.messages([body_topic("cup")])]
    assert cups[0].x < 0.5 and abs(cups[-1].x - 0.6) < 0.015
