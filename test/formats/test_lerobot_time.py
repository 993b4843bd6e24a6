"""Time stamps of a LeRobotDataset that disagree with its rate, its videos or its rows: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from odd_sets import change, edit_info, edit_lines, keep, seen, written

from bid_ros.core.errors import RecordingError
from bid_ros.formats import open_source

FIRST = "data/chunk-000/episode_000000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"


def retimed(stamps):
    """Return an edit that gives a table these time stamps, from numbers of rows."""
    return lambda columns: columns.update(timestamp=stamps(np.arange(len(columns["timestamp"]))).tolist())


def held(path):
    """Return notes, and state and pictures of each episode, as numbers of rows."""
    source = open_source(path)
    episodes = list(source.episodes())
    assert [item.rows for item in episodes] == list(source.contents.lengths)
    for item in episodes:
        np.testing.assert_array_equal(item.observations["state"], item.actions)
        assert seen(item.observations["wrist"]) == item.observations["state"][:, 0].tolist()
    return source.contents.notes, [item.observations["state"][:, 0].astype(int).tolist() for item in episodes]


@pytest.mark.parametrize("images", ["png", "video"])
def test_rows_that_come_twice_as_fast_are_resampled(tmp_path, images):
    path = written(tmp_path / "set", images=images)
    change(path / FIRST, retimed(lambda rows: rows * 0.05))
    notes, rows = held(path)
    assert rows == [list(range(0, 16, 2)), list(range(16, 28))]
    assert notes == (
        "the rows of episode 0 are not 1/10 s apart by their timestamp, as fps says: resampled, 8 of 16 rows are taken",
    )


def test_rows_at_uneven_times_are_taken_by_the_nearest(tmp_path):
    path = written(tmp_path / "set", images="png")
    change(path / FIRST, retimed(lambda rows: rows / 15))
    _, rows = held(path)
    np.testing.assert_allclose(np.array(rows[0]) / 15, np.arange(len(rows[0])) / 10, atol=0.034)


@pytest.mark.parametrize("numbering", ["kept", "renewed"])
@pytest.mark.parametrize("images", ["png", "video"])
def test_a_gap_splits_an_episode_and_each_row_keeps_its_picture(tmp_path, images, numbering):
    path = written(tmp_path / "set", images=images)

    def cut(columns):
        keep(columns, [*range(7), *range(11, 16)])
        if numbering == "renewed":
            columns["frame_index"] = list(range(12))

    change(path / FIRST, cut)
    edit_lines(path / "meta/episodes.jsonl", lambda line: line | ({"length": 12} if line["episode_index"] == 0 else {}))
    edit_info(path, total_frames=24)
    notes, rows = held(path)
    assert rows == [list(range(7)), list(range(11, 16)), list(range(16, 28))]
    assert notes == (
        "episode 0 has gaps in its timestamp (the first one: 0.5 s after row 6 of episode 0): read as 2 episodes, "
        "split there",
    )
    episodes = list(open_source(path).episodes())
    assert [item.truncated for item in episodes] == [True, False, False]
    assert [item.seed for item in episodes] == [0, 0, 1]
    assert [int(item.stamps_ns[0]) for item in episodes] == [0, 1_100_000_000, 0]


def test_a_jump_of_seconds_splits_and_a_row_that_stands_alone_is_left_out(tmp_path):
    path = written(tmp_path / "set", images="png")
    change(path / FIRST, retimed(lambda rows: rows / 10 + 3.0 * (rows > 6) + 3.0 * (rows > 7)))
    notes, rows = held(path)
    assert rows[:2] == [list(range(7)), list(range(8, 16))]
    assert "read as 2 episodes, split there, 1 rows that stand alone are left out" in notes[0]


@pytest.mark.parametrize(
    ("stamps", "said"),
    [
        (lambda rows: rows / 10 - 0.5 * (rows > 8), r"from 0\.800 s in row 8 to 0\.400 s in row 9; .* \(1 of 16 rows"),
        (lambda rows: rows * 0.2, r"16 rows are 0\.2 s apart by their timestamp; info\.json says fps 10"),
        (lambda rows: rows * 0.0 + 1.7e9, r"\(15 of 16 rows do not\)"),
        (lambda rows: np.where(rows == 3, np.nan, rows / 10), "timestamp of row 3 is no finite number"),
        (lambda rows: rows * 5.0, "apart by their timestamp"),
    ],
    ids=["backwards", "slow", "epoch", "nan", "apart"],
)
def test_times_that_cannot_be_are_refused(tmp_path, stamps, said):
    path = written(tmp_path / "set", images="png")
    change(path / FIRST, retimed(stamps))
    with pytest.raises(RecordingError, match=said) as raised:
        open_source(path)
    assert "episode 0" in str(raised.value) and "\n" not in str(raised.value)


def test_numbers_of_rows_that_skip_where_times_do_not_are_refused(tmp_path):
    path = written(tmp_path / "set", images="png")
    change(path / FIRST, lambda columns: columns.update(frame_index=[*range(9), *range(14, 21)]))
    with pytest.raises(RecordingError, match="frame_index goes from 8 to 14 at row 9"):
        open_source(path)


def test_frames_that_no_row_explains_are_refused(tmp_path):
    path = written(tmp_path / "set")

    def cut(columns):
        keep(columns, [*range(7), *range(11, 16)])
        columns |= {"frame_index": list(range(12)), "timestamp": [row / 10 for row in range(12)]}

    change(path / FIRST, cut)
    edit_lines(path / "meta/episodes.jsonl", lambda line: line | ({"length": 12} if line["episode_index"] == 0 else {}))
    edit_info(path, total_frames=24)
    with pytest.raises(RecordingError, match=r"has 16 frames for 12 rows, .* nothing says which frames are theirs"):
        list(open_source(path).episodes())


@pytest.mark.parametrize("off", [1, -1, 1.6])
def test_a_begin_that_is_off_by_a_frame_is_counted_by_rows(tmp_path, off):
    path = written(tmp_path / "set", "v30", lengths=(9, 8, 7))

    def drift(columns):
        begins = columns["videos/observation.images.wrist/from_timestamp"]
        begins[1:] = [begin + off / 10 for begin in begins[1:]]

    change(path / EPISODES, drift)
    notes, rows = held(path)
    assert rows == [list(range(9)), list(range(9, 17)), list(range(17, 24))]
    assert notes == (
        f"from_timestamp of 'observation.images.wrist' is off by up to {abs(off):g} frames in 2 of 3 episodes: their "
        "pictures are counted by rows instead",
    )


def test_rows_that_were_deleted_beside_a_shared_video_keep_their_pictures(tmp_path):
    path = written(tmp_path / "set", "v30", lengths=(9, 8, 7))
    rows = [*range(3), *range(6, 24)]
    change(path / "data/chunk-000/file-000.parquet", lambda columns: keep(columns, rows))

    def shorter(columns):
        columns |= {"length": [6, 8, 7], "dataset_from_index": [0, 6, 14], "dataset_to_index": [6, 14, 21]}

    change(path / EPISODES, shorter)
    edit_info(path, total_frames=21)
    _, found = held(path)
    assert found == [list(range(3)), list(range(6, 9)), list(range(9, 17)), list(range(17, 24))]
    change(
        path / EPISODES,
        lambda columns: columns.update({"videos/observation.images.wrist/from_timestamp": [0, 0.5, 1.7]}),
    )
    with pytest.raises(RecordingError, match=r"has 24 frames for 21 rows, .* its episodes overlap or leave frames"):
        open_source(path)
