"""Poses of the tool from which a board is seen from many sides, inside the limits of a task."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.calibration.board import QUIET, Board
from bid_ros.calibration.detection import Sighting, board_pose
from bid_ros.calibration.rigid import from_pose, inverse, rigid
from bid_ros.calibration.solving import closed_form
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
ROOM: Final = 0.04  # m around a board that is held: also on the way from one pose to another
SPARE: Final = 2  # times as many poses as images are wanted: the gripper may hide the board
JOINT_MARGIN: Final = 0.15  # rad
HIGH: Final = 0.12  # m above the lower end of the workspace: what the tool holds, and how the arm sags, are not known

NEAR_TURNS: Final = (  # rad, about the tool's axes
    *((0.18, 0.0, 0.0), (0.0, 0.18, 0.0), (-0.1, -0.1, 0.3)),
    *((-0.18, 0.0, 0.0), (0.0, -0.18, 0.0), (0.1, 0.1, -0.3)),
)
ROUGH: Final = 4  # images that tell roughly where camera and board are

Reach: TypeAlias = Callable[[Array], NDArray[np.bool_]]


class PosePlan:
    """Where to go next: small turns where the arm is, then many sides of the board, once it is known roughly where.

    So nothing needs to be known of the camera's pose beforehand. The camera must see the board where the arm is. The
    first images only scout: so near to each other they would not add to the result.

    Args:
        task: its limits: workspace and tilt.
        board, lens: as they are described.
        reach: which poses the arm reaches, as :func:`reach_of` makes it; None: nobody knows its joints.
        on_tool: the camera is fixed to the tool and the board to the base; otherwise the other way round.
        here: ``(4, 4)`` present pose of the tool, base frame.
        count: number of images wanted, without those that scout.

    Attributes:
        scouting: the pose that was returned last is one of the first, near ones.
    """

    def __init__(
        self, task: Task, board: Board, lens: Lens, reach: Reach | None, on_tool: bool, here: Array, count: int
    ) -> None:
        self._task, self._board, self._lens, self._reach = task, board, lens, reach
        self._on_tool, self._count = on_tool, count
        self._queue: list[Array] = [here, *_near(task, here)]
        self._scouts = 0
        self.scouting = True

    def next(self, taken: Sequence[tuple[Array, Sighting]]) -> Array | None:
        """Return the next pose ``(4, 4)`` of the tool; None: there are enough images, or no more poses.

        Args:
            taken: the images that show the board so far, in two parts, the first while scouting: measured poses of the
                tool, and what was seen.

        Raises:
            CalibrationError: the board was not seen from where the arm began, or is seen from too few poses.
        """
        if self.scouting and (len(taken) >= ROUGH or not self._queue):
            self.scouting = False
            self._queue, self._scouts = self._wide(taken), len(taken)
        if not self.scouting and len(taken) - self._scouts >= self._count:
            return None
        return self._queue.pop(0) if self._queue else None

    def _wide(self, taken: Sequence[tuple[Array, Sighting]]) -> list[Array]:
        if len(taken) < ROUGH:
            raise CalibrationError(
                f"the board was seen in {len(taken)} of {len(NEAR_TURNS) + 1} images around where the arm began; valid "
                f"are {ROUGH} or more: begin where the camera sees the board whole, and point the tool down"
            )
        tools = np.stack([tool for tool, _ in taken])
        seen = np.stack([board_pose(sighting, self._board, self._lens) for _, sighting in taken])
        camera, placed = closed_form(inverse(tools) if self._on_tool else tools, seen)
        asked = (self._task, self._board, self._lens, camera, placed, self._on_tool)
        return [*proposed(*asked, self._count, SPARE * self._count, self._reach)]


def _near(task: Task, here: Array) -> list[Array]:
    """Return poses around the present one that stay inside the limits."""
    low, high = np.array(task.limits.workspace_min), np.array(task.limits.workspace_max)
    found = []
    for turn in NEAR_TURNS:
        pose = here @ rigid(matrix_from_vector(np.array(turn)), np.zeros(3))
        tilt = np.arccos(np.clip(-pose[2, 2], -1.0, 1.0))
        if tilt < TILT * task.limits.max_tilt and ((pose[:3, 3] >= low) & (pose[:3, 3] <= high)).all():
            found.append(pose)
    return found


def proposed(
    task: Task,
    board: Board,
    lens: Lens,
    camera: Array,
    placed: Array,
    on_tool: bool,
    count: int,
    most: int,
    reach: Reach | None = None,
    seed: int = 0,
) -> Array:
    """Return poses ``(n, 4, 4)`` of the tool, base frame, at which the camera should see the whole board.

    They differ as much as the limits allow: each is the one of many that is farthest from those before it.

    Args:
        task: its limits: workspace and tilt.
        board, lens: as they are described.
        camera, placed: ``(4, 4)`` where the camera and the board are thought to be; each in what it is fixed to.
        on_tool: the camera is fixed to the tool and the board to the base; otherwise the other way round.
        count, most: least and largest number of poses.
        reach: as :class:`PosePlan`.
        seed: of the choice.

    Raises:
        CalibrationError: fewer poses show the board.
    """
    tools = _candidates(task, np.random.default_rng(seed))
    motions = inverse(tools) if on_tool else tools
    clear = np.ones(len(tools), dtype=bool) if on_tool else _clear(task, tools @ placed, board)
    tools = tools[clear & _visible(inverse(camera) @ motions @ placed, board, lens)]
    if reach is not None:
        tools = tools[reach(tools)]
    if len(tools) < count:
        raise CalibrationError(
            f"the board would be seen whole from {len(tools)} of {TRIES} poses inside the limits; valid are {count} or "
            "more: put it elsewhere, or correct position and quaternion of the camera, of which a rough guess is enough"
        )
    return np.asarray(tools[_farthest(tools, min(most, len(tools)))])


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


def _visible(seen: Array, board: Board, lens: Lens) -> NDArray[np.bool_]:
    """Return for which poses ``(n, 4, 4)`` of the board in the camera it is whole, large enough and seen from front."""
    (width, height), (wide, tall) = board.size, lens.size
    edges = np.array([[0, 0, 0], [width, 0, 0], [0, height, 0], [width, height, 0]])
    points = np.einsum("nij,kj->nki", seen[:, :3, :3], edges) + seen[:, None, :3, 3]
    front = (points[..., 2] > 0.05).all(axis=1) & (seen[:, 2, 2] > 0.5)
    pixels = points[..., :2] / np.maximum(points[..., 2:], 0.05) * lens.focal + lens.centre
    inside = ((pixels > BORDER_PX) & (pixels < np.array([wide, tall]) - BORDER_PX)).all(axis=(1, 2))
    across = np.ptp(pixels, axis=1).max(axis=1)
    return np.asarray(front & inside & (across > LARGE * wide))


def _clear(task: Task, boards: Array, board: Board) -> NDArray[np.bool_]:
    """Return which poses ``(n, 4, 4)`` of a board that is held, base frame, keep clear of the table and the like.

    The safety node knows of such a board only what the task's ``tool_shape`` says.
    """
    across, down = np.meshgrid(
        np.linspace(-QUIET, board.columns + QUIET, 7), np.linspace(-QUIET, board.rows + QUIET, 7)
    )
    points = board.square * np.stack([across.ravel(), down.ravel(), 0 * across.ravel()], axis=1)
    places = np.einsum("nij,kj->nki", boards[:, :3, :3], points) + boards[:, None, :3, 3]
    clear = (places[..., 2] > task.limits.workspace_min[2]).all(axis=1)
    for place in task.limits.keep_out:
        clear &= (place.clearance(places, np.full(len(points), ROOM)) > 0).all(axis=1)
    return np.asarray(clear)


def reach_of(arm: ArmModel, joints: ArrayLike) -> Reach:
    """Return which poses ``(n, 4, 4)`` an arm reaches from joints ``(joints,)`` rad, well inside their limits."""
    low, high = np.array(arm.limits.low) + JOINT_MARGIN, np.array(arm.limits.high) - JOINT_MARGIN

    def reached(tools: Array) -> NDArray[np.bool_]:
        found, there = arm.chain.solve(tools[:, :3, 3], tools[:, :3, :3], joints, arm.rest)
        return np.asarray(there & ((found > low) & (found < high)).all(axis=1))

    return reached


def _farthest(tools: Array, count: int) -> list[int]:
    """Return the rows of so many poses, each the farthest from those before it; a rad counts as 0.3 m."""
    features = np.concatenate([tools[:, :3, 3], 0.3 * tools[:, :3, :3].reshape(len(tools), 9)], axis=1)
    chosen = [int(np.argmin(np.linalg.norm(features - features.mean(axis=0), axis=1)))]
    nearest = np.linalg.norm(features - features[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.linalg.norm(features - features[chosen[-1]], axis=1))
    return chosen
