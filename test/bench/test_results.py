from __future__ import annotations

import fcntl
import json
import os

import numpy as np
import pytest
from full_disk import full_disk

from bid_ros.bench.cell import Unit, make_cell
from bid_ros.bench.results import ROWS, Results, encode_row, load_trace, read_rows, write_parquet
from bid_ros.bench.rollout import run_unit
from bid_ros.core.errors import BidError

HEADER = {"steps": 10, "bundle_sha256": "abc"}


@pytest.fixture
def done(setup, batch):
    cell = make_cell(setup.task, decoder="vanilla", horizon=1)
    return run_unit(Unit(cell, 1, (0, 2), 10), setup, batch)


@pytest.fixture
def folder(tmp_path, done):
    results = Results(tmp_path / "out", HEADER)
    results.add(done)
    results.close()
    return tmp_path / "out"


def test_rows_and_paths_are_read_back(folder, done):
    rows = read_rows(folder)
    assert [row["episode"] for row in rows.values()] == [0, 2]
    for row, expected, trace in zip(rows.values(), done.rows, done.traces, strict=True):
        assert {name: row[name] for name in expected} == json.loads(json.dumps(expected))
        found = load_trace(folder, row)
        for name in ("commands", "agents", "blocks"):
            assert np.array_equal(getattr(found, name), getattr(trace, name))


def cut(text):
    return text[:-20]


def flip(text):
    return text.replace('"steps": 10', '"steps": 11', 1)


def garbage(text):
    return text + "\0\0\0\n"


def other(text):
    return text + '{"score": 1}\n'


@pytest.mark.parametrize(("damage", "line"), [(cut, 2), (flip, 1), (garbage, 3), (other, 3)])
def test_damaged_results_are_refused_and_left_alone(folder, damage, line):
    path = folder / ROWS
    path.write_text(damage(path.read_text()))
    before = {item: item.read_bytes() for item in folder.rglob("*") if item.is_file()}
    with pytest.raises(BidError, match=rf"damaged in line {line}, nothing was changed"):
        Results(folder, HEADER)
    assert {item: item.read_bytes() for item in folder.rglob("*") if item.is_file()} == before


def test_results_of_another_policy_are_not_mixed_in(folder):
    with pytest.raises(BidError, match="made with bundle_sha256 'abc', not 'def'"):
        Results(folder, {**HEADER, "bundle_sha256": "def"})


def test_a_damaged_header_is_refused(folder):
    (folder / "bench.json").write_text("{")
    with pytest.raises(BidError, match=r"bench\.json cannot be read"):
        Results(folder, HEADER)


def test_two_benches_do_not_write_to_one_folder(folder):
    first = Results(folder, HEADER)
    with pytest.raises(BidError, match="another bench"):
        Results(folder, HEADER)
    first.close()
    Results(folder, HEADER).close()


def test_what_another_bench_wrote_until_the_folder_was_locked_is_read(folder, monkeypatch):
    found, lock = read_rows(folder), fcntl.flock

    def late(file, how):
        row = next(iter(found.values()))
        with (folder / ROWS).open("a") as stream:
            stream.write(encode_row({**row, "episode": 7}))
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    results = Results(folder, HEADER)
    results.close()
    assert [key[2] for key in results.rows] == [0, 2, 7]


def test_a_write_in_pieces_is_whole(folder, done, monkeypatch):
    before, write = (folder / ROWS).read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:100]))
    results = Results(folder, HEADER)
    results.add(done)
    results.close()
    assert (folder / ROWS).read_bytes() == 2 * before


def test_a_disk_that_gets_full_cuts_no_line(folder, done):
    before, size = read_rows(folder), (folder / ROWS).stat().st_size
    results = Results(folder, HEADER)
    with full_disk(size + 100), pytest.raises(OSError, match=r"File too large: '.*episodes\.jsonl'"):
        results.add(done)
    results.close()
    assert read_rows(folder) == before


def test_a_missing_path_is_said(folder):
    row = next(iter(read_rows(folder).values()))
    with pytest.raises(BidError, match="cannot be read"):
        load_trace(folder, {**row, "trace": "none.npz"})


def test_a_path_that_was_cut_off_is_said_in_one_line(folder):
    row = next(iter(read_rows(folder).values()))
    path = folder / "traces" / row["trace"]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(BidError, match="cannot be read") as raised:
        load_trace(folder, row)
    assert "\n" not in str(raised.value)


def test_parquet_has_a_column_for_every_setting(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = read_rows(folder)
    table = parquet.read_table(write_parquet(folder, rows)).to_pylist()
    assert [(row["decoder"], row["episode"], row["steps"]) for row in table] == [("vanilla", 0, 10), ("vanilla", 2, 10)]


def test_parquet_has_a_setting_that_the_first_row_is_older_than(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = read_rows(folder)
    first, second = rows.values()
    del first["cell"]["agreement"]
    second["cell"]["agreement"] = 0.5
    table = parquet.read_table(write_parquet(folder, rows)).to_pylist()
    assert [row["agreement"] for row in table] == [None, 0.5]


def test_results_with_a_correction_are_not_mixed_with_those_without(folder, tmp_path, done):
    with pytest.raises(BidError, match="made with correction_sha256 None, not 'abc'"):
        Results(folder, {**HEADER, "correction_sha256": "abc"})
    Results(folder, {**HEADER, "correction_sha256": None}).close()  # the folder is older than the setting
    corrected = Results(tmp_path / "corrected", {**HEADER, "correction_sha256": "abc"})
    corrected.add(done)
    corrected.close()
    with pytest.raises(BidError, match="made with correction_sha256 'abc', not None"):
        Results(tmp_path / "corrected", {**HEADER, "correction_sha256": None})


def test_results_of_two_versions_of_a_simulator_are_not_mixed(tmp_path, done):
    before = {**HEADER, "simulator": "robosuite 1.5.1, mujoco 3.3.7"}
    results = Results(tmp_path, before)
    results.add(done)
    results.close()
    with pytest.raises(
        BidError, match=r"made with simulator 'robosuite 1\.5\.1, mujoco 3\.3\.7', not 'robosuite 1\.5\.2, "
    ):
        Results(tmp_path, {**HEADER, "simulator": "robosuite 1.5.2, mujoco 3.3.7"})
    again = Results(tmp_path, before)
    again.close()
    assert not again.unsaid


def test_results_that_are_older_than_the_name_of_their_simulator_go_on(folder):
    results = Results(folder, {**HEADER, "simulator": "robosuite 1.5.2, mujoco 3.3.7"})
    results.close()
    assert results.unsaid == ["simulator"]
