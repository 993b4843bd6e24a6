"""From images to a result: lens, pose of a camera, or whether it has moved; and what a person is told of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np

from bid_ros.calibration.board import Board
from bid_ros.calibration.detection import Sighting, board_pose, sight
from bid_ros.calibration.rigid import apart, from_pose, inverse
from bid_ros.calibration.shots import Shot, size_of
from bid_ros.calibration.solving import LEAST, solve
from bid_ros.cameras.config import CalibrationRecord, CameraConfig
from bid_ros.cameras.lens import UNDISTORTED, Lens
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import Array, quaternion_from_matrix
from bid_ros.core.settings import Quaternion, Vector3

HAND_EYE: Final = "hand-eye"
FIXED: Final = "fixed"
FRAMES: Final = {HAND_EYE: "tool", FIXED: "base"}
UNSURE: Final = 0.01  # of the focal length, its standard error
MOVED: Final = 3.0  # of the calibration's own error in px, above which the camera has moved
STILL_PX: Final = 1.5  # that it may be off in any case


@dataclass(frozen=True, eq=False)
class CalibrationResult:
    """What was measured.

    Attributes:
        fields: of the camera, for its file.
        told: what ``--json`` prints.
        seen: images that show the board, with its pose ``(4, 4)`` in the camera as the result has it, and whether they
            took part.
        lens: of the camera.
    """

    fields: Mapping[str, Any]
    told: Mapping[str, Any]
    seen: Sequence[tuple[Shot, Array, bool]]
    lens: Lens


def sightings(shots: Sequence[Shot], board: Board) -> tuple[list[tuple[Shot, Sighting]], list[str]]:
    """Return the images that show the board, and one sentence on each of the others.

    Raises:
        CalibrationError: no image shows it, with the reason of the first.
    """
    seen, problems = [], []
    for shot in shots:
        try:
            seen.append((shot, sight(shot.image, board)))
        except CalibrationError as error:
            problems.append(f"{shot.name}: {error}")
    if not seen:
        raise CalibrationError(problems[0] if problems else "there are no images; valid are 8 or more")
    return seen, problems


def lens_of(camera: CameraConfig, size: tuple[int, int]) -> Lens:
    """Return the lens of a camera for images of this size: as measured, else an ideal one.

    Raises:
        CalibrationError: nothing is known of it, or it was measured for images of another size.
    """
    if camera.lens is not None:
        if camera.lens.size != size:
            width, height = camera.lens.size
            raise CalibrationError(
                f"camera '{camera.name}' delivers {size[0]}x{size[1]} px; valid for its lens is {width}x{height} px, "
                "or measure it again: bid calibrate intrinsics"
            )
        return camera.lens
    if camera.fovy is None:
        raise CalibrationError(
            f"camera '{camera.name}' has neither lens nor fovy; measure it first: bid calibrate intrinsics"
        )
    return Lens.ideal(camera.fovy, size, camera.crop)


def calibrate_pose(kind: str, shots: Sequence[Shot], board: Board, camera: CameraConfig) -> CalibrationResult:
    """Return where a camera is.

    Args:
        kind: ``hand-eye`` for a camera at the wrist, ``fixed`` for one that stands.
        shots: images of the board, each with the pose of the tool.
        board: as it is described.
        camera: as its file has it.

    Raises:
        CalibrationError: images or poses do not tell it.
        CameraError: the camera was moved after they were taken.
    """
    lens = lens_of(camera, size_of(shots))
    seen, problems = sightings(shots, board)
    if len(seen) < LEAST and problems:
        raise CalibrationError(
            f"the board is seen in {len(seen)} of {len(shots)} images; valid are {LEAST} or more: {problems[0]}"
        )
    date = max(seen, key=lambda item: item[0].stamp_ns)[0].date
    camera.check_not_moved(date)
    motions = np.stack([_motion(kind, shot) for shot, _ in seen])
    solution = solve(motions, [sighting for _, sighting in seen], board, lens, on_tool=kind == HAND_EYE)
    kept = np.concatenate([item for item, used in zip(solution.residuals, solution.kept, strict=True) if used])
    outliers = [shot.name for (shot, _), used in zip(seen, solution.kept, strict=True) if not used]
    errors = {"error_px": float(np.percentile(kept, 90)), "error_mm": solution.position_mm}
    record = {
        "date": date,
        "images": int(solution.kept.sum()),
        **{name: round(value, 3) for name, value in {**errors, "error_deg": solution.angle_deg}.items()},
        **_pose("board_", solution.board),
    }
    fields = {"frame": FRAMES[kind], **_pose("", solution.camera), "calibration": record}
    told = {
        "kind": kind,
        "camera": camera.name,
        **fields,
        "residual_px": {"median": float(np.median(kept)), "p90": errors["error_px"], "max": float(kept.max())},
        "outliers": outliers,
        "left_out": problems,
    }
    boards = inverse(solution.camera) @ motions @ solution.board
    shown = [(shot, pose, bool(used)) for (shot, _), pose, used in zip(seen, boards, solution.kept, strict=True)]
    return CalibrationResult(fields, told, shown, lens)


def calibrate_lens(shots: Sequence[Shot], board: Board, camera: CameraConfig) -> CalibrationResult:
    """Return focal lengths, centre and distortion of a camera, by Zhang's method as OpenCV has it.

    Raises:
        CalibrationError: there are too few images of the board, or they do not tell the focal length: they show it
            from one side, or in one distance and flat.
    """
    size = size_of(shots)
    seen, problems = sightings(shots, board)
    if len(seen) < LEAST:
        raise CalibrationError(f"the board is seen in {len(seen)} images; valid are {LEAST} or more")
    points = [board.corners[item.numbers].astype(np.float32) for _, item in seen]
    pixels = [item.pixels.astype(np.float32) for _, item in seen]
    flags = cv2.CALIB_FIX_K3  # which only a very wide lens needs, and which spoils the corners of others
    _, matrix, distortion, turns, places, errors, _, each = cv2.calibrateCameraExtended(
        points, pixels, size, None, None, flags=flags
    )
    unsure = float(np.max(np.ravel(errors)[:2] / matrix[[0, 1], [0, 1]]))
    if not unsure < UNSURE:
        raise CalibrationError(
            f"the focal length is uncertain by {100 * unsure:.1f} %; valid is up to {100 * UNSURE:g} %: show the board "
            "tilted to all sides, near and far, and in the corners of the image"
        )
    k1, k2, p1, p2, k3 = (round(float(value), 5) for value in np.ravel(distortion)[: len(UNDISTORTED)])
    focal = round(float(matrix[0, 0]), 2), round(float(matrix[1, 1]), 2)
    lens = Lens(size, focal, (round(float(matrix[0, 2]), 2), round(float(matrix[1, 2]), 2)), (k1, k2, p1, p2, k3))
    values = {
        "size": list(size),
        "focal": list(focal),
        "centre": list(lens.centre),
        "distortion": list(lens.distortion),
    }
    fields = {"fovy": round(lens.fovy(camera.crop), 3), "lens": values}
    residuals = np.ravel(each)
    told = {
        "kind": "intrinsics",
        "camera": camera.name,
        **fields,
        "focal_error_percent": 100 * unsure,
        "residual_px": {
            "median": float(np.median(residuals)),
            "p90": float(np.percentile(residuals, 90)),
            "max": float(residuals.max()),
        },
        "outliers": [],
        "left_out": problems,
    }
    poses = []
    for turn, place in zip(turns, places, strict=True):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = cv2.Rodrigues(turn)[0], np.ravel(place)
        poses.append(pose)
    return CalibrationResult(
        fields, told, [(shot, pose, True) for (shot, _), pose in zip(seen, poses, strict=True)], lens
    )


def known_pose(camera: CameraConfig) -> tuple[CalibrationRecord, Vector3, Quaternion]:
    """Return how and where a camera was calibrated: the record, position in m and quaternion xyzw.

    Raises:
        CalibrationError: the camera was not calibrated by ``bid calibrate``.
        CameraError: a person has noted that it was moved after its calibration.
    """
    if camera.calibration is None or camera.position is None or camera.quaternion is None:
        raise CalibrationError(
            f"camera '{camera.name}' has no calibration in cameras.yaml; measure it with bid calibrate {HAND_EYE} for "
            f"a camera at the wrist, with bid calibrate {FIXED} for a camera that stands"
        )
    camera.check_not_moved()
    return camera.calibration, camera.position, camera.quaternion


def check_camera(shot: Shot, board: Board, camera: CameraConfig) -> dict[str, Any]:
    """Return whether a camera, or the board, has moved since its calibration: ``moved``, ``mm``, ``deg``, ``px``.

    Args:
        shot: one image of the board, where it was and as it was held during the calibration; and the tool's pose.
        board: as it is described.
        camera: as its file has it.

    Raises:
        CalibrationError: the board is not seen, or as :func:`known_pose`.
        CameraError: as :func:`known_pose`.
    """
    record, position, quaternion = known_pose(camera)
    kind = next(kind for kind, frame in FRAMES.items() if frame == camera.frame)
    lens = lens_of(camera, size_of([shot]))
    sighting = sight(shot.image, board)
    known, placed = from_pose(position, quaternion), from_pose(record.board_position, record.board_quaternion)
    motion = _motion(kind, shot)
    expected = inverse(known) @ motion @ placed
    points = board.corners[sighting.numbers] @ expected[:3, :3].T + expected[:3, 3]
    pixels = points[:, :2] / np.maximum(points[:, 2:], 1e-3) * lens.focal + lens.centre
    off = float(np.median(np.linalg.norm(pixels - lens.straightened(sighting.pixels), axis=1)))
    now = motion @ placed @ inverse(board_pose(sighting, board, lens))
    distance, angle = apart(known, now)
    limit = max(MOVED * record.error_px, STILL_PX)
    return {
        "camera": camera.name,
        "moved": off > limit,
        "px": off,
        "limit_px": limit,
        "mm": 1e3 * distance,
        "deg": angle,
        "error_mm": record.error_mm,
        "error_deg": record.error_deg,
        "date": record.date,
    }


def _motion(kind: str, shot: Shot) -> Array:
    if shot.tool is None:
        raise CalibrationError(f"image {shot.name} has no pose of the tool; valid are images taken with the arm")
    return inverse(shot.tool) if kind == HAND_EYE else shot.tool


def _pose(prefix: str, motion: Array) -> dict[str, list[float]]:
    position = [round(float(value), 5) for value in motion[:3, 3]]
    quaternion = [round(float(value), 6) for value in quaternion_from_matrix(motion[:3, :3])]
    return {f"{prefix}position": position, f"{prefix}quaternion": quaternion}


def told(result: Mapping[str, Any]) -> str:
    """Return a calibration for a person."""
    residual, calibration = result["residual_px"], result.get("calibration")
    pixels = "  ".join(f"{name} {value:.2f}" for name, value in residual.items())
    lines = [f"residual     {pixels} px", *(f"left out     {sentence}" for sentence in result["left_out"])]
    lines += [f"outlier      {name}: more than three times as far off as the others" for name in result["outliers"]]
    if calibration:
        lines.append(
            f"spread       {calibration['error_mm']:.2f} mm, {calibration['error_deg']:.3f} degrees "
            f"(standard error, {calibration['images']} images)"
        )
        lines.append(
            f"camera       at {result['position']} m, {result['quaternion']} in the frame of {result['frame']}"
        )
    else:
        lines.append(f"focal        {result['lens']['focal']} px, uncertain by {result['focal_error_percent']:.2f} %")
        lines.append(f"centre       {result['lens']['centre']} px; distortion {result['lens']['distortion']}")
    return "\n".join(lines)


def told_check(result: Mapping[str, Any]) -> str:
    """Return for a person whether a camera has moved."""
    off = f"the board is {result['px']:.1f} px from where the calibration of {result['date']} puts it"
    own = f"up to {result['limit_px']:.1f} px are its own error"
    if not result["moved"]:
        return f"camera {result['camera']} has not moved: {off}; {own}"
    return (
        f"camera {result['camera']} has moved by {result['mm']:.1f} mm and {result['deg']:.2f} degrees, or the board "
        f"has: {off}; {own} ({result['error_mm']:.1f} mm, {result['error_deg']:.2f} degrees). Calibrate again."
    )
