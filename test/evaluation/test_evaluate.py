"""Decoders on recorded episodes: the same samples for all, nothing that depends on the others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.cli import main
from bid_ros.core.errors import DecodingError
from bid_ros.evaluation.evaluate import Evaluation, observed
from bid_ros.formats import mapped, open_source
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.recording.dataset import Dataset
from bid_ros.system.folder import find_system

TASK = find_system("franka_place").task
ROWS = 9


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return load_bundle(make_tiny_bundle(tmp_path_factory.mktemp("policy") / "bundle", TASK), TASK)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two episodes in which the tool stays where it is, as the tiny policy asks."""
    random, rows = np.random.default_rng(0), 2 * ROWS
    state = np.tile([0.5, 0.0, 0.3, 1.0, 0, 0, 0, -1.0, 0, 0.04], (rows, 1))
    shape = (rows, *TASK.cameras[0].shape)
    images = {camera.name: random.integers(0, 256, shape, np.uint8) for camera in TASK.cameras}
    vectors = {"tool_position": state[:, :3], "tool_rotation": state[:, 3:9], "gripper_width": state[:, 9:]}
    made = Dataset(
        observations={**images, **vectors},
        actions=state,
        stamps_ns=np.arange(rows, dtype=np.int64) * TASK.dt_ns,
        episode_ends=np.array([ROWS, rows]),
        labels=("clean", "diverse"),
        seeds=np.array([1, 2], dtype=np.uint64),
        task=TASK.name,
        task_signature=TASK.signature(),
    )
    path = tmp_path_factory.mktemp("data") / "set.npz"
    made.save(path)
    return path


def evaluated(bundle, data, *decoders, **options):
    evaluation = Evaluation(TASK, bundle, load_policy(bundle, TASK, "onnx"), decoders, samples=8, **options)
    return list(evaluation.run(mapped(open_source(data, TASK), TASK)))


def test_every_decision_of_every_episode_is_judged(bundle, data):
    episodes = evaluated(bundle, data, "vanilla", "bid")
    assert [(item.label, item.decisions) for item in episodes] == [("clean", ROWS), ("diverse", ROWS)]
    for item in episodes:
        assert set(item.means) == {"vanilla", "bid"}
        assert len(item.errors["bid"]) == min(ROWS, TASK.horizon - TASK.observation_steps + 1)
        assert 0 < item.means["bid"]["best"] <= item.means["bid"]["error"] + 1e-9
        assert item.means["vanilla"]["spread"] == 0.0 < item.means["bid"]["spread"]


def test_a_decoder_has_the_same_numbers_whoever_else_is_compared(bundle, data):
    def numbers(episodes):
        return [{k: v for k, v in item.means["bid"].items() if k != "choose_ms"} for item in episodes]

    alone, beside = evaluated(bundle, data, "bid"), evaluated(bundle, data, "vanilla", "ema", "bid")
    assert numbers(alone) == numbers(beside)
    assert numbers(alone) != numbers(evaluated(bundle, data, "bid", seed=1))


def test_the_first_rows_repeat_the_first_observation(data):
    episode = next(iter(mapped(open_source(data, TASK), TASK).episodes()))
    first, later = observed(episode, 0, TASK), observed(episode, 4, TASK)
    name = TASK.cameras[0].name
    np.testing.assert_array_equal(first.values[name][0], first.values[name][1])
    np.testing.assert_array_equal(later.values[name], episode.observations[name][3:5])
    assert later.stamp_ns - first.stamp_ns == 4 * TASK.dt_ns


def test_the_command_writes_a_table_json_and_a_picture(bundle, data, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["evaluate", "franka_place", str(data), "--bundle", str(bundle.path), "--decoders", "vanilla,bid"]
    assert main([*command, "--samples", "4", "--runtime", "onnx", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["episodes"], found["decisions"], list(found["decoders"])) == (2, 2 * ROWS, ["vanilla", "bid"])
    mean, low, high = found["decoders"]["bid"]["measures"]["error"]
    assert low <= mean <= high
    assert len(json.loads((out / "evaluation.json").read_text())["by_episode"]) == 2
    assert (out / "evaluation.md").read_text().count("| vanilla |") == 1
    assert (out / "evaluation.png").stat().st_size > 5000


def test_an_unknown_decoder_is_one_sentence(bundle, data, capsys):
    with pytest.raises(DecodingError, match="decoder 'best' does not exist; valid are"):
        evaluated(bundle, data, "best")
    command = ["evaluate", "franka_place", str(data), "--bundle", str(bundle.path), "--decoders", " "]
    assert main(command) == 2
    assert "valid is a comma list of one or more" in capsys.readouterr().err
