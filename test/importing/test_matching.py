"""Features of a task and of an imported policy."""

import pytest

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.matching import match_features
from bid_ros.importing.policy import ImportOptions

JOINTS = {"name": "joints", "kind": "joints", "shape": [3]}


@pytest.fixture(scope="module")
def policy(kit, tmp_path_factory):
    return read_policy(str(kit.write_lerobot(tmp_path_factory.mktemp("matching") / "policy")), ImportOptions())


def test_a_feature_is_found_by_its_name_or_by_the_key_of_data_sets(kit, policy):
    assert match_features(policy, kit.task_for(policy)) == {"observation.state": "observation.state"}
    task = kit.task_for(policy, observation=[JOINTS], data={"observation": {"joints": "observation.state[0:3]"}})
    assert match_features(policy, task) == {"observation.state": "joints"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"observation": [JOINTS]},
            r"observes 'observation.state' \(3,\), which task 'imported' has not; it .* joints",
        ),
        (
            {"observation": [{**JOINTS, "name": "observation.state", "shape": [2]}]},
            r"'observation.state' of task 'imported' has \(2,\); valid are equal shapes",
        ),
        (
            {"observation": [JOINTS, {**JOINTS, "name": "observation.state"}]},
            r"task 'imported' observes joints \(3,\), which .* does not",
        ),
        ({"horizon": 16}, "horizon is 8, task 'imported' says 16; valid are equal numbers"),
        ({"observation_steps": 1}, "observation_steps is 2, task 'imported' says 1"),
        ({"action": [JOINTS]}, "the size of the action is 2, task 'imported' says 3"),
        ({"data": {"action": {"action": "action[1, 0]"}}}, r"action's columns in the order \[1, 0\]; valid"),
        (
            {"data": {"observation": {"observation.state": "observation.state[1, 0, 2]"}}},
            "which task 'imported' has not",
        ),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(kit, policy, changes, message):
    with pytest.raises(BidError, match=message):
        match_features(policy, kit.task_for(policy, **changes))
