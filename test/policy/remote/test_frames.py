"""Images go over the wire once, and what is sampled from stays the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving

from bid_ros.core.errors import RemoteError
from bid_ros.core.observation import Observation
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.frames import KeptFrames, SentFrames
from bid_ros.policy.remote.service import PolicyService


@pytest.fixture
def stream(task, observe):
    """Observations one period apart: all frames but the newest are those of the one before."""
    rng = np.random.default_rng(0)
    frames = {item.name: rng.integers(0, 256, (9, *item.shape), dtype=np.uint8) for item in task.cameras}
    steps = task.observation_steps

    def at(index: int) -> Observation:
        images = {name: images[index : index + steps] for name, images in frames.items()}
        return Observation(1 + index, {**observe().values, **images})

    return [at(index) for index in range(8)]


def test_what_is_sent_comes_back_whole(task, stream):
    names = [item.name for item in task.cameras]
    sent, kept = SentFrames(names), KeptFrames()
    for number, seen in enumerate(stream):
        content, entries = sent.spared(seen.values)
        whole = kept.whole(content, entries, task.cameras, task.observation_steps)
        sent.arrived()
        for name in names:
            assert len(content[name]) == (1 if number else task.observation_steps)
            np.testing.assert_array_equal(whole[name], seen.values[name])
    content, entries = sent.spared(seen.values)
    assert not set(names) & set(content), "what did not change is not sent at all"
    np.testing.assert_array_equal(kept.whole(content, entries, task.cameras, 2)[names[0]], seen.values[names[0]])


def test_an_image_that_repeats_is_sent_once(task, observe):
    sent, kept = SentFrames([item.name for item in task.cameras]), KeptFrames()
    content, entries = sent.spared(observe().values)
    name = task.cameras[0].name
    assert content[name].shape == (1, *task.cameras[0].shape) and entries[name][0] is None
    np.testing.assert_array_equal(
        kept.whole(content, entries, task.cameras, task.observation_steps)[name], observe().values[name]
    )


def test_an_image_that_is_not_known_is_missing(task, stream):
    sent = SentFrames([item.name for item in task.cameras])
    sent.spared(stream[0].values)
    sent.arrived()
    content, entries = sent.spared(stream[1].values)
    assert KeptFrames().whole(content, entries, task.cameras, task.observation_steps) is None


def test_a_question_that_was_not_answered_counts_as_not_sent(task, stream):
    sent = SentFrames([item.name for item in task.cameras])
    sent.spared(stream[0].values)
    content, _ = sent.spared(stream[1].values)
    assert all(len(content[item.name]) == task.observation_steps for item in task.cameras)


@pytest.mark.parametrize(
    ("entries", "rows", "words"),
    [
        ([None], 1, "valid are 2 entries"),
        (None, 1, "valid are 2 entries"),
        ([None, "x" * 16], 1, "valid are 2 entries"),
        ([None, b"short"], 1, "valid are 2 entries"),
        ([None, None], 1, r"that are sent are uint8 \(1, 8, 8, 3\); valid is uint8 \(2, 8, 8, 3\)"),
        ([b"x" * 16] * 2, 1, r"valid is uint8 \(0, 8, 8, 3\)"),
        ([None, None], 0, "are missing or no array"),
    ],
)
def test_entries_that_are_none_are_refused(task, entries, rows, words):
    name, shape = task.cameras[0].name, task.cameras[0].shape
    others = {item.name: [None] * 2 for item in task.cameras[1:]}
    content = {item.name: np.zeros((2, *item.shape), np.uint8) for item in task.cameras[1:]}
    content |= {name: np.zeros((rows, *shape), np.uint8)} if rows else {}
    with pytest.raises(RemoteError, match=words):
        KeptFrames().whole(content, {name: entries, **others}, task.cameras, task.observation_steps)


@pytest.mark.parametrize("kept", [3, {}, {"elsewhere": []}])
def test_other_names_than_the_cameras_are_refused(task, kept):
    with pytest.raises(RemoteError, match="kept is not valid; valid is a map with third_person"):
        KeptFrames().whole({}, kept, task.cameras, task.observation_steps)


def test_decisions_are_the_same_with_half_of_the_bytes(policy, tiny, task, stream, tmp_path, monkeypatch):
    """Also after the server has lost the images, and after it was started again."""
    bundle, here, there = load_bundle(tiny, task), np.random.default_rng(5), np.random.default_rng(5)
    sizes, kept = [], []
    monkeypatch.setattr(KeptFrames, "__init__", lambda self: (kept.append(self), setattr(self, "_known", {}))[1])

    def server_forgets():
        kept[-1]._known = {}

    def same(seen):
        ours = policy.sample(policy.encode(seen), 2, 2, here)
        theirs = remote.sample(remote.encode(seen), 2, 2, there)
        np.testing.assert_array_equal(ours, theirs)
        sizes.append(remote._link.asked_bytes)

    with serving(policy, bundle, task) as server:
        pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=5000.0)
        remote = load_policy(pointer, task)
        for seen in stream[:3]:
            same(seen)
        spared = len(task.cameras) * int(np.prod(task.cameras[0].shape))
        assert sizes[0] - sizes[1] > 0.8 * spared and sizes[1] == pytest.approx(sizes[2], abs=30)
        with monkeypatch.context() as patch:
            patch.setattr(KeptFrames, "whole", lambda *_: None)
            with pytest.raises(RemoteError, match="word that it lacks images, which were all sent"):
                remote.sample(remote.encode(stream[3]), 2, 2, there)
        same(stream[3])  # over another connection
        server_forgets()
        same(stream[4])
        assert sizes[4] == pytest.approx(sizes[0], abs=30), "the server said what it lacks, and got everything"
    with serving(policy, bundle, task, server.port):
        same(stream[5])
        same(stream[6])
    assert sizes[5] == pytest.approx(sizes[0], abs=30) and sizes[6] == pytest.approx(sizes[1], abs=30)


def test_images_are_compressed_for_a_server_that_takes_it(policy, tiny, task, observe, tmp_path, monkeypatch):
    """Those of a grey wall: each is one value."""
    metadata, sizes, found = PolicyService.metadata, [], []
    before = lambda self: {"bid": {key: value for key, value in metadata(self)["bid"].items() if key != "inflates"}}  # noqa: E731
    with serving(policy, load_bundle(tiny, task), task) as server:
        address = f"ws://127.0.0.1:{server.port}"
        pointer = remote_bundle(tmp_path / "remote", task, address, timeout_ms=5000.0)
        for number in range(2):
            if number:
                monkeypatch.setattr(PolicyService, "metadata", before)
            remote = load_policy(pointer, task)
            found.append(remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(0))[0])
            sizes.append(remote._link.asked_bytes)
    pixels = len(task.cameras) * int(np.prod(task.cameras[0].shape))
    assert sizes[1] - sizes[0] > 0.8 * pixels
    np.testing.assert_array_equal(*found)


def test_a_server_of_before_gets_all(policy, tiny, task, stream, tmp_path, monkeypatch):
    metadata = PolicyService.metadata
    before = lambda self: {"bid": {key: value for key, value in metadata(self)["bid"].items() if key != "keeps_frames"}}  # noqa: E731
    monkeypatch.setattr(PolicyService, "metadata", before)
    with serving(policy, load_bundle(tiny, task), task) as server:
        pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=5000.0)
        remote, sizes = load_policy(pointer, task), []
        for seen in stream[:2]:
            remote.sample(remote.encode(seen), 1, 0, np.random.default_rng(0))
            sizes.append(remote._link.asked_bytes)
    assert sizes[1] == pytest.approx(sizes[0], abs=30)
