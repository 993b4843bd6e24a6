import pytest
from geometry_msgs.msg import TransformStamped
from mcap.reader import make_reader
from tf2_msgs.msg import TFMessage

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import EPISODE_EVENT, TF_STATIC
from bid_ros.curation.catalog import episodes_of
from bid_ros.curation.edit import merge, split, trim, without
from bid_ros.formats import build_dataset
from bid_ros.recording.reader import BagReader

S = 1_000_000_000
START = 1_700_000_000 * S


@pytest.fixture
def bag(make_run, tmp_path):
    run = make_run(episodes=3, success=lambda index: index != 2)
    static = TFMessage(transforms=[TransformStamped(child_frame_id="camera")])
    run.add(TF_STATIC, START - 2 * S, static)
    return run.write(
        tmp_path / "bag", about={"namespace": "/", "frame_prefix": ""}, like={TF_STATIC: "tf2_msgs/msg/TFMessage"}
    )


def contents(bag):
    with BagReader(bag) as reader:
        return sorted((item.topic, item.stamp_ns, bytes(item.data)) for item in reader.raw())


def records(bag):
    with next(bag.glob("*.mcap")).open("rb") as stream:
        found = make_reader(stream).iter_messages()
        return [(channel.topic, item.log_time, item.publish_time, item.data) for _, channel, item in found]


def channels(bag):
    with next(bag.glob("*.mcap")).open("rb") as stream:
        summary = make_reader(stream).get_summary()
        schemas = summary.schemas
        return {c.topic: (c.metadata, schemas[c.schema_id].name, schemas[c.schema_id].data)
                for c in summary.channels.values()}  # fmt: skip


def test_a_part_of_a_foreign_bag_remembers_how_its_topics_were_named(make_run, kit, tmp_path):
    run = make_run(episodes=2)
    foreign = kit.Run([(at, "/their/event" if name == EPISODE_EVENT else name, m) for at, name, m in run.items])
    bag = foreign.write(tmp_path / "bag", like={"/their/event": EPISODE_EVENT})
    with pytest.raises(RecordingError, match="valid"):
        trim(bag, 1, 0.0, None, tmp_path / "none", {})
    trim(bag, 1, 0.5, 1.0, tmp_path / "part", {}, {EPISODE_EVENT: "/their/event"})
    with BagReader(tmp_path / "part") as reader:
        (episode,) = episodes_of(reader)
        assert episode.episode.index == 1 and reader.custom["remapped"] == '{"episode/event": "/their/event"}'


def test_split_and_merge_lose_nothing_and_invent_nothing(bag, tmp_path):
    before = contents(bag)
    parts = split(bag, tmp_path / "parts", {"task": "small"})
    assert [part.name for part in parts] == ["episode_000", "episode_001", "episode_002"]
    for number, part in enumerate(parts):
        assert channels(part) == channels(bag)
        with BagReader(part) as reader:
            (episode,) = episodes_of(reader)
            assert episode.episode.index == number and reader.counts[TF_STATIC] == 1
            assert reader.custom == {"task": "small", "namespace": "/", "frame_prefix": "", "origin": f"{bag}:{number}"}
    assert merge(parts[::-1], tmp_path / "whole", {}) == len(before)
    assert contents(tmp_path / "whole") == before == contents(bag)
    assert channels(tmp_path / "whole") == channels(bag)
    assert (tmp_path / "whole" / "whole_0.mcap").is_file()


def test_a_data_set_of_the_parts_is_that_of_the_bag(bag, task, tmp_path):
    parts = split(bag, tmp_path / "parts", {})
    whole, pieces = build_dataset([bag], task), build_dataset(parts, task)
    assert whole.stamps_ns.tolist() == pieces.stamps_ns.tolist() and whole.rows > 20
    assert (whole.actions == pieces.actions).all()


def test_trim_keeps_what_is_latched_with_its_time_of_publishing(bag, tmp_path):
    trim(bag, 1, 0.5, 1.5, tmp_path / "part", {})
    begin = START + 5 * S + S // 1000 + S // 2
    found = records(tmp_path / "part")
    static = [item for item in found if item[0] == TF_STATIC]
    assert [(log, sent) for _, log, sent, _ in static] == [(begin, START - 2 * S)]
    events = [(log, sent) for topic, log, sent, _ in found if topic == f"/{EPISODE_EVENT}"]
    assert events == [(begin, START + 5 * S + S // 1000), (begin + S, START + 7 * S + S // 1000)]
    own = {(topic, log, data) for topic, log, sent, data in found if log == sent}
    assert own <= set(contents(bag))
    inside = [item for item in contents(bag) if begin <= item[1] <= begin + S]
    assert sorted(own) == inside
    with BagReader(tmp_path / "part") as reader:
        (episode,) = episodes_of(reader)
        assert episode.success and episode.duration_s == 1.0


def test_a_trim_of_a_whole_episode_gives_the_same_rows(bag, task, tmp_path):
    trim(bag, 0, 0.0, None, tmp_path / "part", {})
    rows = build_dataset([tmp_path / "part"], task).stamps_ns.tolist()
    assert rows == build_dataset([bag], task).stamps_ns.tolist()[: len(rows)] and len(rows) > 10


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((1, 1.0, 0.5), r"bag:1 has no part from 1 to 0\.5 s; valid is 0 to 2\.000 s"),
        ((1, 0.0, 9.0), r"valid is 0 to 2\.000 s"),
        ((7, 0.0, 1.0), r"has no episode 7; valid is 0 to 2"),
        ((None, 0.0, 1.0), r"holds 3 episodes; valid is one of them, such as .*bag:0"),
    ],
)
def test_a_trim_that_is_not_possible_says_what_is(bag, tmp_path, arguments, said):
    with pytest.raises(RecordingError, match=said):
        trim(bag, *arguments, tmp_path / "part", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bag"]


def test_without_takes_one_episode_out(bag, tmp_path):
    without(bag, 1, tmp_path / "rest")
    with BagReader(tmp_path / "rest") as reader:
        assert [item.episode.index for item in episodes_of(reader)] == [0, 2]
    assert set(contents(tmp_path / "rest")) < set(contents(bag))


def test_bags_that_do_not_belong_together_are_refused(bag, make_run, tmp_path):
    with pytest.raises(RecordingError, match="both hold episodes and overlap in time"):
        merge([bag, bag], tmp_path / "out", {})
    later = make_run(start_ns=START + 100 * S).write(tmp_path / "later", "/left", {"namespace": "/left"})
    with pytest.raises(RecordingError, match=r"namespace is '/' in .* and '/left' in .*; valid are bags of one system"):
        merge([bag, later], tmp_path / "out", {})
    with pytest.raises(RecordingError, match="bag exists already; valid is a new folder"):
        trim(bag, 0, 0.0, 1.0, bag, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bag", "later"]


def test_a_damaged_chunk_stops_an_edit_and_leaves_nothing(bag, tmp_path):
    file = bag / "bag_0.mcap"
    content = bytearray(file.read_bytes())
    with file.open("rb") as stream:  # how many chunks there are depends on the clock
        chunk = max(make_reader(stream).get_summary().chunk_indexes, key=lambda item: item.chunk_length)
    content[chunk.chunk_start_offset + chunk.chunk_length // 2] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(RecordingError, match=r"is damaged .*; bid episodes repair keeps what can be read"):
        split(bag, tmp_path / "parts", {})
    assert not list((tmp_path / "parts").glob(".*"))
