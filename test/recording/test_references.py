from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.task import Feature
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
    joints = replace(task, action=(Feature("joints", "joints", (7,)),))
    with pytest.raises(RecordingError, match="action 'joints' of kind 'joints' is not recorded; valid are position"):
        References(joints)
