"""The shadow of a bag says of an executed episode what was executed, bit for bit; of a person's, how they agree."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.poses import pose_arrays
from bid_ros.core.task import parse_task
from bid_ros.core.topics import ARM_STATUS, POLICY_CHUNK, SAFETY_CHUNK
from bid_ros.nodes.ros_messages import chunk_to_message
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.recording.reader import BagReader
from bid_ros.replay.lockstep import Changes, lockstep_decider, replay
from bid_ros.replay.parity import Parity
from bid_ros.replay.shadow import BagShadow, executed_row
from bid_ros.safety.gate import Gate
from bid_ros.safety.shadow import Way

MS = 1_000_000


@pytest.fixture
def task(kit):
    """A task whose limits an untrained policy keeps."""
    names = ("speed", "acceleration", "jerk", "turn_rate", "turn_acceleration", "gripper_rate", "jump")
    wide = {"max_tilt": 3.14, "workspace_min": [-9.0] * 3, "workspace_max": [9.0] * 3}
    limits = {**wide, "gripper_max": 0.2, **{f"max_{name}": 1e6 for name in names}}
    return parse_task({**kit.TASK, "limits": limits})


@pytest.fixture
def shadowed(tmp_path, task):
    """Return a function that replays a bag and returns its decisions and the report of their shadow."""
    bundle = load_bundle(make_tiny_bundle(tmp_path / "bundle", task), task)
    policy = load_policy(bundle, task, "onnx")

    def play(bag):
        decider = lockstep_decider(task, bundle, policy, ("bid", 4, 1, 0), Changes())
        with BagReader(bag) as reader:
            shadow, records = BagShadow(reader, task, None), []
            for cue, record in replay(reader, task, decider, Parity()):
                shadow.decided(record.chunk, cue.stream)
                records.append(record)
        return records, shadow.report()

    return play


def tool_at(run, now_ns):
    """The tool as it was measured last, from what the recording holds."""
    states = [message for at, topic, message in run.ordered() if topic == ARM_STATUS and at <= now_ns]
    return pose_arrays(states[-1].tool)[0]


def test_the_shadow_of_an_executed_episode_is_what_was_executed(make_run, task, shadowed, tmp_path):
    run = make_run()
    records, plain = shadowed(run.write(tmp_path / "plain"))
    assert plain["executed"] == 0 and executed_row(plain) == ("executed", "nothing of the policy")
    gate, way = Gate(task), Way(task, None)
    for record in records:
        chunk, now = record.chunk, record.chunk.stamp_ns + 50 * MS
        run.add(POLICY_CHUNK, now, chunk_to_message(chunk, task, ""))
        found = gate.admit(chunk, now, tool_at(run, now))
        if found.verdict.ok:
            assert found.pace is None, "a chunk that is slowed changes the decisions after it"
            gate.passed(found.chunk)
            way.go(found.chunk, now)
            run.add(SAFETY_CHUNK, now + MS, chunk_to_message(found.chunk, task, ""))
    _, report = shadowed(run.write(tmp_path / "executed"))
    assert report["chunks"] == len(records) and report["passed"] == report["executed"] == report["equal"] == way.chunks
    assert 5 < report["passed"] < len(records) and report["travel_m"] == report["executed_m"] == way.length_m > 0
    assert report["digest"] == report["executed_digest"] == way.digest
    assert "all equal in every bit" in executed_row(report)[1]


def test_a_chunk_that_is_not_the_executed_one_in_one_bit_is_told(make_run, task, shadowed, tmp_path):
    run = make_run()
    records, _ = shadowed(run.write(tmp_path / "plain"))
    message = chunk_to_message(records[3].chunk, task, "")
    message.actions[4] = float(np.nextafter(message.actions[4], 2.0))
    run.add(SAFETY_CHUNK, records[3].chunk.stamp_ns + 51 * MS, message)
    _, report = shadowed(run.write(tmp_path / "executed"))
    assert (report["executed"], report["equal"]) == (1, 0) and "0 equal in every bit" in executed_row(report)[1]


def test_a_person_who_moved_the_arm_is_held_against_the_decisions(make_run, shadowed, tmp_path):
    """The recorded arm moves at 0.1 m/s from 0.8 s on."""
    _, report = shadowed(make_run().write(tmp_path / "bag"))
    assert 10 <= report["moved"] < 20 and report["apart_mm"]["p50"] > 0
    assert report["from_tool_mm"]["max"] > 0 and report["age_ms"]["max"] == 50.0


def test_of_a_bag_that_does_not_say_where_the_arm_was_nothing_is_judged(kit, task, tmp_path):
    run, chunk = kit.Run(), ActionChunk(1, task.dt_ns, np.zeros((2, task.action_dim)), source="teleop")
    run.add(SAFETY_CHUNK, 1, kit.stamped(chunk_to_message(chunk, task, ""), 1))
    with BagReader(run.write(tmp_path / "bag")) as reader:
        shadow = BagShadow(reader, task, None)
    shadow.decided(chunk, 1)
    assert not shadow.known and shadow.report()["chunks"] == 0
