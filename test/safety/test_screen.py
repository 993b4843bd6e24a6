"""The screen agrees with the safety node's envelope."""

from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import DOWN
from joint_task import joint_task, model_of

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import DOWN_6D, matrix_from_vector, matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.motion import MotionEnvelope
from bid_ros.safety.screen import Screen

STAMP = 1_000_000_000


@pytest.fixture
def task(root):
    return load_task(root / "config" / "ur5_pick" / "task.yaml")


def samples(task, count=400, seed=0):
    """Chunks that wander from the middle of the workspace, from gently to wildly: some break each of the limits."""
    rng = np.random.default_rng(seed)
    middle = (np.array(task.limits.workspace_min) + task.limits.workspace_max) / 2
    ways = np.cumsum(rng.standard_normal((count, task.horizon, 3)), axis=1)
    smooth = np.cumsum(ways, axis=1) / task.horizon
    shares = rng.choice([0.0, 1.0], (count, 1, 1))
    steps = np.geomspace(1e-4, 0.05, count)[:, None, None] * (shares * smooth + (1 - shares) * ways)
    chunks = np.zeros((count, task.horizon, task.action_dim))
    chunks[..., task.columns("position")] = middle + steps
    chunks[..., task.columns("rotation_6d")] = DOWN_6D
    chunks[..., task.columns("gripper")] = task.limits.gripper_max
    return chunks


@pytest.mark.parametrize(
    ("limits", "broken"), [({}, {"speed", "acceleration", "workspace"}), ({"max_jerk": 20.0}, {"jerk"})]
)
def test_it_passes_what_the_envelope_passes(task, limits, broken):
    task = replace(task, limits=replace(task.limits, **limits))
    chunks, envelope, rules = samples(task), Envelope(task), set()
    passed = Screen(task).passes(chunks)
    for chunk, ok in zip(chunks, passed, strict=True):
        rows = chunk[task.observation_steps - 1 :]
        action = ActionChunk(STAMP, task.dt_ns, rows, frame_id=task.base_frame)
        verdict = envelope.check(action, STAMP, rows[0, task.columns("position")])
        assert verdict.ok == ok, verdict.reason
        rules.add(verdict.rule)
    assert rules >= {"", *broken}


def test_past_rows_and_numbers_that_are_not_finite(task):
    chunk = samples(task, 1)
    past, now = np.array(chunk), np.array(chunk)
    past[0, 0, task.columns("position")] = 99.0
    now[0, -1, task.columns("position")] = np.nan
    screen = Screen(task)
    assert screen.passes(past).all() and not screen.passes(now).any()


def test_of_a_task_that_commands_poses_the_arm_changes_nothing(task):
    chunks, arm = samples(task), model_of(joint_task("ur"))
    passed = MotionEnvelope(task, arm).keeps(chunks, 0.1)
    assert 0 < passed.sum() < len(chunks)
    np.testing.assert_array_equal(passed, MotionEnvelope(task).keeps(chunks, 0.1))


def test_without_a_position_everything_passes(task):
    actions = tuple(feature for feature in task.action if feature.kind == "gripper")
    assert Screen(replace(task, action=actions)).passes(np.full((3, task.horizon, 1), 99.0)).all()


def test_it_drops_what_turns_too_fast_tilts_or_moves_the_gripper_too_fast(task):
    task = replace(task, limits=replace(task.limits, max_gripper_rate=0.5))
    resting = np.repeat(samples(task, 1)[:, :1], task.horizon, axis=1)
    fast, tilted, gripping = resting.copy(), resting.copy(), resting.copy()
    turns = [matrix_from_vector([0, 0, 0.2 * row]) @ DOWN for row in range(task.horizon)]
    fast[..., task.columns("rotation_6d")] = matrix_to_6d(np.array(turns))
    tilted[..., task.columns("rotation_6d")] = matrix_to_6d(matrix_from_vector([0.7, 0, 0]) @ DOWN)
    gripping[:, 6:, task.columns("gripper")] = 0.0
    passed = Screen(task).passes(np.concatenate([resting, fast, tilted, gripping]))
    assert passed.tolist() == [True, False, False, False]
