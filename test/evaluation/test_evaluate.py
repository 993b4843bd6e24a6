"""Decoders on recorded episodes: the same samples for all, nothing that depends on the others."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from evaluated_data import ROWS, TASK, dataset
from shared_files import shared_file
from tiny_act import make_tiny_act
from tiny_bundle import make_tiny_bundle

from bid_ros.cli import main
from bid_ros.core.errors import DecodingError
from bid_ros.core.observation import History
from bid_ros.core.settings import parse_settings
from bid_ros.core.task import load_task
from bid_ros.evaluation.evaluate import Evaluation, episode_key, observed
from bid_ros.evaluation.measures import MEASURES
from bid_ros.formats import mapped, open_source
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.spaces.config import Space

STEPS = TASK.horizon - TASK.observation_steps + 1
TIMES = ("choose_ms", "decision_ms")


def judged(bundle, data, *decoders, task=TASK, **options):
    loaded = load_bundle(bundle, TASK)
    evaluation = Evaluation(task, loaded, load_policy(loaded, TASK, "onnx"), decoders, samples=8, **options)
    return [evaluation.judge(episode) for episode in mapped(open_source(data, TASK), TASK).episodes()]


def numbers(episodes, decoder):
    return [{k: v for k, v in item.means[decoder].items() if k not in TIMES} for item in episodes]


def test_every_decision_of_every_episode_is_judged(bundle, data):
    episodes = judged(bundle, data, "vanilla", "bid")
    assert [(item.label, item.decisions) for item in episodes] == [("clean", ROWS), ("diverse", ROWS)]
    for item in episodes:
        assert set(item.means) == {"vanilla", "bid"}
        assert set(item.means["bid"]) == set(MEASURES)
        assert len(item.errors["bid"]) == min(ROWS, STEPS)
        assert 0 < item.means["bid"]["best"] <= item.means["bid"]["error"] + 1e-9
        assert item.means["vanilla"]["spread"] == 0.0 < item.means["bid"]["spread"]
        assert (item.jerk, item.means["vanilla"]["jerk"] > 0) == (0.0, True), "the tool stood still"
        assert item.policy["jerk"] == item.means["vanilla"]["jerk"], "vanilla is one sample at every step"
        same = {name: item.means["bid"][name] for name in item.policy} | {"jerk": item.policy["jerk"]}
        assert item.policy == pytest.approx(same, rel=0.1), "BID leaves out what safety would refuse, no more"


def test_candidates_of_checkpoints_are_as_many_as_there_are(data, tmp_path):
    """No camera can be observed by the tiny policy, so its space leaves them out."""
    parts = [{"feature": "tool_position"}, {"feature": "tool_rotation"}, {"feature": "gripper_width"}]
    space = parse_settings(Space, {"observation": [{"name": "state", "columns": parts}]}, "space")
    folder = tmp_path / "act"
    make_tiny_act(folder, TASK, 3, space=space)
    for item in judged(folder, data, "vanilla", "bid"):
        assert item.means["vanilla"]["spread"] == 0.0 < item.means["bid"]["spread"]
        assert item.means["bid"]["gain"] == pytest.approx(item.means["bid"]["random"] - item.means["bid"]["error"])


def test_a_decoder_has_the_same_numbers_whoever_else_is_compared(bundle, data):
    alone, beside = judged(bundle, data, "bid"), judged(bundle, data, "vanilla", "ema", "bid")
    assert numbers(alone, "bid") == numbers(beside, "bid")
    assert numbers(alone, "bid") != numbers(judged(bundle, data, "bid", seed=1), "bid")


def test_an_episode_has_the_same_numbers_wherever_it_stands(bundle, data, tmp_path):
    dataset([2]).save(tmp_path / "second.npz")
    assert (
        numbers(judged(bundle, tmp_path / "second.npz", "bid"), "bid")
        == numbers(judged(bundle, data, "bid"), "bid")[1:]
    )


def test_a_choice_that_safety_would_stop_is_counted(bundle, data):
    def refused(limits):
        (first, _) = judged(bundle, data, "vanilla", task=replace(TASK, limits=limits))
        return first.means["vanilla"]["refused"]

    wide = replace(TASK.limits, max_speed=1e6, max_acceleration=1e6, max_jerk=1e9, workspace_min=(-99, -99, -99))
    wide = replace(wide, workspace_max=(99, 99, 99), max_tilt=3.2, max_turn_rate=1e6, max_turn_acceleration=1e6)
    wide = replace(wide, max_gripper_rate=1e6)
    assert refused(wide) == 0.0
    assert refused(replace(wide, max_speed=1e-6)) == 1.0


def test_where_no_safety_node_keeps_limits_nothing_is_refused_and_every_sample_may_be_chosen(bundle, data):
    (usual, _) = judged(bundle, data, "bid", task=TASK, limited=False)
    for speed in (1e-6, 0.5):
        slow = replace(TASK, limits=replace(TASK.limits, max_speed=speed))
        (free, _) = judged(bundle, data, "bid", task=slow, limited=False)
        assert numbers([free], "bid") == numbers([usual], "bid") and "refused" not in free.means["bid"]


def test_a_policy_that_wants_more_steps_is_given_them(data, tmp_path):
    """The tiny policy looks at the newest vectors and at the mean of all images, which are alike here."""
    deep = make_tiny_bundle(tmp_path / "deep", TASK, steps=5)
    assert load_bundle(deep, TASK).history(TASK).steps == 5
    (first, _), (other, _) = (
        judged(folder, data, "bid") for folder in (deep, make_tiny_bundle(tmp_path / "two", TASK))
    )
    assert first.decisions == ROWS
    assert first.means["bid"]["error"] == pytest.approx(other.means["bid"]["error"], abs=0.01)


def test_steps_of_another_rate_are_the_rows_nearest_to_them(data):
    episode = next(iter(mapped(open_source(data, TASK), TASK).episodes()))
    seen = observed(episode, 4, TASK, History(4, TASK.dt_ns // 2)).values["tool_position"]
    np.testing.assert_array_equal(seen, episode.observations["tool_position"][[2, 3, 4, 4]])


def test_the_key_of_an_episode_is_that_of_its_content(data):
    first, second = (episode_key(item) for item in mapped(open_source(data, TASK), TASK).episodes())
    (again,) = (episode_key(item) for item in mapped(open_source(data, TASK), TASK).episodes(1))
    assert first != second == again


def test_the_first_rows_repeat_the_first_observation(data):
    episode = next(iter(mapped(open_source(data, TASK), TASK).episodes()))
    first, later = observed(episode, 0, TASK), observed(episode, 4, TASK)
    name = TASK.cameras[0].name
    np.testing.assert_array_equal(first.values[name][0], first.values[name][1])
    np.testing.assert_array_equal(later.values[name], episode.observations[name][3:5])
    assert later.stamp_ns - first.stamp_ns == 4 * TASK.dt_ns


def test_the_command_writes_a_table_json_a_picture_and_a_page(bundle, data, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["evaluate", "franka_place", str(data), "--bundle", str(bundle), "--decoder", "vanilla,bid"]
    assert main([*command, "--samples", "4", "--runtime", "onnx", "--out", str(out), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["episodes"], found["decisions"], list(found["decoders"])) == (2, 2 * ROWS, ["vanilla", "bid"])
    mean, low, high = found["decoders"]["bid"]["measures"]["error"]
    assert low <= mean <= high
    assert found == json.loads((out / "evaluation.json").read_text()) and len(found["by_episode"]) == 2
    assert (out / "evaluation.md").read_text().startswith("2 episodes (2 unknown), 18 decisions of each decoder")
    assert (out / "evaluation.png").stat().st_size > 5000
    assert "2 episodes x 2 decoders" in said.err
    assert "decisions/s" in said.err
    assert main([*command, "--samples", "4", "--runtime", "onnx", "--out", str(out), "--episodes", "1"]) == 0
    said = capsys.readouterr()
    assert "1 episodes x 2 decoders" in said.err
    assert "1 episodes from an earlier run" in said.err


def test_rows_that_are_resampled_are_said(tmp_path, capsys):
    data, task = shared_file("cases", "c02_timestamps_20hz_info_10hz"), shared_file("cases", "odd.task.yaml")
    bundle = make_tiny_bundle(tmp_path / "bundle", load_task(task))
    command = ["evaluate", str(task), str(data), "--bundle", str(bundle), "--decoder", "vanilla", "--runtime", "onnx"]
    assert main([*command, "--out", str(tmp_path / "out"), "--json"]) == 0
    said = capsys.readouterr()
    sentence = "are not 1/10 s apart by their timestamp, as fps says: resampled, 28 of 55 rows are taken"
    assert sentence in said.err and sentence in json.loads(said.out)["read_otherwise"][0]


@pytest.mark.parametrize(
    ("system", "options", "sentence"),
    [
        ("franka_place", ["--decoder", " "], "valid is a comma list of one or more"),
        ("franka_place", ["--episodes", "-1"], "--episodes is -1; valid is 0 or more"),
        ("franka_place", ["--seed", "-1"], "--seed is -1; valid is 0 or more"),
        ("franka_place", ["--workers", "0"], "workers is 0; valid is 1 to 1024"),
        ("franka_place", ["--out", __file__], "test_evaluate.py is a file; valid is a folder"),
        ("franka_place", ["--decoder", "bid:agreement=0.3"], "decides at every row; valid is one without agreement"),
        ("nowhere", [], "valid are a system's folder, franka_place, ur5_pick, a task file, or pusht"),
    ],
)
def test_a_wrong_argument_is_one_sentence(bundle, data, capsys, system, options, sentence):
    assert main(["evaluate", system, str(data), "--bundle", str(bundle), *options]) == 2
    assert sentence in capsys.readouterr().err


def test_a_number_that_is_none_is_named_and_nothing_is_judged(bundle, tmp_path, capsys):
    made = dataset([1, 2])
    actions = made.actions.copy()  # what is observed is the same array
    actions[12, 4] = np.nan
    replace(made, actions=actions).save(tmp_path / "set.npz")
    command = ["evaluate", "franka_place", str(tmp_path / "set.npz"), "--bundle", str(bundle)]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "episode 1: 'action' is nan in row 3" in capsys.readouterr().err
    assert not (tmp_path / "out" / "evaluation.json").exists()


def test_an_unknown_decoder_is_one_sentence(bundle, data):
    with pytest.raises(DecodingError, match="decoder 'best' does not exist; valid are"):
        judged(bundle, data, "best")
