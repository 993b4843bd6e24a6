"""Bags of each version of the messages: those of ``test/golden`` are older than the installed definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bid_ros.cli import main
from bid_ros.core.topics import DECISION, EPISODE_CHUNK, EPISODE_EVENT, POLICY_CHUNK, SAFETY_CHUNK, SAFETY_STATE
from bid_ros.recording.definitions import Encoder
from bid_ros.recording.episodes import END, find_episodes
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter
from bid_ros.replay.cue import find_decision_times, observed_ns, recorded_from
from bid_ros.system.folder import find_system
from bid_ros.views.message_values import FIELDS, decision_times_ms
from bid_ros.views.vitals import Vitals

ROOT = Path(__file__).resolve().parents[2]
BAGS = ROOT / "test/golden/bags"
SYSTEMS = {
    "franka_place": "franka_place",
    "franka_place_joints": "config/joints/franka_place",
    "ur5_pick": "ur5_pick",
    "ros_pick": "ur5_pick",
}
CHUNKS = (EPISODE_CHUNK, POLICY_CHUNK, SAFETY_CHUNK)
CHANGED = (DECISION, EPISODE_EVENT, *CHUNKS, SAFETY_STATE)


def content(message: Any) -> Any:
    """The fields of a message that was read from a bag, as an encoder takes them."""
    if isinstance(message, list):
        return [content(item) for item in message]
    if not hasattr(message, "__dataclass_fields__"):
        return message
    fields = [name for name in message.__dataclass_fields__ if name.islower() and not name.startswith("__")]
    return {name: content(getattr(message, name)) for name in fields}


def newer(topic: str, message: Any) -> dict[str, Any]:
    """What a recorder of today has of a message of the earlier version."""
    values = content(message)
    if topic == DECISION:
        values |= {field: values.pop(older) / 1e3 for older, field in FIELDS.items()}
        stamps = [divmod(int(stamp), 1_000_000_000) for stamp in values.pop("observed_ns")]
        values["observed_stamps"] = [{"sec": whole, "nanosec": rest} for whole, rest in stamps]
    elif topic in CHUNKS:
        values |= {"scale": 1.0}
    elif topic == SAFETY_STATE:
        values |= {"rule": values.pop("trigger"), "action": 0}
    elif topic == EPISODE_EVENT and values["kind"] == END:
        values |= {"outcome_class": 1, "outcome_code": values["outcome"]}
    return values


def rewritten(old: Path, folder: Path) -> Path:
    """The same recording with the messages of today."""
    with BagReader(old) as reader:
        names = {reader.recorded_name(topic): topic for topic in CHANGED}
        encoders = {name: Encoder(reader.topics[name]) for name in reader.topics}
        with BagWriter(folder, custom_data=reader.custom) as bag:
            for name, encoder in encoders.items():
                bag.add_topic(name, encoder.definition)
            for item in reader.raw():
                changed = names.get(item.topic)
                data = encoders[item.topic].encode(newer(changed, reader.decode(item))) if changed else item.data
                while not bag.write(item.topic, item.stamp_ns, data):
                    bag.flush()
    return folder


@pytest.fixture(scope="module")
def today(tmp_path_factory) -> Path:
    return rewritten(BAGS / "franka_place", tmp_path_factory.mktemp("today") / "bag")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_bag_of_the_earlier_version_says_how_it_ended_and_what_was_observed(name):
    with BagReader(BAGS / name) as reader:
        assert reader.says(DECISION, "decision_ms") and not reader.says(DECISION, "decision_time")
        (episode,) = find_episodes(reader)
        assert (episode.outcome_class, episode.outcome_code) == ("task", "success")
        vitals = Vitals([DECISION])
        for item in reader.messages(CHANGED):
            vitals.add(item.topic, item.stamp_ns, item.message)
        said = vitals.snapshot(reader.span_ns[1])
        assert 5 < said["latencies"]["decision_ms"]["p50"] < 200 and said["safety"]["rule"] == ""
        system = find_system(ROOT / SYSTEMS[name] if "/" in SYSTEMS[name] else SYSTEMS[name])
        times = find_decision_times(reader, system.policy_task)
        cues = [cue for item in reader.messages(times.topics) for cue in times.take(item)] + times.finish()
        assert len(cues) > 20
        assert all(cue.recorded is not None and cue.observation is not None for cue in cues)
        assert all(cue.observation.digest() == cue.recorded.digest for cue in cues)


def test_both_versions_say_the_same_of_a_decision(today):
    with BagReader(BAGS / "franka_place") as old, BagReader(today) as new:
        assert new.says(DECISION, "decision_time") and not new.says(DECISION, "decision_ms")
        pairs = list(zip(old.messages([DECISION]), new.messages([DECISION]), strict=True))
        assert len(pairs) > 20
        for one, other in pairs:
            assert observed_ns(one.message) == observed_ns(other.message)
            assert recorded_from(one.message).samples_ns == recorded_from(other.message).samples_ns
            times = [list(decision_times_ms(item.message).values()) for item in (one, other)]
            np.testing.assert_allclose(*times, rtol=1e-12)
        assert find_episodes(old) == find_episodes(new)


@pytest.mark.parametrize("version", ["earlier", "today"])
def test_a_bag_of_each_version_is_replayed_with_every_decision(today, version, capsys):
    bag = today if version == "today" else BAGS / "franka_place"
    assert main(["replay", str(bag), "--system", "franka_place", "--runtime", "onnx", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decisions"] == found["compared"] == found["observations"] == 23 and not found["missing"]
    assert found["largest"] < 1e-3, "another processor computes the network with other instructions"
