"""Reports of an acceptance beside each other, and the parameters that would make the twin alike."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
import yaml

from bid_ros.core.errors import BidError
from bid_ros.episodes.acceptance import FILE, compared, figures, read_report
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.folder import find_system


def stage(number, lag_s, rest_mm):
    return {
        "stage": number,
        "lag_s": lag_s,
        "off_mm": None if lag_s is None else {"p99": 4.0},
        "resting_mm": {"p50": rest_mm},
        "command_age_ms": {"p99": 60.0},
        "cameras": {"/camera/wrist/image": {"rate_hz": 10.0, "age_ms": {"p50": 60.0}}},
    }


def report(system="ur5_pick", lag_s=0.065, rest_mm=0.1, address=""):
    found = find_system(system)
    robot = found.task.robot
    config = asdict(load_arm_config(found.file("robot.yaml"), address or "twin", not address, robot))
    stages = [stage(1, None, 0.0), stage(2, lag_s, rest_mm), stage(3, lag_s, rest_mm)]
    stops = {"kill": {"noticed_s": 0.2, "rest_s": None}, "cable": {"problems": ["no twin offers it"]}}
    return {"robot": robot, "robot_ip": address, "stages": stages, "stops": stops, "config": config}


def test_figures_have_names_and_what_was_not_measured_is_left_out():
    found = figures(report())
    assert found["stage 2 lag, ms"] == 65.0 and found["/camera/wrist/image age, ms p50"] == 60.0
    assert found["stop kill noticed, s"] == 0.2
    assert not {"stage 1 lag, ms", "stop kill rest, s", "stop cable noticed, s"} & set(found)


def test_a_twin_that_lags_less_than_its_robot_looks_further_ahead():
    found = compared(report(lag_s=0.115, address="192.168.1.10"), report())
    assert ("stage 2 lag, ms", "115", "65") in found["rows"]
    assert yaml.safe_load(found["text"]) == found["parameters"] == {
        "robot.yaml": {"twin": {"lookahead_time_s": 0.1}},
        "nodes.yaml": {
            "arm": {"ros__parameters": {"lookahead_s": 0.115}},
            "camera": {"ros__parameters": {"twin_delay_s": 0.06}},
        },
    }  # fmt: skip


@pytest.mark.parametrize(("lag_s", "rest_mm"), [(0.05, 0.7), (0.1, 0.7), (0.05, 1.4), (0.03, 0.1)])
def test_a_franka_twin_gets_stiffness_and_friction_that_its_driver_takes(lag_s, rest_mm, tmp_path, root):
    robot = report("franka_place", lag_s, rest_mm, "172.16.0.2")
    found = compared(robot, report("franka_place", 0.05, 0.7))["parameters"]["robot.yaml"]["twin"]
    softer = found["translational_stiffness"] - 2500.0
    assert (softer < 0) == (lag_s > 0.05) and (softer == 0) == (lag_s == 0.05)
    least = found["friction_coulomb"][0] - 0.68
    assert abs(least) < 1e-6 if (lag_s, rest_mm) == (0.05, 0.7) else (least < 0) == (lag_s == 0.05)
    content = yaml.safe_load((root / "config" / "franka_place" / "robot.yaml").read_text())
    content["twin"] |= found
    (file := tmp_path / "robot.yaml").write_text(yaml.safe_dump(content))
    assert load_arm_config(file, "twin", True, "franka").friction_coulomb == tuple(found["friction_coulomb"])


@pytest.mark.parametrize(
    ("twin", "word"),
    [
        (report(address="192.168.1.10"), "is of a robot at 192.168.1.10; valid is the twin of a ur"),
        (report("franka_place"), "is of the twin of a franka; valid is the twin of a ur"),
        ({**report(), "stages": []}, "has no stage that tells the lag of the tool"),
    ],
)
def test_what_is_no_twin_of_the_robot_is_refused(twin, word):
    with pytest.raises(BidError, match=word):
        compared(report(address="192.168.1.20"), twin)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"stages": []}'])
def test_a_folder_without_a_report_is_said(tmp_path, text):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(BidError, match="holds no report of bid accept; valid is a folder that its --out named"):
        read_report(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(report()))
    assert read_report(tmp_path)["robot"] == "ur"
