import shutil

import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.curation.catalog import chosen, count_frames, episodes_of, find_bags, split_name
from bid_ros.recording.bag_topics import read_remapped
from bid_ros.recording.reader import BagReader


@pytest.fixture
def bag(make_run, tmp_path):
    run = make_run(episodes=2, seconds=0.5, success=lambda index: index == 1)
    return run.write(tmp_path / "runs" / "one" / "bag")


def test_bags_are_found_in_runs_and_folders_but_not_in_the_trash(bag, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(bag, runs / ".bid_trash" / "000000_bag" / "bag")
    shutil.copy(bag / "bag_0.mcap", runs / "alone.mcap")
    (runs / "text.txt").write_text("no bag")
    assert find_bags([runs]) == [runs / "alone.mcap", bag]
    assert find_bags([bag.parent, bag, str(bag)]) == [bag]


def test_a_path_without_a_bag_says_so(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match=r"none does not exist$"):
        find_bags([tmp_path / "none"])
    with pytest.raises(RecordingError, match=r"empty holds no \.mcap file"):
        find_bags([tmp_path / "empty"])


def test_episodes_and_their_frames(bag):
    with BagReader(bag) as reader:
        first, second = episodes_of(reader)
        assert (first.success, second.success) == (False, True)
        assert (first.outcome, second.outcome) == ("timeout", "success")
        assert first.duration_s == pytest.approx(0.5, abs=0.01) and second.name == f"{bag}:1"
        assert count_frames(reader, [first, second]) == [5, 5]
        assert chosen(reader, 1) == (second,)
        with pytest.raises(RecordingError, match="has no episode 2; valid is 0 to 1"):
            chosen(reader, 2)


def test_names_of_episodes_and_remappings(tmp_path):
    assert split_name("a/bag:12") == (tmp_path.__class__("a/bag"), 12)
    assert split_name("a/bag") == (tmp_path.__class__("a/bag"), None)
    (tmp_path / "odd:3").mkdir()
    assert split_name(str(tmp_path / "odd:3")) == (tmp_path / "odd:3", None)
    assert read_remapped(["arm/status:=/a"]) == {"arm/status": "/a"}
    with pytest.raises(RecordingError, match=r"remapping 'a=b' has an unknown form; valid is TOPIC:=/RECORDED/NAME"):
        read_remapped(["a=b"])
