"""The servo of what a task commands, the tool or the joints, and how it begins at the arm."""

import time
from typing import TypeAlias

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_servo import JointServo
from bid_ros.control.servo import ChunkServo
from bid_ros.core.errors import ArmError
from bid_ros.core.task import Task
from bid_ros.robots.base import Arm, ArmState, JointArm

AnyServo: TypeAlias = ChunkServo | JointServo


def build_servo(task: Task, arm: Arm, model: ArmModel | None, lookahead_s: float) -> AnyServo:
    """Return the servo of a task.

    Args:
        task: says whether the tool or the joints are commanded.
        arm: that follows.
        model: kinematics of its joints, if these are commanded; else None.
        lookahead_s: as :class:`bid_ros.control.servo_base.Servo`.

    Raises:
        ArmError: the task commands joints, and the robot takes no set-points of them.
    """
    if model is None:
        return ChunkServo(task, lookahead_s)
    if not isinstance(arm, JointArm):
        raise ArmError(
            f"robot '{arm.info.name}' takes no set-points of its joints; valid is a task that commands a position"
        )
    return JointServo(task, model, lookahead_s)


def follow(arm: Arm, servo: AnyServo) -> None:
    """Let the arm follow set-points of what the servo commands. Raises ArmError as :meth:`Arm.start`."""
    if isinstance(servo, JointServo) and isinstance(arm, JointArm):
        arm.start_joints()
    else:
        arm.start()


def begin_at(servo: AnyServo, state: ArmState) -> None:
    """Let the servo begin at rest where the arm is. A latched stop remains."""
    if isinstance(servo, JointServo):
        servo.start(state.joint_positions, time.time_ns())
    else:
        servo.start(state.tool_position, state.tool_quaternion, time.time_ns())
