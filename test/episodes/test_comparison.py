import json

import cv2
import numpy as np
import pytest
from scipy.stats import binomtest

from bid_ros.core.errors import BidError
from bid_ros.core.plot_style import BLUE, ORANGE, lighter
from bid_ros.episodes.comparison import collect, paired_difference, success_table, wilson_interval


@pytest.fixture
def run(tmp_path):
    """Write a run.json of a decoder whose episodes succeed as given."""

    def write(decoder, outcomes, moving=0.0, first_seed=0, **extra):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        results = [{"seed": first_seed + i, "success": bool(value)} for i, value in enumerate(outcomes)]
        about = {"task": "franka_place", "decoder": decoder, "samples": 16, "moving": moving}
        path.write_text(json.dumps({**about, "results": results, **extra}))
        return path

    return write


def rows(table):
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {(row[0], row[1]): row[2:] for row in cells}


def test_former_names_of_decoders_are_read(run):
    rows = [run("bid-paper", [True]), run("bid:variant=paper", [False], first_seed=5), run("ema then receding", [True])]
    assert [cell.decoder for cell in collect(rows)] == ["bid:variant=paper, N = 16", "ema then vanilla, N = 16"]


def test_one_row_per_decoder_and_speed_with_its_interval(run):
    table = success_table([run("bid", [1] * 16 + [0] * 4), run("bid", [1] * 10 + [0] * 10, 0.03), run("ema", [0] * 20)])
    assert table.splitlines()[0].count("|") == table.splitlines()[-1].count("|")
    content = rows(table)
    assert content["bid, N = 16", "static"][:3] == ["16 of 20", "80%", "58% to 92%"]
    assert content["bid, N = 16", "3 cm/s"][:2] == ["10 of 20", "50%"]
    assert content["ema, N = 16", "static"][:3] == ["0 of 20", "0%", "0% to 16%"]


def test_runs_of_one_kind_are_added_up(run):
    table = success_table([run("bid", [1, 1]), run("bid", [0, 0], first_seed=2), run("bid", [1], first_seed=0)])
    assert rows(table)["bid, N = 16", "static"][0] == "3 of 5"


def test_what_was_measured_elsewhere_is_a_row_of_its_own(run):
    content = rows(success_table([run("bid", [1]), run("bid", [0, 0], hardware="rehearsal")]))
    assert content["bid, N = 16", "static"][0] == "1 of 1"
    assert content["bid, N = 16, rehearsal", "static"][0] == "0 of 2"


def test_an_interrupted_episode_is_no_failure(run):
    path = run("bid", [1, 0])
    content = json.loads(path.read_text())
    content["results"][1]["outcome"] = "aborted: shut down"
    path.write_text(json.dumps(content))
    found = rows(success_table([path]))["bid, N = 16", "static"]
    assert (found[0], found[-1]) == ("1 of 1", "1")


def test_a_camera_that_failed_is_no_failure_of_the_decoder_and_a_refused_chunk_is_one(run):
    path = run("bid", [1, 0, 0])
    content = json.loads(path.read_text())
    content["results"][1] |= {"outcome": "stopped: no frame", "outcome_class": "infrastructure"}
    content["results"][2] |= {"outcome": "stopped: too fast", "outcome_class": "safety"}
    path.write_text(json.dumps(content))
    found = rows(success_table([path]))["bid, N = 16", "static"]
    assert (found[0], found[-1]) == ("1 of 2", "1")
    content["results"][0]["outcome_class"] = "infrastructure"
    path.write_text(json.dumps(content))
    found = rows(success_table([path]))["bid, N = 16", "static"]
    assert (found[0], found[-1]) == ("0 of 1", "2, 1 with success"), "whichever way it ended"


def test_open_loop_is_a_row_of_its_own(run):
    content = rows(success_table([run("vanilla", [1]), run("vanilla", [0], action_horizon=15)]))
    assert set(content) == {("vanilla, N = 16", "static"), ("vanilla, N = 16, h = 15", "static")}


def test_the_difference_to_bid_uses_the_episodes_both_have(run):
    table = success_table([run("bid", [1, 1, 1, 1]), run("ema", [0, 0, 1, 1, 1, 1], first_seed=2), run("x", [1], 0.03)])
    content = rows(table)
    assert content["ema, N = 16", "static"][3] == "+100 (+100 to +100), 2 episodes"
    assert content["bid, N = 16", "static"][3] == ""
    assert content["x, N = 16", "3 cm/s"][3] == ""


def test_the_chart_has_a_bar_in_its_decoder_s_colour_for_every_cell(run, tmp_path):
    plot = tmp_path / "deep" / "chart.png"
    success_table([run("bid", [1] * 9 + [0]), run("bid", [1] * 5 + [0] * 5, 0.03), run("ema", [0, 1], 0.03)], plot)
    picture = cv2.imread(str(plot)).astype(int)[:, :, ::-1]

    def size(color):
        """Height and width in px of what has a colour."""
        parts = [int(color[place : place + 2], 16) for place in (1, 3, 5)]
        found = np.abs(picture - parts).max(axis=2) < 4
        return [int(found.any(axis=axis).sum()) for axis in (1, 0)]

    still, moving, other = size(BLUE), size(lighter(BLUE, 0.6)), size(lighter(ORANGE, 0.6))
    assert min(still[1], moving[1], other[1]) > 30
    assert moving[0] == pytest.approx(other[0], abs=3), "both succeeded in half of their episodes"
    assert still[0] == pytest.approx(moving[0] * 9 / 5, rel=0.05)


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"decoder": "bid", "samples": 16, "moving": 0, "results": [{}]}']
)
def test_a_file_that_is_no_run_is_one_sentence(tmp_path, content):
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(BidError, match=r"is no run\.json") as caught:
        success_table([path])
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_and_no_file_at_all(tmp_path):
    with pytest.raises(BidError, match=r"none\.json cannot be read: No such file"):
        success_table([tmp_path / "none.json"])
    with pytest.raises(BidError, match="no run to compare"):
        success_table([])


def test_runs_of_different_tasks_are_not_added_up(run):
    with pytest.raises(BidError, match=r"'franka_place' .* and 'ur5_pick' .*; valid are runs of one task"):
        success_table([run("bid", [1, 1]), run("bid", [0], task="ur5_pick")])


@pytest.mark.parametrize(("successes", "episodes"), [(0, 1), (1, 1), (0, 20), (13, 20), (20, 20), (450, 1000)])
def test_wilson_agrees_with_scipy(successes, episodes):
    expected = binomtest(successes, episodes).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, episodes) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_ends_are_exact_and_no_episodes_mean_no_knowledge():
    assert wilson_interval(0, 20)[0] == 0.0
    assert wilson_interval(20, 20)[1] == 1.0
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("arguments", "words"), [((3, 2), "3 successes of 2"), ((-1, 2), "-1 succ")])
def test_wilson_refuses_the_impossible(arguments, words):
    with pytest.raises(BidError, match=words):
        wilson_interval(*arguments)


def test_paired_difference_has_the_mean_and_is_seeded():
    first, second = [1, 1, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0, 0, 1]
    result = paired_difference(first, second, seed=3)
    assert result[0] == pytest.approx(3 / 8)
    assert result[1] < 3 / 8 < result[2]
    assert result == paired_difference(first, second, seed=3)
    assert paired_difference(second, first, seed=3)[0] == pytest.approx(-3 / 8)


def test_pairing_cancels_what_both_share():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 10, 40)
    _, low, high = paired_difference(hard + 1.0, hard)
    assert low == pytest.approx(1.0) and high == pytest.approx(1.0)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for trial in range(200):
        a, b = rng.random(40) < 0.8, rng.random(40) < 0.6
        _, low, high = paired_difference(a, b, seed=trial, resamples=500)
        covered += low <= 0.2 <= high
    assert 0.88 <= covered / 200 <= 0.99


@pytest.mark.parametrize(("first", "second"), [([], []), ([1], [1, 0]), ([[1]], [[0]])])
def test_refuses_scores_that_are_no_pairs(first, second):
    with pytest.raises(BidError, match="valid is twice the same"):
        paired_difference(first, second)
