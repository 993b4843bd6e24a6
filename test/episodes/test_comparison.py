import json

import cv2
import numpy as np
import pytest

from bid_ros.core.errors import BidError
from bid_ros.episodes.comparison import collect, success_table


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
    assert rows(success_table([path]))["bid, N = 16", "static"][0] == "1 of 1"


def test_open_loop_is_a_row_of_its_own(run):
    content = rows(success_table([run("vanilla", [1]), run("vanilla", [0], action_horizon=15)]))
    assert set(content) == {("vanilla, N = 16", "static"), ("vanilla, N = 16, h = 15", "static")}


def test_the_difference_to_bid_uses_the_episodes_both_have(run):
    table = success_table([run("bid", [1, 1, 1, 1]), run("ema", [0, 0, 1, 1, 1, 1], first_seed=2), run("x", [1], 0.03)])
    content = rows(table)
    assert content["ema, N = 16", "static"][3] == "+100 (+100 to +100), 2 episodes"
    assert content["bid, N = 16", "static"][3] == ""
    assert content["x, N = 16", "3 cm/s"][3] == ""


def test_the_chart_has_a_bar_for_every_cell(run, tmp_path):
    plot = tmp_path / "deep" / "chart.png"
    success_table([run("bid", [1] * 9 + [0]), run("bid", [1] * 5 + [0] * 5, 0.03), run("ema", [0, 1], 0.03)], plot)
    picture = cv2.imread(str(plot)).astype(int)
    blue = np.abs(picture - [0xDB, 0x6F, 0x2F]).max(axis=2) < 8
    orange = np.abs(picture - [0x24, 0x8A, 0xF0]).max(axis=2) < 8
    assert blue.any(axis=0).sum() > 50
    assert orange.any(axis=0).sum() > 100
    assert blue.any(axis=1).sum() > orange.any(axis=1).sum()


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
