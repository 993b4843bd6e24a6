import pytest
from curation.conftest import files, indices

from bid_ros.core.errors import RecordingError
from bid_ros.curation.catalog import find_bags
from bid_ros.curation.trash import TRASH, delete, restore, trashed


@pytest.fixture
def bag(make_run, tmp_path):
    return make_run(episodes=3, seconds=0.5).write(tmp_path / "bag")


def test_what_is_deleted_comes_back_step_by_step_byte_by_byte(bag, tmp_path):
    before = files(bag)
    delete(bag, 1)
    assert indices(bag) == [0, 2] and (bag / "bag_0.mcap").is_file()
    delete(bag, 0)
    assert indices(bag) == [2]
    delete(bag, 0)  # the last one: the whole bag
    assert not bag.exists() and [item.number for item in trashed(tmp_path)] == [1, 0, None]
    with pytest.raises(RecordingError):
        find_bags([tmp_path])
    assert [indices(bag) for _ in range(3) if restore(bag)] == [[2], [0, 2], [0, 1, 2]]
    assert files(bag) == before
    assert not (tmp_path / TRASH).exists()


def test_a_bag_that_was_changed_since_is_not_overwritten(bag, tmp_path):
    delete(bag, 1)
    (bag / "note.txt").write_text("mine")
    with pytest.raises(RecordingError, match="exists again, or was changed after the deletion"):
        restore(bag)
    assert (bag / "note.txt").is_file() and indices(bag) == [0, 2]


def test_nothing_in_the_trash_and_no_such_episode(bag, tmp_path):
    with pytest.raises(RecordingError, match=r"bag none is not in the trash .*; it is empty"):
        restore(tmp_path / "none")
    with pytest.raises(RecordingError, match="has no episode 5; valid is 0 to 2"):
        delete(bag, 5)
    assert not (tmp_path / TRASH).exists() and indices(bag) == [0, 1, 2]
