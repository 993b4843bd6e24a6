"""What a conversion wrote is held against what it read: a writer that errs leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from odd_sets import counted

from bid_ros.core.errors import RecordingError
from bid_ros.formats import FORMATS, Options, convert, open_source
from bid_ros.formats import verify as verifying
from bid_ros.formats.files import write_about


def spoiled(change):
    """Return what makes a writer err: ``change`` is applied to each episode that it gets."""

    def writer(contents, options, made):
        built = made(contents, options)
        write = built.write_part
        built.write_part = lambda episode, folder: write(change(episode), folder)
        return built

    return writer


def other_value(episode):
    state = episode.observations["state"].copy()
    state[2, 1] += 1e-6
    return replace(episode, observations={**episode.observations, "state": state})


def next_picture(episode):
    wrist = np.roll(episode.observations["wrist"], -1, axis=0)
    return replace(episode, observations={**episode.observations, "wrist": wrist})


ERRS = {
    "value": (other_value, "'state' differs from what was read, first in row 2"),
    "action": (
        lambda item: replace(item, actions=item.actions * 2),
        "'action' differs from what was read, first in row",
    ),
    "picture": (next_picture, "'wrist' (differs from what was read|belong to neighbouring rows)"),
}


@pytest.mark.parametrize("err", list(ERRS))
@pytest.mark.parametrize(
    ("name", "images"), [("zarr", "png"), ("robomimic", "png"), ("lerobot_v30", "png"), ("lerobot_v21", "video")]
)
def test_a_writer_that_errs_is_found(tmp_path, monkeypatch, name, images, err):
    change, said = ERRS[err]
    find, spoil = FORMATS.find, spoiled(change)
    form = find(name)
    wrong = replace(form, writer=lambda contents, options: spoil(contents, options, form.writer))
    monkeypatch.setattr(FORMATS, "find", lambda asked: wrong if asked == name else find(asked))
    with pytest.raises(RecordingError, match=said):
        convert(counted(), tmp_path / "set", name, Options(images))
    assert [path.name for path in tmp_path.iterdir()] in ([], [".set.parts"])


def test_an_episode_of_another_text_is_found(tmp_path, monkeypatch):
    def other(episode, folder):
        write_about(replace(episode, text="Drop it."), folder)

    monkeypatch.setattr(import_module("bid_ros.formats.convert"), "write_about", other)
    for name in ("zarr", "robomimic", "lerobot_v30"):
        with pytest.raises(RecordingError, match=r"episode 0: its text is Drop it\., was Pick it\."):
            convert(counted(), tmp_path / name, name, Options("png"))


def test_a_large_data_set_is_sampled_and_all_of_it_on_demand(tmp_path, monkeypatch):
    monkeypatch.setattr(verifying, "SMALL_ROWS", 30)
    source = counted([4] * 20)
    assert convert(source, tmp_path / "some", "zarr").compared == 8
    assert convert(source, tmp_path / "all", "zarr", whole=True).compared == 20
    assert convert(counted(), tmp_path / "small", "zarr").compared == 2


def test_a_report_says_what_changes(tmp_path):
    report = convert(counted(), tmp_path / "set", "lerobot_v30")
    assert report.changed == {"wrist": "H.264, with loss"}
    assert convert(open_source(tmp_path / "set"), tmp_path / "exact", "zarr").changed == {}
