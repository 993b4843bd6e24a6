"""Maps task features to an imported policy's columns."""

import pytest

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.matching import space_for
from bid_ros.importing.policy import ImportOptions
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space

JOINTS = {"name": "joints", "kind": "joints", "shape": [3]}
STATE = {**JOINTS, "name": "observation.state"}


@pytest.fixture(scope="module")
def policy(kit, tmp_path_factory):
    return read_policy(str(kit.write_lerobot(tmp_path_factory.mktemp("matching") / "policy")), ImportOptions())


def test_a_feature_is_found_by_its_name_or_by_the_key_of_data_sets(kit, policy):
    space = space_for(policy, kit.task_for(policy))
    assert [item.columns for item in space.observation] == [(Part(feature="observation.state", at=(0, 1, 2)),)]
    assert (space.observation_steps, space.horizon, space.past_rows) == (2, 8, 1)
    task = kit.task_for(
        policy,
        observation=[{**JOINTS, "name": "first", "shape": [1]}, {**JOINTS, "name": "rest", "shape": [2]}],
        data={"observation": {"first": "observation.state[2]", "rest": "observation.state[1, 0]"}},
    )
    (state,) = space_for(policy, task).observation
    assert state.columns == (Part(feature="first", at=(2,)), Part(feature="rest", at=(1, 0)))


def test_a_unit_of_data_sets_is_that_of_the_policy(kit, policy):
    task = kit.task_for(policy, data={"unit": {"observation.state": "deg"}})
    (state,) = space_for(policy, task).observation
    assert state.columns == (Part(feature="observation.state", at=(0, 1, 2), unit="deg"),)


def test_a_description_of_a_person_comes_first(kit, policy):
    task = kit.task_for(policy)
    given = Space(action=(Part(feature="action", scale=2.0),))
    space = space_for(policy, task, given)
    assert space.action == given.action and space.observation[0].name == "observation.state"


def test_steps_and_rows_may_differ_from_those_of_the_task(kit, policy):
    space = space_for(policy, kit.task_for(policy, observation_steps=1, horizon=5))
    assert (space.observation_steps, space.horizon) == (2, 8)


@pytest.mark.parametrize(
    ("changes", "given", "message"),
    [
        (
            {"observation": [JOINTS]},
            None,
            r"'observation.state' of 3 columns; the task \(joints: joints\) describes none of them",
        ),
        ({"observation": [{**STATE, "shape": [2]}]}, None, r"describes \[0, 1\] of them; valid is each of 0 to 2 once"),
        ({"action": [JOINTS]}, None, r"has 'action' of 2 columns; .* describes \[0, 1, 2\]"),
        ({"data": {"observation": {"observation.state": "observation.state[0:2]"}}}, None, r"describes \[0, 1\]"),
        ({"data": {"action": {"action": "action[x, y]"}}}, None, "names columns of 'action' by words"),
        ({}, Space(horizon=16), "the space has horizon 16; valid for .* is 8"),
        ({}, Space(past_rows=0), "the space has past_rows 0; valid for .* is 1"),
        ({}, Space(action=(Part(feature="action"), Part(ignored=1))), "an action of 3 columns; .* has 2"),
        (
            {},
            Space(observation=(ObservedFeature(name="state", columns=(Part(feature="observation.state"),)),)),
            r"the space describes the inputs state \(3,\); .* has observation.state \(3,\)",
        ),
        ({"horizon": 16}, None, "the network's rows reach 0.6 s ahead"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(kit, policy, changes, given, message, tmp_path):
    from bid_ros.importing.write_bundle import write_imported

    with pytest.raises(BidError, match=message) as error:
        write_imported(policy, None, tmp_path / "bundle", kit.task_for(policy, **changes), space=given)
    assert "\n" not in str(error.value) and not (tmp_path / "bundle").exists()


def test_another_camera_is_named(kit, policy):
    from dataclasses import replace

    from bid_ros.importing.policy import NetworkFeature

    wrist = NetworkFeature("observation.images.wrist", (96, 96, 3))
    seeing = replace(policy, features=(*policy.features, wrist))
    camera = {"name": "wrist", "kind": "image", "shape": [120, 160, 3]}
    space = space_for(seeing, kit.task_for(policy, observation=[STATE, camera]))
    assert (space.observation[1].camera, space.observation[1].size) == ("wrist", (96, 96))
    with pytest.raises(BidError, match=r"observes the images 'observation.images.wrist', .* its cameras are front"):
        space_for(seeing, kit.task_for(policy, observation=[STATE, {**camera, "name": "front"}]))
