"""Formats by name, by what lies at a path, and from other packages."""

from __future__ import annotations

import builtins
import re

import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import install_line
from bid_ros.formats import FORMATS, load_dataset, open_source
from bid_ros.formats.base import format_of

OURS = {"bag", "lerobot_v21", "lerobot_v30", "npz", "robomimic", "zarr"}


def test_every_format_is_found_by_name():
    assert set(FORMATS.names()) >= OURS
    assert {name for name in OURS if FORMATS.find(name).writer is None} == set()


def test_every_format_is_recognised(written, way, kit):
    assert format_of(written(way)) == (kit.EXACT | kit.VIDEO)[way][0]


def test_what_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="none does not exist"):
        open_source(tmp_path / "none")
    with pytest.raises(RecordingError, match="none does not exist"):
        open_source(tmp_path / "none", name="zarr")
    for given in ("lerobot/pusht_image", "https://huggingface.co/datasets/lerobot/pusht_image"):
        with pytest.raises(RecordingError, match=r"exist; .* hf download lerobot/pusht_image --repo-type dataset"):
            open_source(given)
    with pytest.raises(RecordingError, match=r"does not exist$"):
        open_source("test/pusht_image")  # a folder of that name is here
    (tmp_path / "notes.txt").write_text("notes")
    np.savez(tmp_path / "other.npz", other=np.zeros(3))
    with pytest.raises(RecordingError, match=r"other\.npz is no data set of bid: it holds other; valid is what bid"):
        open_source(tmp_path / "other.npz")
    for name in (".", "notes.txt"):
        with pytest.raises(RecordingError, match="is no data set that is known; valid formats are bag, lerobot_v21"):
            open_source(tmp_path / name)
    (tmp_path / "droid" / "1.0.0").mkdir(parents=True)
    (tmp_path / "droid" / "1.0.0" / "droid-train.tfrecord-00000-of-00002").write_bytes(b"")
    with pytest.raises(
        RecordingError, match="droid holds TFRecord files, as RLDS has them, which bid does not read; valid"
    ):
        open_source(tmp_path / "droid")
    with pytest.raises(RecordingError, match="data format 'tfds' does not exist; valid are bag, lerobot_v21"):
        open_source(tmp_path, name="tfds")


@pytest.mark.parametrize(("needing", "package"), [("zarr", "zarr"), ("robomimic", "h5py"), ("lerobot_v30", "av")])
def test_a_missing_package_is_one_sentence_with_the_extra(written, task, monkeypatch, needing, package):
    path, load = written(needing), builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named '{package}'", name=package)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RecordingError, match=rf"needs the extra 'data' .*{re.escape(install_line('data'))}"):
        load_dataset(path, task)


def test_what_was_added_to_episodes_that_changed_since_is_left_out(written, task, dataset):
    import json

    root = written("lerobot_v30_png")
    side = json.loads((root / "meta/bid_ros.json").read_text())
    side["episodes"][1]["rows"] = 7
    (root / "meta/bid_ros.json").write_text(json.dumps(side))
    found = load_dataset(root, task)
    assert found.labels == ("", "", "")
    assert found.seeds.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.actions, dataset.actions)
