"""A folder that joins the systems of several arms: its nodes, and what it refuses."""

import importlib

import pytest
import yaml

from bid_ros.cli import main
from bid_ros.core.errors import BidError, BundleError, TaskError
from bid_ros.nodes.parameters import check_parameters
from bid_ros.system.arms import describe_arms, find_arms
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments


def written(folder, **changes):
    content = {
        "name": "two",
        "arms": {
            "left": {"system": "franka_place", "base": [0.0, 0.5, 0.0]},
            "right": {"system": "franka_place", "base": [0.0, -0.5, 0.0]},
        },
    }
    (folder / "arms.yaml").write_text(yaml.safe_dump({**content, **changes}))
    return folder


def test_each_arm_has_the_nodes_of_its_own_system_and_both_share_two(tmp_path):
    specs = describe_arms(find_arms("franka_place_two"), RunArguments(out=str(tmp_path), namespace="/cell"))
    found = {spec.label: spec for spec in specs}
    assert len(found) == len(specs)
    own = {"twin", "camera", "safety", "arm", "recorder"}
    assert set(found) == {f"{arm}.{name}" for arm in ("left", "right") for name in own} | {
        "arms_policy",
        "arms_episode",
    }
    assert specs[-1].label == "arms_episode"
    assert {found[f"left.{name}"].namespace for name in own} == {"/cell/left"}
    for arm, other in (("left", "/cell/right"), ("right", "/cell/left")):
        assert found[f"{arm}.safety"].parameters["partners"] == [other]
        assert found[f"{arm}.safety"].parameters["required"] == ["camera", "policy", "arm"]
        assert found[f"{arm}.arm"].parameters["required"] == ["policy", "safety"]
    addresses = {found[f"{arm}.arm"].parameters["robot_ip"] for arm in ("left", "right")}
    assert len(addresses) == 2
    policy, episode = found["arms_policy"].parameters, found["arms_episode"].parameters
    assert (policy["decoder"], policy["samples"]) == ("bid", 8) and len(policy["bundles"]) == 2
    assert {"left/policy", "right/policy", "left/arm"} <= set(episode["nodes"])
    for spec in specs:
        declared = importlib.import_module(f"bid_ros.nodes.{spec.executable}").PARAMETERS
        check_parameters(spec.label, declared, spec.parameters)


def test_without_a_policy_each_arm_has_its_own_script(tmp_path):
    specs = describe_arms(find_arms("franka_place_two"), RunArguments(out=str(tmp_path), driver="scripted"))
    labels = {spec.label: spec for spec in specs}
    assert {"left.teleop", "right.teleop"} <= set(labels) and "arms_policy" not in labels
    assert labels["arms_episode"].parameters["labels"] == ["clean", "diverse"]


def test_workspaces_that_overlap_start_nothing(tmp_path, capsys):
    near = {arm: {"system": "franka_place", "base": [0.0, y, 0.0]} for arm, y in (("left", 0.3), ("right", -0.3))}
    folder, out = written(tmp_path, arms=near), tmp_path / "out"
    for verb in ("up", "rehearse"):
        assert main([verb, str(folder), "--out", str(out)]) == 2
        said = capsys.readouterr().err
        assert (
            said.startswith("error: the workspaces of the arms 'left' and 'right' overlap by 0.2") and not out.exists()
        )


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        (
            {"robot_ip": "172.16.0.2"},
            BidError,
            r"robot_ip is '172.16.0.2', but .* has 2 arms, which run in their twins",
        ),
        ({"human": True}, BidError, "human is True"),
        ({"driver": "gamepad"}, BidError, "driver is 'gamepad', which a person holds"),
        ({"decoder": "bid+lead"}, BidError, "leads the position of one arm"),
    ],
)
def test_what_only_one_arm_can_is_refused(tmp_path, arguments, error, why):
    with pytest.raises(error, match=why):
        describe_arms(find_arms(written(tmp_path)), RunArguments(out=str(tmp_path / "out"), **arguments))


def test_a_bundle_of_one_arm_is_none_of_both(tmp_path, root):
    arguments = RunArguments(out=str(tmp_path / "out"), bundle=str(root / "models" / "franka_place"))
    with pytest.raises(BundleError, match="task"):
        describe_arms(find_arms(written(tmp_path)), arguments)


def test_other_verbs_say_that_they_take_one_arm(tmp_path):
    for named in (written(tmp_path), "franka_place_two"):
        with pytest.raises(BidError, match="joins several arms, which only bid up and bid rehearse take"):
            find_system(named)
    assert find_arms("franka_place") is None and find_arms("nothing") is None
    with pytest.raises(TaskError, match="arms are left; valid are two or more"):
        find_arms(written(tmp_path, arms={"left": {"system": "franka_place", "base": [0.0, 0.0, 0.0]}}))
