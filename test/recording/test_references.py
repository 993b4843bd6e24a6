from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.recording.references import References

MS = 1_000_000
START = 1_700_000_000_000_000_000


def status(kit, milliseconds, x, turn=0.0, gripper=0.04, frame="base"):
    message = ArmStatus(reference_gripper=gripper)
    kit.set_pose(message.reference, (x, 0.0, 0.3), turn)
    return kit.stamped(message, START + milliseconds * MS, frame)


def at(references, *milliseconds):
    return references.at(np.array([START + number * MS for number in milliseconds], dtype=np.int64))


def test_pose_is_interpolated_and_the_gripper_holds_what_was_asked_for(task, kit):
    references = References(task)
    for message in (status(kit, 0, 0.4), status(kit, 20, 0.5, 0.4, 0.08), status(kit, 40, 0.7, 0.4, 0.08)):
        references.add(message)
    actions, known = at(references, 0, 5, 20, 30, 40)
    assert known.all()
    np.testing.assert_allclose(actions[:, 0], [0.4, 0.425, 0.5, 0.6, 0.7])
    np.testing.assert_allclose(actions[:, 9], [0.04, 0.04, 0.08, 0.08, 0.08])
    np.testing.assert_allclose(actions[1, 3:9], matrix_to_6d(matrix_from_vector([0, 0, 0.1])), atol=1e-9)


def test_an_arm_without_a_gripper_has_references_too(task, kit):
    """Its reference of the gripper is NaN, and the task asks for none."""
    references = References(replace(task, action=task.action[:2]))
    for message in (status(kit, 0, 0.4, gripper=float("nan")), status(kit, 20, 0.5, gripper=float("nan"))):
        references.add(message)
    actions, known = at(references, 10)
    assert known.all() and actions.shape == (1, 9) and actions[0, 0] == pytest.approx(0.45)


def test_rotation_takes_the_short_way_when_the_quaternion_changes_sign(task, kit):
    references = References(task)
    references.add(status(kit, 0, 0.4, 0.2))
    flipped = status(kit, 20, 0.4, 0.4)
    flipped.reference.orientation.z *= -1
    flipped.reference.orientation.w *= -1
    references.add(flipped)
    actions, _ = at(references, 10)
    np.testing.assert_allclose(actions[0, 3:9], matrix_to_6d(matrix_from_vector([0, 0, 0.3])), atol=1e-9)


def test_instants_without_a_message_near_enough_on_both_sides_are_not_known(task, kit):
    references = References(task)
    assert not at(references, 0)[1].any()
    for milliseconds in (0, 20, 300, 320):
        references.add(status(kit, milliseconds, 0.4))
    assert at(references, -1, 0, 20, 50, 150, 310, 320, 321)[1].tolist() == [
        False,
        True,
        True,
        False,
        False,
        True,
        True,
        False,
    ]


def test_messages_without_a_usable_reference_are_ignored(task, kit):
    references = References(task)
    references.add(status(kit, 0, 0.4))
    not_in_control = status(kit, 10, 9.0)
    not_in_control.reference.orientation.w = 0.0
    for message in (
        not_in_control,
        status(kit, 12, float("nan")),
        status(kit, 14, 9.0, frame="world"),
        status(kit, 0, 9.0),
    ):
        references.add(message)
    references.add(status(kit, 20, 0.4))
    actions, known = at(references, 10, 12, 14)
    assert known.all()
    np.testing.assert_allclose(actions[:, 0], 0.4)


def test_action_that_is_not_recorded_is_named(task):
    points = replace(task, action=(Feature("hand", "points", (2,)),))
    with pytest.raises(RecordingError, match="action 'hand' of kind 'points' is not recorded; valid are position"):
        References(points)


def joint_reference(kit, milliseconds, values):
    return kit.stamped(JointState(position=values), START + milliseconds * MS, "base")


def test_joints_are_those_that_were_streamed_and_interpolated(task, kit):
    action = (Feature("arm", "joints", (7,)), Feature("gripper", "gripper"))
    references = References(replace(task, action=action))
    assert references.topics == ("arm/status", "arm/joint_reference")
    for milliseconds, value in ((0, 0.0), (20, 0.2), (40, 0.4)):
        references.take("arm/status", status(kit, milliseconds, 9.0, gripper=0.01 * value))
        references.take("arm/joint_reference", joint_reference(kit, milliseconds, [value] * 7))
    references.take("joint_states", joint_reference(kit, 45, [9.0] * 7))
    references.take("arm/joint_reference", joint_reference(kit, 30, [9.0] * 7))  # older than the last one
    references.take("arm/joint_reference", joint_reference(kit, 50, [9.0] * 6))
    references.take("arm/joint_reference", joint_reference(kit, 50, [float("nan")] * 7))
    actions, known = at(references, 0, 5, 30, 40)
    assert known.all() and actions.shape == (4, 8)
    np.testing.assert_allclose(actions[:, :7], np.tile([[0.0], [0.05], [0.3], [0.4]], 7))
    np.testing.assert_allclose(actions[:, 7], [0.0, 0.0, 0.002, 0.004])


def test_joints_are_commanded_by_their_names(task, kit):
    names = [f"fr3_joint{number}" for number in range(1, 8)]
    for said, called in (((), names), (tuple("gfedcba"), [*"gfedcba"])):
        references = References(replace(task, action=(Feature("arm", "joints", (7,), names=said),)))
        for milliseconds in (0, 20):
            references.add(status(kit, milliseconds, 0.4))
            message = JointState(
                name=sorted(called)[::-1], position=[0.1 * called.index(name) for name in sorted(called)[::-1]]
            )
            references.add_joints(kit.stamped(message, START + milliseconds * MS, "base"))
        np.testing.assert_allclose(at(references, 10)[0][0], 0.1 * np.arange(7))


def test_rows_without_commanded_joints_are_not_known(task, kit):
    references = References(replace(task, action=(Feature("arm", "joints", (7,)),)))
    for milliseconds in (0, 20, 40, 400):
        references.add(status(kit, milliseconds, 0.4))
    assert not at(references, 10)[1].any()
    for milliseconds in (0, 20):
        references.add_joints(joint_reference(kit, milliseconds, [0.0] * 7))
    assert at(references, 10, 30)[1].tolist() == [True, False]
