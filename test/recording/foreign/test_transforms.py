"""Poses along a tree of frames: which transforms are joined, and where there is a sample."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.bag_mapping import place_of
from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature
from bid_ros.recording.definitions import Encoder
from bid_ros.recording.foreign.transforms import frames_of, is_tree, read_transforms, stamped_ns
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter

MS = 1_000_000
BEGIN = 1_700_000_000_000 * MS
TYPE = "tf2_msgs/msg/TFMessage"
PLACE = Feature("tool_position", "position", (3,))
TURN = Feature("tool_rotation", "rotation_6d", (6,))


def transform(at_ms, frame, child, x=0.0, turn=(0.0, 0.0, 0.0, 1.0)):
    sec, nanosec = divmod(BEGIN + at_ms * MS, 1000 * MS)
    pose = {"translation": {"x": x}, "rotation": dict(zip("xyzw", turn, strict=True))}
    head = {"stamp": {"sec": sec, "nanosec": nanosec}, "frame_id": frame}
    return {"header": head, "child_frame_id": child, "transform": pose}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes transforms, and opens the bag."""

    def write(moving, fixed=(), received_ms=0, topics=("/tf", "/tf_static")):
        encoder = Encoder(TYPE)
        with BagWriter(tmp_path / "bag") as writer:
            for topic in topics:
                writer.add_topic(topic, encoder.definition)
            for at_ms, each in [(0, item) for item in fixed] + list(moving):
                topic = topics[0] if (at_ms, each) in moving else topics[1]
                writer.write(topic, BEGIN + (at_ms + received_ms) * MS, encoder.encode({"transforms": [each]}))
        return BagReader(tmp_path / "bag")

    return write


def read(reader, feature, text, by_receipt=False):
    place = place_of(text)
    assert is_tree(reader, place)
    return read_transforms(reader, feature, place, frames_of(reader, feature, place), (None, None), by_receipt)


def times(series):
    return ((series.stamps - BEGIN) / MS).tolist()


def test_transforms_of_other_times_are_interpolated_to_the_slowest_one(written):
    fast = [(at, transform(at, "base", "arm", x=at / 1000)) for at in range(0, 500, 20)]
    slow = [(at, transform(at, "arm", "hand", x=1.0)) for at in (50, 150, 250)]
    fixed = [transform(0, "hand", "tool", x=0.1), transform(0, "base", "table", x=-2.0)]
    with written(fast + slow, fixed) as reader:
        found = read(reader, PLACE, "/tf[table, tool]")
        assert times(found) == [50, 150, 250]
        np.testing.assert_allclose(found.values, [[2.0 + 1.1 + at, 0, 0] for at in (0.05, 0.15, 0.25)])


def test_a_robot_of_several_has_transforms_of_its_own(written):
    moving = [(at, transform(at, "base", "arm", x=1.0)) for at in (0, 100)]
    with written(moving, [transform(0, "arm", "tool", x=0.5)], topics=("/left/tf", "/left/tf_static")) as reader:
        np.testing.assert_allclose(read(reader, PLACE, "/left/tf[base, tool]").values, [[1.5, 0, 0]] * 2)


def test_there_is_no_sample_within_a_gap(written):
    torn = [(at, transform(at, "base", "arm")) for at in (*range(0, 101, 10), *range(600, 701, 10))]
    even = [(at, transform(at, "arm", "tool")) for at in range(50, 700, 100)]
    with written(torn + even) as reader:
        assert times(read(reader, PLACE, "/tf[base, tool]")) == [50, 650]


def test_a_pose_is_given_either_way_and_turns_along_the_shortest_way(written):
    quarter = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
    with written([(at, transform(at, "/base", "/tool", 1.0, quarter)) for at in (0, 100)]) as reader:
        (there, _), (back, _) = (read(reader, PLACE, text).values for text in ("/tf[base, tool]", "/tf[tool, base]"))
        np.testing.assert_allclose(there, [1, 0, 0], atol=1e-12)
        np.testing.assert_allclose(back, [0, 1, 0], atol=1e-12)
        np.testing.assert_allclose(read(reader, TURN, "/tf[base, tool]").values[0], [0, 1, 0, -1, 0, 0], atol=1e-12)


def test_times_are_those_of_receipt_where_the_stamps_are_of_another_clock(written):
    moving = [(at, transform(at, "base", "tool")) for at in (0, 100)]
    with written(moving, received_ms=5000) as reader:
        assert times(read(reader, PLACE, "/tf[base, tool]", by_receipt=True)) == [5000, 5100]
        assert times(read(reader, PLACE, "/tf[base, tool]")) == [0, 100]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/tf[base, lamp]", "no transforms lead from 'base', in the tree of 'base', to 'lamp', in that of 'world'"),
        ("/tf[base, toll]", "there is no frame 'toll'; the bag has base, lamp, tool, world"),
        ("/tf", "valid are the position or rotation of a frame in another, such as /tf"),
    ],
)
def test_frames_that_are_not_connected_are_one_sentence(written, text, said):
    moving = [(0, transform(0, "base", "tool")), (10, transform(10, "world", "lamp"))]
    with written(moving) as reader, pytest.raises(RecordingError) as raised:
        read(reader, PLACE, text)
    assert said in str(raised.value)


def test_a_transform_without_a_rotation_is_one_sentence(written):
    none = (0.0, 0.0, 0.0, 0.0)
    moving = [(at, transform(at, "base", "tool", turn=none)) for at in (0, 100)]
    with written(moving) as reader, pytest.raises(RecordingError, match="a transform has no rotation"):
        read(reader, PLACE, "/tf[base, tool]")


def test_a_frame_that_changes_its_parent_is_refused(written):
    """As of an object that is picked, or where two nodes publish it: its poses would be those of neither."""
    moving = [(at, transform(at, "base", "tool", x=1.0)) for at in range(0, 400, 20)]
    picked = [(at, transform(at, "base" if at < 200 else "tool", "object", x=0.5)) for at in range(0, 400, 20)]
    with pytest.raises(RecordingError, match="frame 'object' hangs on 'tool' and on 'base'; valid is one parent"):
        read(written(sorted([*moving, *picked], key=lambda item: item[0])), PLACE, "/tf[base, object]")


def test_the_first_stamp_says_whether_it_is_far_from_the_recorders_clock(written):
    reader = written([(at, transform(at, "base", "tool")) for at in (0, 20)], received_ms=3000)
    assert stamped_ns(reader, "/tf") == BEGIN and next(reader.raw(["/tf"])).stamp_ns == BEGIN + 3000 * MS
