"""Whether results can be written, before long work, and what is said of a full disk after it."""

import os

import pytest
from full_disk import full_disk

from bid_ros.core.errors import BidError
from bid_ros.core.files import check_folder, replace_text


def test_a_folder_that_is_there_or_can_be_made_is_fine(tmp_path):
    check_folder(tmp_path)
    check_folder(tmp_path / "new" / "one")
    assert not (tmp_path / "new").exists(), "nothing is made"


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_in_its_place_is_named(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(BidError, match=r"--out is .*, but .*/file is a file; valid is a folder"):
        check_folder(tmp_path / name)


def test_a_folder_of_somebody_else_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, how: False)
    with pytest.raises(BidError, match=rf"--results is .*, but {tmp_path} cannot be written to; valid is a folder"):
        check_folder(tmp_path / "new", "--results")


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path):
    path = tmp_path / "kept.txt"
    replace_text(path, "old")
    with full_disk(1000), pytest.raises(OSError, match=r"File too large: '.*kept\.txt'"):
        replace_text(path, "new" * 10_000)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
