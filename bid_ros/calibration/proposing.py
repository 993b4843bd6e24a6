"""Poses of the tool from which a board is seen from many sides, inside the limits of a task."""

from typing import Final

import numpy as np

from bid_ros.calibration.board import Board
from bid_ros.calibration.rigid import from_pose, inverse, rigid
from bid_ros.cameras.lens import Lens
from bid_ros.control.arm_model import ArmModel
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import DOWN_QUATERNION, Array, matrix_from_vector
from bid_ros.core.task import Task

TILT: Final = 0.9  # of the task's largest tilt
YAW: Final = 0.6  # rad either way about the vertical
INSIDE: Final = 0.01  # m that the tool stays inside the workspace
BORDER_PX: Final = 15.0  # from the image's edge that the board stays
LARGE: Final = 0.15  # of the image's width that the board takes at least
TRIES: Final = 4000
JOINT_MARGIN: Final = 0.15  # rad
HIGH: Final = 0.12  # m above the lower end of the workspace: what the tool holds, and how the arm sags, are not known


def proposed(
    task: Task,
    board: Board,
    lens: Lens,
    camera: Array,
    placed: Array,
    on_tool: bool,
    count: int,
    arm: ArmModel | None = None,
    seed: int = 0,
) -> Array:
    """Return poses ``(count, 4, 4)`` of the tool, base frame, at which the camera should see the whole board.

    They differ as much as the limits allow: each is the one of many that is farthest from those before it.

    Args:
        task: its limits: workspace and tilt.
        board, lens: as they are described.
        camera, placed: ``(4, 4)`` where the camera and the board are thought to be; each in what it is fixed to.
        on_tool: the camera is fixed to the tool and the board to the base; otherwise the other way round.
        count: number of poses.
        arm: must reach them, well inside the limits of its joints; None: nobody knows its joints.
        seed: of the choice.

    Raises:
        CalibrationError: fewer poses show the board.
    """
    tools = _candidates(task, np.random.default_rng(seed))
    motions = inverse(tools) if on_tool else tools
    tools = tools[_visible(inverse(camera) @ motions @ placed, board, lens)]
    if arm is not None:
        tools = tools[_reached(arm, tools)]
    if len(tools) < count:
        raise CalibrationError(
            f"the board would be seen whole from {len(tools)} of {TRIES} poses inside the limits; valid are {count} or "
            "more: put it elsewhere, or correct position and quaternion of the camera, of which a rough guess is enough"
        )
    return np.asarray(tools[_farthest(tools, count)])


def _candidates(task: Task, random: np.random.Generator) -> Array:
    """Return poses ``(n, 4, 4)`` of the tool inside the limits."""
    limits = task.limits
    low, high = np.array(limits.workspace_min) + INSIDE, np.array(limits.workspace_max) - INSIDE
    low[2] = min(low[2] + HIGH, high[2])
    places = random.uniform(low, high, (TRIES, 3))
    about, tilt = random.uniform(-np.pi, np.pi, TRIES), TILT * limits.max_tilt * np.sqrt(random.uniform(0, 1, TRIES))
    axes = np.stack([np.cos(about), np.sin(about), np.zeros(TRIES)], axis=1)
    yaw = random.uniform(-YAW, YAW, TRIES)[:, None] * np.array([0.0, 0.0, 1.0])
    down = from_pose(np.zeros(3), DOWN_QUATERNION)[:3, :3]
    return rigid(matrix_from_vector(axes * tilt[:, None]) @ matrix_from_vector(yaw) @ down, places)


def _visible(seen: Array, board: Board, lens: Lens) -> Array:
    """Return for which poses ``(n, 4, 4)`` of the board in the camera it is whole, large enough and seen from front."""
    (width, height), (wide, tall) = board.size, lens.size
    edges = np.array([[0, 0, 0], [width, 0, 0], [0, height, 0], [width, height, 0]])
    points = np.einsum("nij,kj->nki", seen[:, :3, :3], edges) + seen[:, None, :3, 3]
    front = (points[..., 2] > 0.05).all(axis=1) & (seen[:, 2, 2] > 0.5)
    pixels = points[..., :2] / np.maximum(points[..., 2:], 0.05) * lens.focal + lens.centre
    inside = ((pixels > BORDER_PX) & (pixels < np.array([wide, tall]) - BORDER_PX)).all(axis=(1, 2))
    across = np.ptp(pixels, axis=1).max(axis=1)
    return np.asarray(front & inside & (across > LARGE * wide))


def _reached(arm: ArmModel, tools: Array) -> Array:
    """Return which poses ``(n, 4, 4)`` an arm reaches."""
    joints, reached = arm.chain.solve(tools[:, :3, 3], tools[:, :3, :3], arm.rest, arm.rest)
    low, high = np.array(arm.limits.low) + JOINT_MARGIN, np.array(arm.limits.high) - JOINT_MARGIN
    return np.asarray(reached & ((joints > low) & (joints < high)).all(axis=1))


def _farthest(tools: Array, count: int) -> list[int]:
    """Return the rows of so many poses, each the farthest from those before it; a rad counts as 0.3 m."""
    features = np.concatenate([tools[:, :3, 3], 0.3 * tools[:, :3, :3].reshape(len(tools), 9)], axis=1)
    chosen = [int(np.argmin(np.linalg.norm(features - features.mean(axis=0), axis=1)))]
    nearest = np.linalg.norm(features - features[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(features - features[chosen[-1]], axis=1))
    return chosen
