"""Where a camera is, from poses of the robot and sightings of a board that is fixed to the other end.

One chain for both cases: ``board in camera = camera^-1 . motion . board``. For a camera at the wrist, which is fixed to
the tool, ``motion`` is the base in the tool's frame and the board is fixed to the base. For a camera that is fixed to
the base, ``motion`` is the tool in the base frame and the board is fixed to the tool.

The closed form is that of Park and Martin ("Robot sensor calibration: solving AX = XB on the Euclidean group", IEEE
Transactions on Robotics and Automation, 1994). It is refined over the distances in the images, all of them together.

Corners of one image are off together where the arm is not where it says it is, so they are no independent witnesses.
The last refinement weighs them by what pixel and arm are trusted for (generalised least squares). So the shape of the
board in an image, which the arm cannot spoil, counts for more than its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.calibration.board import Board
from bid_ros.calibration.detection import Sighting, board_pose
from bid_ros.calibration.rigid import from_vector, inverse, rigid, to_vector
from bid_ros.cameras.lens import Lens
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import Array, vector_from_matrix

LEAST: Final = 8  # images
SECOND_AXIS: Final = 4.0  # degrees that the poses turn about a second axis at least, root mean square
PIXEL: Final = 0.2  # px that a corner is off by itself, standard deviation
ARM: Final = (1e-3, 5e-4)  # rad and m that an arm is not where it says it is, standard deviation of each axis
OUTLIER: Final = 3.0  # of the median image's residual
FLOOR_PX: Final = 1.5  # a residual below this is no outlier, however good the others are: no arm is better
UNFIT_PX: Final = 6.0  # median distance above which images and poses do not belong together


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the camera and the board are.

    Attributes:
        camera, board: ``(4, 4)`` poses in what each is fixed to.
        residuals: per image, the distances ``(n,)`` in px between corners that were seen and where they should be.
        kept: ``(images,)``, False for an outlier, which took no part.
        position_mm, angle_deg: spread of the camera's pose: standard error, by leaving each image out once.
    """

    camera: Array
    board: Array
    residuals: tuple[Array, ...]
    kept: NDArray[np.bool_]
    position_mm: float = 0.0
    angle_deg: float = 0.0


@dataclass(frozen=True, eq=False)
class _Corners:
    """Corners of some images in one array: board frame ``(n, 3)``, px ``(n, 2)``, and the image of each, in order.

    ``weights`` are one lower triangle ``(2 m, 2 m)`` for the ``m`` corners of each image, or None.
    """

    points: Array
    pixels: Array
    image: NDArray[np.int64]
    motions: Array
    weights: tuple[Array, ...] | None = None

    def of(self, kept: NDArray[np.bool_]) -> "_Corners":
        """Return those of the kept images."""
        used = kept[self.image]
        return replace(self, points=self.points[used], pixels=self.pixels[used], image=self.image[used])


def solve(motions: Array, sightings: Sequence[Sighting], board: Board, lens: Lens, on_tool: bool) -> Solution:
    """Return where the camera and the board are.

    Args:
        motions: ``(images, 4, 4)``, see above.
        sightings: of the same images.
        board: as it is described.
        lens: of the camera.
        on_tool: the camera is at the wrist; otherwise the board is.

    Raises:
        CalibrationError: there are fewer than 8 images, or they turn about fewer than two axes.
    """
    if len(sightings) < LEAST:
        raise CalibrationError(f"the board is seen in {len(sightings)} images; valid are {LEAST} or more")
    _check_turns(motions)
    corners = _corners(motions, sightings, board, lens)
    seen = np.stack([board_pose(sighting, board, lens) for sighting in sightings])
    first = np.concatenate([to_vector(pose) for pose in closed_form(motions, seen)])
    guess = _refined(first, corners, lens, np.ones(len(motions), dtype=bool), robust=True)
    kept = _inliers(_distances(guess, corners, lens), corners.image, len(motions))
    if kept.sum() < LEAST:
        raise CalibrationError(
            f"only {kept.sum()} of {len(kept)} images agree with each other; valid are {LEAST} or more: the board or "
            "the camera slipped, or the arm moved while images were taken"
        )
    _check_turns(motions[kept])
    corners = replace(corners, weights=_weights(guess, corners, lens, on_tool))
    found = _refined(guess, corners, lens, kept)
    distances = _distances(found, corners, lens)
    if (median := float(np.median(distances[kept[corners.image]]))) > UNFIT_PX:
        raise CalibrationError(
            f"the images do not agree with each other: {median:.0f} px off; valid is up to {UNFIT_PX:g} px: the board "
            "or the camera slipped, the arm moved, or the board has other measures"
        )
    residuals = tuple(distances[corners.image == number] for number in range(len(motions)))
    solution = Solution(from_vector(found[:6]), from_vector(found[6:]), residuals, kept)
    position, angle = _spread(found, corners, lens, kept)
    return replace(solution, position_mm=position, angle_deg=angle)


def closed_form(motions: Array, seen: Array) -> tuple[Array, Array]:
    """Return camera and board ``(4, 4)`` by the closed form of Park and Martin.

    Args:
        motions: ``(images, 4, 4)``, see above.
        seen: ``(images, 4, 4)`` board in camera.
    """
    pairs = np.array(list(combinations(range(len(motions)), 2)))
    one, other = pairs.T
    # A X = X B, with A between two motions and B between what the camera saw.
    ours, theirs = motions[other] @ inverse(motions[one]), seen[other] @ inverse(seen[one])
    turns, seen_turns = vector_from_matrix(ours[:, :3, :3]), vector_from_matrix(theirs[:, :3, :3])
    left, _, right = np.linalg.svd(turns.T @ seen_turns)  # whose polar factor is (M^T M)^-1/2 M^T
    rotation = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
    system = (ours[:, :3, :3] - np.eye(3)).reshape(-1, 3)
    wanted = (theirs[:, :3, 3] @ rotation.T - ours[:, :3, 3]).reshape(-1)
    camera = rigid(rotation, np.linalg.lstsq(system, wanted, rcond=None)[0])
    boards = inverse(motions) @ camera @ seen
    left, _, right = np.linalg.svd(boards[:, :3, :3].sum(axis=0))
    board = rigid(left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right, np.median(boards[:, :3, 3], axis=0))
    return camera, board


def _check_turns(motions: Array) -> None:
    """Raise CalibrationError unless the motions turn about two axes: about one, the way along it is not to be told."""
    pairs = np.array(list(combinations(range(len(motions)), 2)))
    between = motions[pairs[:, 0]] @ inverse(motions[pairs[:, 1]])
    turns = np.degrees(vector_from_matrix(between[:, :3, :3]))
    axes = np.linalg.svd(turns / np.sqrt(len(turns)), compute_uv=False)
    if axes[1] < SECOND_AXIS:
        raise CalibrationError(
            f"the poses turn by {axes[0]:.0f} degrees about one axis and {axes[1]:.1f} about a second; valid are "
            f"{SECOND_AXIS:g} or more about two: tilt the tool forwards and sideways"
        )


def _corners(motions: Array, sightings: Sequence[Sighting], board: Board, lens: Lens) -> _Corners:
    return _Corners(
        np.concatenate([board.corners[item.numbers] for item in sightings]),
        np.concatenate([lens.straightened(item.pixels) for item in sightings]),
        np.repeat(np.arange(len(sightings)), [len(item.numbers) for item in sightings]),
        motions,
    )


def _off(both: Array, corners: _Corners, lens: Lens) -> Array:
    """Return how far ``(n, 2)`` px the corners are from where they should be, for camera and board in ``(12,)``."""
    chain = inverse(from_vector(both[:6])) @ corners.motions @ from_vector(both[6:])
    each = chain[corners.image]
    placed = np.einsum("nij,nj->ni", each[:, :3, :3], corners.points) + each[:, :3, 3]
    depth = np.maximum(placed[:, 2:], 1e-3)  # behind the camera only far from the solution
    return np.asarray(placed[:, :2] / depth * lens.focal + lens.centre - corners.pixels)


def _distances(both: Array, corners: _Corners, lens: Lens) -> Array:
    distances: Array = np.linalg.norm(_off(both, corners, lens), axis=1)
    return distances


def _refined(guess: Array, corners: _Corners, lens: Lens, kept: NDArray[np.bool_], robust: bool = False) -> Array:
    """Return camera and board ``(12,)`` with the least distances in the kept images."""
    from scipy.optimize import least_squares  # takes a while to import

    part = corners.of(kept)
    how = {"loss": "soft_l1", "x_scale": "jac"} if robust else {"method": "lm"}
    found = least_squares(lambda both: _weighed(_off(both, part, lens), part), guess, xtol=1e-7, **how)
    return np.asarray(found.x)


def _weights(both: Array, corners: _Corners, lens: Lens, on_tool: bool) -> tuple[Array, ...]:
    """Return for each image what makes the distances in it independent, each of standard deviation 1."""
    off, step = _off(both, corners, lens), 1e-5
    moved = []
    for axis in range(6):
        noise = from_vector(step * np.eye(6)[axis])
        motions = noise @ corners.motions if on_tool else corners.motions @ noise
        moved.append((_off(both, replace(corners, motions=motions), lens) - off).reshape(-1) / step)
    spoilt = np.stack(moved, axis=1) * np.repeat(ARM, 3)
    weights = []
    for number in range(len(corners.motions)):
        rows = spoilt[np.repeat(corners.image == number, 2)]
        together = rows @ rows.T + PIXEL**2 * np.eye(len(rows))
        weights.append(np.linalg.inv(np.linalg.cholesky(together)))
    return tuple(weights)


def _weighed(off: Array, corners: _Corners) -> Array:
    """Return distances ``(n, 2)`` as independent ones ``(2 n,)``; as they are, if there are no weights."""
    if corners.weights is None:
        return off.ravel()
    numbers, begins = np.unique(corners.image, return_index=True)
    each = zip(numbers, np.split(off, begins[1:]), strict=True)
    return np.concatenate([corners.weights[number] @ rows.ravel() for number, rows in each])


def _inliers(distances: Array, image: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Return which images agree with the others: up to three times the median of their residuals."""
    squares = np.bincount(image, distances**2, count) / np.bincount(image, minlength=count)
    each = np.sqrt(squares)
    return np.asarray(each <= max(OUTLIER * float(np.median(each)), FLOOR_PX))


def _spread(found: Array, corners: _Corners, lens: Lens, kept: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the standard error of the camera's pose in mm and degrees: the jackknife over the kept images.

    Without an image the solution is one Gauss-Newton step away.
    """
    part = corners.of(kept)
    off = _weighed(_off(found, part, lens), part)
    steps = [1e-6 * np.eye(12)[axis] for axis in range(12)]
    jacobian = np.stack([(_weighed(_off(found + step, part, lens), part) - off) / 1e-6 for step in steps], axis=1)
    image, without = np.repeat(part.image, 2), []
    for number in np.flatnonzero(kept):
        others = image != number
        step = np.linalg.lstsq(jacobian[others], -off[others], rcond=None)[0]
        without.append(from_vector((found + step)[:6]))
    each, whole = np.stack(without), from_vector(found[:6])
    places = each[:, :3, 3] - whole[:3, 3]
    turns = np.degrees(vector_from_matrix(whole[:3, :3].T @ each[:, :3, :3]))
    share = (len(each) - 1) / len(each)
    position, angle = (np.sqrt(share * np.sum((item - item.mean(axis=0)) ** 2)) for item in (places, turns))
    return 1e3 * float(position), float(angle)
