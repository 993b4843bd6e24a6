"""What a server says and refuses: it serves in the task's terms, and tells what its policy cannot do."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from policy.remote.served import remote_bundle, serving
from tiny_bundle import make_tiny_bundle, write_manifest

from bid_ros.core.errors import BidError
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
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
