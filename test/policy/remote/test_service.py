"""What a server says and refuses: it serves in the task's terms, and tells what its policy cannot do."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from policy.remote.served import remote_bundle, serving
from small_task import SMALL
from tiny_bundle import make_tiny_bundle, write_manifest
from tiny_vqbet import make_tiny_vqbet

from bid_ros.core.errors import BidError, DecodingError, RemoteError
from bid_ros.core.task import parse_task
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import bundle_decoder, check_decoder
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.config import RemoteConfig
from bid_ros.policy.remote.pointing import write_remote_bundle
from bid_ros.policy.remote.service import PolicyService


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"observation_steps": 3, "past_rows": 1}, "wants 3 observed steps, one every 100 ms"),
        ({"rate_hz": 5.0}, "wants 2 observed steps, one every 200 ms"),
    ],
)
def test_other_observed_steps_than_the_task_s_are_not_served(task, tmp_path, space, words):
    """Clients send the task's steps: answers to them would be of wrongly spaced observations."""
    steps = space.get("observation_steps", 0)
    folder = make_tiny_bundle(tmp_path / "tiny", task, steps=steps, format=2, space=space)
    bundle = load_bundle(folder, task)
    with pytest.raises(BidError, match=rf"tiny {words}, .*; valid for a server are 2, one every 100 ms"):
        PolicyService(load_policy(bundle, task, "onnx"), bundle, task)


def test_a_space_with_the_task_s_steps_is_served_in_the_task_s_terms(task, tmp_path, observe):
    """The network's positions are in mm."""
    places = {"feature": "tool_position", "scale": 0.001}
    vectors = {item.name: [{"feature": item.name}] for item in task.vectors} | {"tool_position": [places]}
    images = [{"name": item.name, "camera": item.name} for item in task.cameras]
    space = {
        "observation": [*images, *({"name": name, "columns": parts} for name, parts in vectors.items())],
        "action": [places, *({"feature": item.name} for item in task.action[1:])],
    }
    folder = make_tiny_bundle(tmp_path / "tiny", task)
    content = yaml.safe_load((folder / "bundle.yaml").read_text())
    ranges = content["normalisation"]
    for part in (ranges["action"], ranges["observation"]["tool_position"]):
        for end in ("minimum", "maximum"):
            part[end][:3] = [1000 * value for value in part[end][:3]]
    write_manifest(folder, {**content, "format": 2, "space": space})
    bundle = load_bundle(folder, task)
    policy = load_policy(bundle, task, "onnx")
    with serving(policy, bundle, task) as server:
        pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=5000.0)
        remote = load_policy(pointer, task)
        found = remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(0))[0]
    expected = policy.sample(policy.encode(observe()), 2, 0, np.random.default_rng(0))[0]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(pointer.action.maximum[:3], task.limits.workspace_max)
    np.testing.assert_array_equal(pointer.observation["tool_position"].maximum, task.limits.workspace_max)
    np.testing.assert_array_equal(pointer.action_spread, bundle.action_spread)


def test_a_policy_that_samples_from_noise_alone_says_so_through_its_server(tmp_path):
    """Else a decoder that starts from its last decision would be taken, and fail while the arm moves."""
    values = [{"name": "tool_position", "kind": "position"}, {"name": "gripper_width", "kind": "gripper"}]
    task = parse_task({**SMALL, "observation": values, "action": values})
    bundle = make_tiny_vqbet(tmp_path / "vqbet", task)
    with serving(load_policy(bundle, task, "onnx"), bundle, task) as server:
        pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=5000.0)
        remote = load_policy(pointer, task)
    assert not remote.capabilities.starts and not pointer.settings.starts
    assert remote.capabilities.made_up_rows == task.observation_steps - 1
    with pytest.raises(DecodingError, match="starts from its last decision, which this policy cannot"):
        check_decoder(bundle_decoder("bid+warmstart", pointer, task, 4, 1), remote)
    check_decoder(bundle_decoder("bid", pointer, task, 4, 1), remote)


def test_a_server_that_does_not_name_its_bundle_is_one_sentence(task, policy, tiny, tmp_path):
    said = PolicyService(policy, load_bundle(tiny, task), task).metadata()["bid"]
    del said["name"]
    with pytest.raises(RemoteError, match=r"policy server ws://a:1 describes its bundle badly: KeyError\('name'\)"):
        write_remote_bundle(tmp_path / "remote", task, RemoteConfig("ws://a:1"), said)


def test_decoders_weigh_actions_here_as_they_would_there(task, tmp_path):
    weights = {"tool_rotation": 0.5, "gripper_width": 0.0}
    bundle = load_bundle(make_tiny_bundle(tmp_path / "tiny", task, format=2, action_weights=weights), task)
    with serving(load_policy(bundle, task, "onnx"), bundle, task) as server:
        pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=5000.0)
    assert pointer.action_weights == weights
