"""A task file that is proposed from a data set: what it says, and what it leaves to a person."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from lerobot_robots import ALOHA, G1, INSPIRE, LENGTHS, SO101, SO101_NEW, Demonstrations, aloha, g1, so101
from odd_sets import Memory

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import parse_task
from bid_ros.formats import Column, DataEpisode, mapped
from bid_ros.formats.proposal import propose
from bid_ros.formats.rows import row_stamps
from bid_ros.formats.unit_evidence import gripper_unit, joint_unit, position_unit

SO_RANGES = [(-61.0, 72.5)] * 5 + [(0.6, 97.5)]


def proposed(source):
    found = propose(source, "data/mine")
    return found, parse_task({"rate_hz": 10} | yaml.safe_load(found.text))


def test_so_101_is_in_degrees_and_percent():
    found, task = proposed(so101())
    assert [(item.name, item.kind, item.shape) for item in task.observation] == [
        ("joints", "joints", (5,)), ("main_gripper", "gripper", (1,)), ("front", "image", (16, 24, 3)),
    ]  # fmt: skip
    assert [item.name for item in task.action] == ["joints", "main_gripper"]
    assert task.observation[0].names == SO101[:5]
    assert (task.rate_hz, task.horizon, task.robot, task.description) == (30, 48, "none", "Pick the cube.")
    assert task.data is not None
    assert task.data.unit == {"joints": "deg", "main_gripper": "percent"}
    assert task.data.action == {"joints": "action[0:5]", "main_gripper": "action[5]"}
    assert "joints: deg   # -90 to 190: beyond 2 pi; SO-100 and SO-101 were recorded in degrees" in found.text
    assert "main_gripper: percent   # 0.6 to 97.5, and its name: LeRobot's 0 (shut) to 100 (open)" in found.text
    assert "taken from the data, NOT safe for an arm" in found.text
    assert not found.undecided


def test_numbers_read_with_it_are_rad_and_m_and_inside_its_limits():
    source = so101()
    _, task = proposed(source)
    plain, read = next(source.episodes()), next(iter(mapped(source, task).episodes()))
    np.testing.assert_allclose(read.observations["joints"], np.radians(plain.observations["state"][:, :5]), rtol=1e-6)
    np.testing.assert_allclose(read.actions[:, 5], 0.08 * plain.actions[:, 5] / 100, rtol=1e-6)
    joints, limits = read.actions[:, :5], task.limits
    for reached, limit in (
        (np.abs(np.diff(joints, axis=0)).max() * 30, limits.max_joint_speed),
        (np.abs(np.diff(joints, 2, axis=0)).max() * 900, limits.max_joint_acceleration),
        (np.abs(joints - read.observations["joints"]).max(), limits.max_joint_jump),
    ):
        assert 1.2 * reached < limit < 1.4 * reached
    # A gripper's speed counts over 0.1 s, three rows.
    assert np.abs(read.actions[3:, 5] - read.actions[:-3, 5]).max() * 10 < limits.max_gripper_rate


def test_two_arms_are_one_vector_and_two_grippers():
    found, task = proposed(aloha())
    assert [(item.name, item.size) for item in task.action] == [
        ("joints", 12), ("left_gripper", 1), ("right_gripper", 1),
    ]  # fmt: skip
    assert task.action[0].names == tuple(name for name in ALOHA if "gripper" not in name)
    assert task.data is not None
    assert task.data.unit == {"joints": "rad", "left_gripper": "fraction", "right_gripper": "fraction"}
    assert (
        found.undecided
        == ["'observation.effort' is left out: speeds or forces, which a task takes from a topic (kind: vector)"]
        or "effort" in found.undecided[0]
    )
    read = next(iter(mapped(aloha(), task).episodes()))
    plain = next(aloha().episodes()).actions
    np.testing.assert_allclose(read.actions[:, :12], plain[:, [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]], rtol=1e-6)
    np.testing.assert_allclose(read.actions[:, 13], 0.08 * plain[:, 13], rtol=1e-6)


def test_what_is_left_can_be_taken_by_taking_away_the_comment():
    found, _ = proposed(aloha())
    task = parse_task(yaml.safe_load(found.text.replace("# - {", "- {").replace("# effort:", "effort:")))
    read = next(iter(mapped(aloha(), task).episodes()))
    assert read.observations["effort"].shape == (LENGTHS[0], 14)


def test_hands_of_a_g1_are_a_feature_of_their_own():
    found, task = proposed(g1())
    assert [(item.name, item.size) for item in task.action] == [("joints", 14), ("hands", 14)]
    assert task.action[1].names == G1[14:]
    assert task.data is not None and task.data.unit == {"joints": "rad", "hands": "rad"}
    assert not found.undecided
    inspire = Demonstrations(G1[:14] + INSPIRE, [(-0.8, 1.1)] * 14 + [(0.0, 1.0)] * 12)
    found, task = proposed(inspire)
    assert task.data is not None and task.data.unit == {"joints": "rad"}
    assert found.undecided[0].startswith("unit of 'hands': 0 to 1: angles, or shares of a finger's way")


def test_an_action_without_names_has_those_of_the_state():
    for made, names in ((so101, SO101[:5]), (aloha, tuple(name for name in ALOHA if "gripper" not in name))):
        _, task = proposed(made(named=False))
        assert task.action[0].names == names


def test_a_part_of_an_action_for_each_joint_is_found_by_its_key():
    """As data sets of a G1 have it that were split into columns."""
    source = g1()
    plain = next(source.episodes())

    class Split:
        contents = source.contents.__class__(
            "memory",
            (
                Column("state_0", (1,), "float32", names=("kLeftElbow",), key="observation.state_0"),
                Column("action_0", (1,), "float32", names=("kLeftElbow",), key="action_0", by_key_alone=True),
            ),
            Column("action", (0,), "float32"), LENGTHS, 30.0,
        )  # fmt: skip

        def episodes(self, start=0, names=None):
            values = {"state_0": plain.observations["state"][:, :1], "action_0": plain.actions[:, :1]}
            yield plain.__class__(values, plain.actions[:, :0], plain.stamps_ns)

    found, task = proposed(Split())
    assert [item.name for item in task.action] == ["kLeftElbow"] and not found.undecided
    np.testing.assert_array_equal(next(iter(mapped(Split(), task).episodes())).actions, plain.actions[:, :1])


def test_doubt_is_a_comment_and_is_said():
    found, task = proposed(Demonstrations(SO101_NEW, SO_RANGES, rate_hz=None))
    assert task.data is not None and task.data.unit == {"gripper": "percent"}
    assert "    # joints: deg   # valid: deg or percent. " in found.text
    assert "# rate_hz: 10   # the data set does not say it" in found.text
    assert "max_joint_speed" not in found.text
    assert [sentence.split(":")[0] for sentence in found.undecided] == ["unit of 'joints'", "rate_hz"]


def test_an_action_that_is_not_observed_is_said():
    source = Demonstrations(("a", "b"), [(-1, 1)] * 2)
    source.contents = source.contents.__class__(
        "memory", source.contents.columns, Column("action", (2,), "float32", names=("c", "vel")), LENGTHS, 10.0
    )
    found, _ = proposed(source)
    assert "action 'joints' has no observation of that name and size" in found.undecided[1]


@pytest.mark.parametrize(
    ("judged", "unit"),
    [
        (joint_unit(SO101[:5], -30, 130), "deg"),
        (joint_unit(SO101_NEW[:5], -30, 130), "deg"),
        (joint_unit(SO101_NEW[:5], -100, 88), "percent"),
        (joint_unit(SO101_NEW[:5], -99, 88), ""),
        (joint_unit(SO101[:5], -1, 2), ""),
        (joint_unit(ALOHA[:6], -3.1, 3.1), "rad"),
        (joint_unit((), 0, 4095), ""),
        (gripper_unit(("gripper",), 0.0, 0.08), "m"),
        (gripper_unit(("gripper.pos",), 0.0, 0.08), ""),
        (gripper_unit(("left_gripper",), -0.02, 1.03), "fraction"),
        (gripper_unit(("gripper.pos",), 1.5, 101), "percent"),
        (gripper_unit(("gripper.pos",), -0.2, 2.9), ""),
        (gripper_unit(("gripper",), 0, 85), ""),
        (gripper_unit(("gripper",), -1, 1), ""),
        (gripper_unit(("gripper",), 0, 5.5), ""),
        (position_unit(-0.4, 0.7), "m"),
        (position_unit(-400, 700), ""),
    ],
)
def test_units_are_judged_by_names_and_numbers(judged, unit):
    assert judged.unit == unit and judged.why


def test_a_tool_s_pose_becomes_position_rotation_and_gripper():
    names = (*(f"tool_position.{n}" for n in range(3)), *(f"tool_rotation.{n}" for n in range(6)), "gripper_width")
    found, task = proposed(Demonstrations(names, [(0.3, 0.6)] * 3 + [(-1, 1)] * 6 + [(0, 0.07)]))
    assert [item.kind for item in task.action] == ["position", "rotation_6d", "gripper"]
    assert task.data is not None and task.data.unit == {"tool_position": "m", "gripper_width": "m"}
    assert task.limits.workspace_min == (0.225,) * 3 and task.limits.workspace_max == (0.675,) * 3
    assert task.limits.gripper_max == 0.088 and not found.undecided


def test_what_holds_nothing_to_learn_is_refused_in_a_sentence():
    source = Demonstrations(("dx.vel",), [(-1, 1)])
    with pytest.raises(RecordingError, match=r"holds no observation of a task; it holds state, action: write its task"):
        propose(source, "data/mine")


def test_names_of_several_lines_leave_the_file_what_it_is():
    rows = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    names = ("arm\npos", "vel\nname: other")
    columns = (Column("s\nname: other", (2,), "float32", names=names, key="obs/s\nname: other"),)
    action = Column("action", (2,), "float32", names=names)
    source = Memory(columns, action, [DataEpisode({columns[0].name: rows}, rows, row_stamps(20, 10.0))])
    found = propose(source, "data/two\nname: other")
    task = parse_task({"rate_hz": 10} | yaml.safe_load(found.text))
    assert task.name == "two_name_other" and "obs/s\nname: other[0]" in task.data.observation.values()
