"""What a robot executes while a decision is computed: given clean, or as a state that is rolled forward."""

import numpy as np
import pytest
from small_task import SMALL

from bid_ros.core.task import Task, parse_task
from bid_ros.policy.committed import Prefix, continued, roll_forward, rolled_features


def make(*observed: dict[str, str]) -> Task:
    action = [{"name": "gripper_width", "kind": "gripper"}, {"name": "tool_position", "kind": "position"}]
    return parse_task({**SMALL, "observation": list(observed), "action": action})


POSITION = {"name": "tool_position", "kind": "position"}
CUP = {"name": "cup_position", "kind": "position"}


def test_given_rows_take_the_place_of_samples_in_each_environment() -> None:
    samples = np.zeros((3, 2, 4, 1), dtype=np.float32)
    rows = np.arange(1, 9, dtype=np.float32).reshape(2, 4, 1)
    put = Prefix(rows, np.array([0, 3])).put(samples)
    assert put.dtype == np.float32
    np.testing.assert_array_equal(put[:, 0], 0.0)
    np.testing.assert_array_equal(put[:, 1, :, 0], [[5, 6, 7, 0]] * 3)
    assert not samples.any(), "the samples are the sampler's"


def test_the_state_is_where_the_committed_actions_lead() -> None:
    task = make(POSITION, CUP)
    assert [(item.name, own) for item, own in rolled_features(task)] == [("tool_position", slice(1, 4))]
    seen = {"tool_position": np.array([[1.0] * 3, [2.0] * 3]), "cup_position": np.zeros((2, 3))}
    committed = np.array([[0, 9, 9, 9], [0, 3, 3, 3], [0, 4, 4, 4]], dtype=np.float64)
    for delay, wanted in ((1, [2, 3]), (2, [3, 4])):
        rolled = roll_forward(task, seen, committed[: 1 + delay])
        np.testing.assert_array_equal(rolled["tool_position"][:, 0], wanted)
        assert rolled["cup_position"] is seen["cup_position"], "nobody knows where the cup will be"


@pytest.mark.parametrize("delay", [0, 2])
def test_a_chunk_begins_with_what_is_committed(delay: int) -> None:
    """One that was predicted from the rolled state begins later, so its last rows are beyond the horizon."""
    committed, chunks = np.array([[10.0], [11.0], [12.0]]), np.arange(12.0).reshape(2, 6, 1)
    whole = continued(committed, chunks, delay)
    np.testing.assert_array_equal(whole[:, :3], [committed] * 2)
    np.testing.assert_array_equal(whole[:, 3:], chunks[:, 3 - delay : 6 - delay])
