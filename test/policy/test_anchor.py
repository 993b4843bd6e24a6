from dataclasses import replace

import numpy as np
import pytest
import yaml
from tiny_bundle import make_tiny_bundle, write_manifest

from bid_ros.core.errors import BidError
from bid_ros.core.feature import Feature
from bid_ros.core.task import load_task
from bid_ros.policy.anchor import action_anchor, action_bounds, check_reference
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.normalise import LinearNormaliser

NEWEST = {"tool_position": np.array([0.5, 0.1, 0.3]), "tool_rotation": np.ones(6), "gripper_width": np.array([0.04])}


def test_only_positions_move(task):
    np.testing.assert_array_equal(action_anchor(task, "tool", NEWEST), [0.5, 0.1, 0.3, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(action_anchor(task, "base", NEWEST), np.zeros(10))


def test_many_at_once(task):
    newest = {name: np.stack([value, 2 * value]) for name, value in NEWEST.items()}
    anchors = action_anchor(task, "tool", newest, (2,))
    np.testing.assert_array_equal(anchors[1], 2 * action_anchor(task, "tool", NEWEST))


def test_points_are_positions_too(root):
    task = load_task(root / "config" / "pusht.yaml")
    newest = {"block_keypoints": np.zeros(18), "agent_position": np.array([100.0, 200.0])}
    np.testing.assert_array_equal(action_anchor(task, "tool", newest), [100, 200])


def test_joints_are_positions_too(root):
    task = load_task(root / "config" / "joints" / "franka_place" / "task.yaml")
    newest = NEWEST | {"joint_positions": np.arange(7.0)}
    np.testing.assert_array_equal(action_anchor(task, "tool", newest), [0, 1, 2, 3, 4, 5, 6, 0])


def test_a_task_without_a_position_to_count_from_is_refused(root):
    task = load_task(root / "config" / "pusht.yaml")
    task = replace(task, observation=task.observation[:1])
    check_reference(task, "base")
    with pytest.raises(BidError, match="commands no position or joints that it observes; valid is base"):
        check_reference(task, "tool")


def test_joints_that_are_commanded_but_not_observed_are_named(root):
    task = load_task(root / "config" / "joints" / "franka_place" / "task.yaml")
    hands = Feature("hands", "joints", (14,))
    check_reference(task, "tool")
    with pytest.raises(BidError, match="commands hands without an observation of that name; valid is one, or"):
        check_reference(replace(task, action=(*task.action, hands)), "tool")


@pytest.fixture
def relative(task, tmp_path):
    return DiffusionPolicy(load_bundle(make_tiny_bundle(tmp_path, task, action_reference="tool"), task), task, "onnx")


def test_a_policy_that_counts_from_the_tool_answers_in_the_base_frame(policy, relative, observe):
    observation = observe()
    pairs = []
    for one in (policy, relative):
        pairs.append(one.sample(one.encode(observation), 4, 4, np.random.default_rng(0)))
    offset = np.append(observation.values["tool_position"][-1], np.zeros(7))
    encoded = relative.encode(observation)
    for base, tool in zip(*pairs, strict=True):
        np.testing.assert_allclose(tool, np.clip(base + offset, encoded.low, encoded.high), atol=1e-12)
        assert np.any((tool > encoded.low + 1e-9)[..., :3] & (tool < encoded.high - 1e-9)[..., :3])


def test_a_start_is_counted_from_the_tool_too(policy, relative, observe):
    observation = observe()
    encoded, plain = relative.encode(observation), policy.encode(observation)
    row = policy.sample(plain, 1, 0, np.random.default_rng(1))[0][0, 0]
    start = np.tile(encoded.anchor + row, (16, 1))
    ours = relative.sample(encoded, 2, 0, np.random.default_rng(0), start, "renoise")[0]
    base = policy.sample(plain, 2, 0, np.random.default_rng(0), start - encoded.anchor, "renoise")[0]
    np.testing.assert_allclose(ours, encoded.place(base), atol=1e-12)


def test_positions_that_count_from_the_tool_stay_where_it_was_demonstrated(task):
    ranges = {
        "tool_position": LinearNormaliser(np.array([0.3, -0.2, 0.04]), np.array([0.6, 0.2, 0.4])),
        "tool_rotation": LinearNormaliser(-np.ones(6), np.ones(6)),
        "gripper_width": LinearNormaliser(np.zeros(1), np.array([0.08])),
    }
    low, high = action_bounds(task, "tool", NEWEST, ranges)
    np.testing.assert_array_equal(low[:3], [0.3, -0.2, 0.04])
    np.testing.assert_array_equal(high[:3], [0.6, 0.2, 0.4])
    assert np.isinf(low[3:]).all() and np.isinf(high[3:]).all(), "the sampler keeps these in their range"
    assert np.isinf(action_bounds(task, "base", NEWEST, ranges)).all()


def test_a_tool_that_stands_outside_of_what_was_demonstrated_may_stay_there(task):
    ranges = {"tool_position": LinearNormaliser(np.array([0.3, -0.2, 0.04]), np.array([0.6, 0.2, 0.4]))}
    outside = {**NEWEST, "tool_position": np.array([0.7, 0.0, 0.02])}
    low, high = action_bounds(task, "tool", outside, ranges)
    np.testing.assert_array_equal(low[:3], [0.3, -0.2, 0.02])
    np.testing.assert_array_equal(high[:3], [0.7, 0.2, 0.4])


def test_every_row_of_a_chunk_may_have_its_own_range(policy, observe, task, tmp_path):
    def wide(manifest):
        scale = manifest["normalisation"]["action"]
        for key in scale:
            scale[key] = [[row * value for value in scale[key]] for row in range(1, 17)]

    folder = make_tiny_bundle(tmp_path, task)
    manifest = yaml.safe_load((folder / "bundle.yaml").read_text())
    wide(manifest)
    write_manifest(folder, manifest)
    rowwise = DiffusionPolicy(load_bundle(folder, task), task, "onnx")
    ours = rowwise.sample(rowwise.encode(observe()), 4, 0, np.random.default_rng(0))[0]
    plain = policy.sample(policy.encode(observe()), 4, 0, np.random.default_rng(0))[0]
    np.testing.assert_allclose(ours, plain * np.arange(1, 17)[:, None], atol=1e-9)
