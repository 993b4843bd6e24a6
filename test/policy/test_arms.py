"""One policy of several arms: its own bundle, or those of the arms side by side."""

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.core.arms import Arms
from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.observation import blank_observation
from bid_ros.core.task import load_task
from bid_ros.policy.arms import arms_decoder, joint_bundle, load_arms_policy, load_bundles, part_of, screens_of
from bid_ros.policy.decide import DecisionMaker


@pytest.fixture(scope="module")
def task(request):
    return load_task(request.config.rootpath / "config" / "franka_place" / "task.yaml")


@pytest.fixture(scope="module")
def arms(task):
    return Arms("two", {"left": task, "right": task})


@pytest.fixture(scope="module")
def own(tmp_path_factory, task):
    return make_tiny_bundle(tmp_path_factory.mktemp("own"), task)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, arms):
    return make_tiny_bundle(tmp_path_factory.mktemp("both"), arms.task)


def held(arms):
    """An observation in which each arm stands still somewhere else."""
    seen = blank_observation(arms.task)
    for arm, y in (("left", 0.1), ("right", -0.1)):
        seen.values[f"{arm}/tool_position"][:] = (0.5, y, 0.3)
        seen.values[f"{arm}/tool_rotation"][:] = (1, 0, 0, 0, -1, 0)
        seen.values[f"{arm}/gripper_width"][:] = 0.04
    return seen


@pytest.mark.parametrize("which", ["own", "trained"])
def test_one_decision_has_a_part_for_each_arm(arms, which, request):
    folder = request.getfixturevalue(which)
    bundles = load_bundles((folder,) if which == "trained" else (folder, folder), arms)
    bundle = joint_bundle(bundles)
    assert len(bundle.action_spread) == arms.task.action_dim
    decoder = arms_decoder("bid", bundle, arms, 4, 1)
    _, screen = screens_of(arms, arms.tasks, {"left": None, "right": None})
    maker = DecisionMaker(load_arms_policy(bundles, arms), decoder, arms.task, screen=screen.passes, free=screen.free)
    record = maker.decide(held(arms))
    kept = 4 - record.screened
    assert record.strong.shape == record.weak.shape == (kept, 16, 20) and kept > 0
    for arm, y in (("left", 0.1), ("right", -0.1)):
        part = part_of(record, arm, arms)
        assert (part.chunk.sequence, part.chunk.stamp_ns) == (record.chunk.sequence, record.chunk.stamp_ns)
        assert part.strong.shape == (kept, 16, 10) and part.choice.actions.shape == (16, 10)
        assert part.chunk.actions[:, 1].mean() == pytest.approx(y, abs=0.1)
        assert (part.choice.actions == part.strong[part.choice.index]).all()


def test_weak_samples_change_no_strong_ones_and_the_arms_noise_differs(arms, own):
    policy = load_arms_policy(load_bundles((own, own), arms), arms)
    encoded = policy.encode(held(arms))
    strong, weak = policy.sample(encoded, 3, 3, np.random.default_rng(1))
    alone, none = policy.sample(encoded, 3, 0, np.random.default_rng(1))
    assert (strong == alone).all() and none is None and weak.shape == strong.shape
    noise = strong - strong.mean(axis=0)
    assert not np.allclose(noise[..., 0], noise[..., 10])


def test_what_does_not_fit_is_refused(arms, own, trained, tmp_path, task):
    bundle = joint_bundle(load_bundles((own, own), arms))
    with pytest.raises(DecodingError, match=r"'bid\+lead' leads the position of one arm, and 'two' has 2"):
        arms_decoder("bid+lead", bundle, arms, 4, 1)
    with pytest.raises(BundleError, match="task"):
        load_bundles((own,), arms)  # of one arm alone
    two_steps = make_tiny_bundle(tmp_path, task, steps=3)
    with pytest.raises(BundleError, match=r"2 steps of 0\.1 s for 'left', 3 steps of 0\.1 s for 'right'; valid"):
        load_arms_policy(load_bundles((own, two_steps), arms), arms)


def test_a_sample_passes_if_every_arm_keeps_its_limits(arms, own):
    _, screen = screens_of(arms, arms.tasks, {"left": None, "right": None})
    still = np.tile([0.5, 0.0, 0.3, 1, 0, 0, 0, -1, 0, 0.04], 2)
    samples = np.tile(still, (3, 16, 1))
    samples[1, :, 0] = samples[2, :, 10] = 0.95  # outside the workspace of the one and of the other
    assert screen.passes(samples).tolist() == [True, False, False]
