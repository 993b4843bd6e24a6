"""A replay hears how safety slowed a decision, and makes the next one as the live system did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.control.slowing import Pace
from bid_ros.core.topics import POLICY_CHUNK, SAFETY_CHUNK
from bid_ros.nodes.ros_messages import chunk_to_message
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.recording.reader import BagReader
from bid_ros.replay.lockstep import Changes, lockstep_decider, replay
from bid_ros.replay.parity import Parity

MS = 1_000_000
LONGER = 3


@pytest.fixture
def decided(tmp_path, task):
    """Return a function that replays a bag and returns its decisions."""
    bundle = load_bundle(make_tiny_bundle(tmp_path / "bundle", task), task)
    policy = load_policy(bundle, task, "onnx")

    def records(bag):
        decider = lockstep_decider(task, bundle, policy, ("bid", 4, 1, 0), Changes())
        with BagReader(bag) as reader:
            return [record for _, record in replay(reader, task, decider, Parity())]

    return records


def test_what_was_forwarded_is_what_the_next_decision_coheres_with(kit, make_run, task, decided, tmp_path):
    run = make_run()
    plain = decided(run.write(tmp_path / "plain"))
    first, second = plain[:2]
    pace, rows = Pace(0, 6, 6 + LONGER), first.chunk.actions
    forwarded = replace(first.chunk, actions=pace.slowed(rows, task, 7 + LONGER), scale=pace.scale)
    for topic, chunk in ((POLICY_CHUNK, first.chunk), (SAFETY_CHUNK, forwarded), (SAFETY_CHUNK, plain[3].chunk)):
        run.add(topic, chunk.stamp_ns + 50 * MS, chunk_to_message(chunk, task, ""))
    slowed = decided(run.write(tmp_path / "slowed"))
    np.testing.assert_array_equal(slowed[0].choice.actions, first.choice.actions)
    before = np.concatenate([first.choice.actions[:1], second.choice.previous])
    np.testing.assert_allclose(slowed[1].choice.previous, pace.after(1).slowed(before, task, 8)[1:], atol=1e-12)
    np.testing.assert_allclose(slowed[1].choice.previous[:, :3], forwarded.actions[:7, :3], atol=1e-9)
    assert np.abs(slowed[1].choice.previous - second.choice.previous).max() > 1e-6
    # A decision that was forwarded as it was changes nothing.
    np.testing.assert_array_equal(slowed[4].strong[0], plain[4].strong[0])
    np.testing.assert_array_equal(slowed[4].choice.previous, slowed[3].choice.actions[1:])
