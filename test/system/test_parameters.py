"""A parameter file is held against what the nodes declare, before any of them starts."""

from __future__ import annotations

import shutil

import pytest
import yaml

from bid_ros.core.errors import BidError
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.parameters import COMMON, FORMER, check_declared, flattened, load_parameters
from bid_ros.system.run import RunArguments


@pytest.fixture
def file(tmp_path):
    """Write a parameter file with these parameters of the camera node."""

    def write(**parameters):
        path = tmp_path / "given.yaml"
        path.write_text(yaml.safe_dump({"camera": {"ros__parameters": parameters}}))
        return path

    return write


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"tolerance": 0.1}, "node 'camera' has no parameter 'tolerance'; valid are task, cameras, twin, tolerance_s"),
        ({"tolerance_s": "wide"}, "parameter 'tolerance_s' of node 'camera' is 'wide'; valid is a float"),
        ({"tolerance_s": 1}, "parameter 'tolerance_s' of node 'camera' is 1; valid is a float"),
        ({"twin": 1}, "parameter 'twin' of node 'camera' is 1; valid is a bool"),
        ({"tolerance_s": 3.0}, "node 'camera'.*tolerance_s.* is 3.0; valid is 0.0 to 1.0"),
        (
            {"qos_overrides": {"/tf_static": {"publisher": {"reliability": "sure"}}}},
            "qos_overrides./tf_static.publisher.reliability is 'sure'; valid are reliable, best_effort",
        ),
        ({"qos_overrides": {"/tf_static": {"depth": 3}}}, "'qos_overrides./tf_static.depth' is no quality of service"),
    ],
)
def test_what_no_node_takes_is_refused_with_the_file(file, parameters, sentence):
    path = file(**parameters)
    with pytest.raises(BidError, match=f"parameter file {path}: .*{sentence}"):
        load_parameters(path)


def test_groups_of_parameters_get_their_full_names(file):
    given = {"qos_overrides": {"/camera/wrist/image": {"publisher": {"depth": 2, "reliability": "reliable"}}}}
    found = load_parameters(file(tolerance_s=0.5, **given))["camera"]
    name = "qos_overrides./camera/wrist/image.publisher"
    assert found == {"tolerance_s": 0.5, f"{name}.depth": 2, f"{name}.reliability": "reliable"}
    assert flattened({"a": {"b": {"c": 1}}, "d": [2]}, "x") == {"a.b.c": 1, "d": [2]}


@pytest.mark.parametrize("given", [{"a.b": 1, "a": {"b": 2}}, {"a": {"b.c": 1, "b": {"c": 1}}, "d": 0}])
def test_two_spellings_of_one_parameter_are_refused(given):
    with pytest.raises(BidError, match=r"^nodes.yaml: parameter 'a\.b(\.c)?' stands there twice; valid is once"):
        flattened(given, "nodes.yaml")


def test_a_node_with_and_without_its_namespace_is_refused(tmp_path):
    path = tmp_path / "nodes.yaml"
    section = {"ros__parameters": {"tolerance_s": 0.5}}
    path.write_text(yaml.safe_dump({"camera": section, "/left/camera": section}))
    with pytest.raises(BidError, match=f"parameter file {path}: node 'camera' stands there twice"):
        load_parameters(path, "/left/")


def test_parameters_of_every_node_are_known(file):
    given = {"robot": "left", "frame_prefix": "left/", "use_sim_time": False}
    assert set(given) == set(COMMON) and load_parameters(file(**given))["camera"] == given


def test_no_node_is_described_with_an_unknown_parameter(root, tmp_path, file, ros_domain):
    folder = tmp_path / "own"
    shutil.copytree(root / "config" / "franka_place", folder)
    with pytest.raises(BidError, match="has no parameter 'fast'"):
        describe(find_system(folder), RunArguments(parameters=str(file(fast=True)), out=str(tmp_path)))
    own = yaml.safe_load((folder / "nodes.yaml").read_text())
    own["policy"]["ros__parameters"]["thread"] = 2
    (folder / "nodes.yaml").write_text(yaml.safe_dump(own))
    with pytest.raises(BidError, match=r"nodes.yaml: node 'policy' has no parameter 'thread'; valid are .*threads"):
        describe(find_system(folder), RunArguments(out=str(tmp_path)))


@pytest.mark.parametrize(("node", "old"), [("arm", "company_wait_s"), ("episode", "person")])
def test_a_parameter_that_had_another_name_says_its_name_of_today(node, old):
    with pytest.raises(BidError, match=f"^here: parameter '{old}' of node '{node}' is now '{FORMER[old]}'$"):
        check_declared("here", node, {old: True})
    check_declared("here", node, {FORMER[old]: True if old == "person" else 1.0})
