"""``bid calibrate``: lens and pose of a camera, whether it has moved since, and the limits of a task."""

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.calibrate_limits import run_limits
from bid_ros.commands.robot import NAMESPACE
from bid_ros.core.errors import CalibrationError
from bid_ros.core.files import replace_text
from bid_ros.core.topics import check_namespace
from bid_ros.system.folder import System, find_system

if TYPE_CHECKING:
    from bid_ros.calibration.board import Board
    from bid_ros.calibration.shots import Shot
    from bid_ros.cameras.config import CameraConfig

LIMITS: Final = "limits"
WHAT: Final = ("board", "intrinsics", "hand-eye", "fixed", "check", LIMITS)
NAME_HELP: Final = (
    "the camera's name in cameras.yaml (board needs none); with limits: table, workspace or start, none for all three"
)
DESCRIPTION: Final = """Measure the cameras of a system with a ChArUco board, and its limits with the arm.

board       write SYSTEM/board.pdf to print, and SYSTEM/board.yaml that describes it
intrinsics  focal length, centre and distortion of a camera
hand-eye    where a camera at the wrist is, from a board that lies still
fixed       where a camera on a stand is, from a board that the gripper holds
check       has the camera moved since? exit status 1 if it has
limits      table, workspace and start box, from points that you bring the arm to

Start the system in another terminal (bid teleop SYSTEM), and bring the arm to one pose after the other: an image is
taken whenever it has rested for half a second and the board is seen. With --drive this command starts the system and
drives the arm itself, slowly and through the safety node. The result is written into cameras.yaml.

For limits press enter at each point. Old and new values are shown, and task.yaml is written after a yes."""


def add_parser(verbs: Any) -> None:
    """Add ``calibrate``."""
    parser = verbs.add_parser(
        "calibrate",
        help="measure lens and pose of a camera, and limits",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=WHAT, metavar="WHAT", help=", ".join(WHAT))
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("camera", nargs="?", default="", help=NAME_HELP)
    parser.add_argument("--from", dest="taken", default="", metavar="FOLDER", help="use images that were taken before")
    parser.add_argument(
        "-o", "--out", default="", help="folder for images and picture (default: a new one in out/calibration)"
    )
    parser.add_argument("--drive", action="store_true", help="start the system, and drive the arm to proposed poses")
    parser.add_argument("--robot-ip", default="", help="the system runs on a robot; --drive asks before each motion")
    parser.add_argument("--margin", type=float, help="with limits: m to keep from every wall (default 0.01)")
    parser.add_argument("--namespace", default="", help=NAMESPACE)
    parser.add_argument("--json", action="store_true", help="print the result on standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Calibrate; return 0, or 1 if a camera that was checked has moved."""
    from bid_ros.calibration.board import board_of
    from bid_ros.calibration.calibrating import known_pose

    system = find_system(options.system)
    if options.what == LIMITS:
        return run_limits(system, options)
    if options.margin is not None:
        raise CalibrationError(f"--margin is given with {options.what}; valid with {LIMITS}")
    board, namespace = board_of(system), check_namespace(options.namespace)
    if options.what == "board":
        return _write_board(system, board, options.json)
    if options.drive and (options.taken or options.what not in ("hand-eye", "fixed")):
        raise CalibrationError("--drive is given; valid with hand-eye and fixed, and without --from")
    camera = camera_of(system, options.camera, twin=not options.robot_ip)
    if options.what == "check" and not options.taken:  # of images, the images say whether they are the twin's
        known_pose(camera)
    out = Path(options.out or f"out/calibration/{camera.name}-{time.strftime('%Y%m%d-%H%M%S')}")
    shots, twin = _shots(system, board, camera, namespace, options, out)
    camera = camera_of(system, camera.name, twin)
    if options.what == "check":
        return _check(board, camera, shots[-1], options.json)
    return _finish(system, board, camera, shots, twin, out, options)


def camera_of(system: System, name: str, twin: bool) -> "CameraConfig":
    """Return a camera of a system, as its file has it. Raises BidError if it has none of this name."""
    from bid_ros.cameras.config import load_cameras

    names = [camera.name for camera in system.task.cameras]
    if name not in names:
        said = f"camera is '{name}'" if name else "no camera is named"
        raise CalibrationError(f"{said}; valid are {', '.join(names)}")
    return load_cameras(system.file("cameras.yaml"), names, twin)[name]


def _write_board(system: System, board: "Board", as_json: bool) -> int:
    from bid_ros.calibration.board import FILE, board_text, write_pdf

    file, page = system.folder / FILE, system.folder / "board.pdf"
    try:
        if not any((folder / FILE).exists() for folder in system.folders):
            replace_text(file, board_text(board))
        write_pdf(board, page)
    except OSError as error:
        raise CalibrationError(
            f"{page} cannot be written ({error.strerror}); valid is a system in a folder of your own: bid new FOLDER"
        ) from error
    told = f"wrote {page}: {board}\nprint it at 100 %, glue it onto a flat plate, measure it, and correct {file}"
    print(json.dumps({"pdf": str(page), "board": str(board)}) if as_json else told)
    return 0


def _shots(
    system: System, board: "Board", camera: "CameraConfig", namespace: str, options: argparse.Namespace, out: Path
) -> tuple[list["Shot"], bool]:
    """Return the images, of a folder or of the running system, and whether they are the twin's."""
    from bid_ros.calibration.shots import ShotFolder, read_shots

    if options.taken:
        return read_shots(Path(options.taken), camera.name)
    from bid_ros.nodes.calibration_run import Session, driven, guided, one_shot

    kind, twin = options.what, not options.robot_ip
    if kind == "check":
        kind = "hand-eye" if camera.frame == "tool" else "fixed"
    session = Session(system, board, camera, kind, options.robot_ip, namespace, partial(print, file=sys.stderr))
    if options.what == "check":
        return [one_shot(session)], twin
    folder = ShotFolder(out, camera.name, twin)
    return driven(session, folder, out) if options.drive else guided(session, folder), twin


def _finish(
    system: System,
    board: "Board",
    camera: "CameraConfig",
    shots: list["Shot"],
    twin: bool,
    out: Path,
    options: argparse.Namespace,
) -> int:
    """Calibrate from images, draw, write the camera file, and tell a person."""
    from bid_ros.calibration.calibrating import calibrate_lens, calibrate_pose, told
    from bid_ros.calibration.camera_file import FILE, write_camera
    from bid_ros.calibration.picture import write_picture

    if options.what == "intrinsics":
        result = calibrate_lens(shots, board, camera)
    else:
        result = calibrate_pose(options.what, shots, board, camera)
    picture = out / "axes.png"
    write_picture(picture, result.seen, board, result.lens)
    before = write_camera(system, camera.name, result.fields, twin)
    if options.json:
        print(json.dumps({**result.told, "before": before}))
        return 0
    lines = [told(result.told), f"picture      {picture}"]
    lines += [f"before       {name}: {value}" for name, value in before.items()]
    where = f"{camera.name}, twin" if twin else camera.name
    print("\n".join([*lines, f"wrote        {system.folder / FILE}: {where}"]))
    return 0


def _check(board: "Board", camera: "CameraConfig", shot: "Shot", as_json: bool) -> int:
    """Tell whether a camera has moved, from one image."""
    from bid_ros.calibration.calibrating import check_camera, told_check

    result = check_camera(shot, board, camera)
    print(json.dumps(result) if as_json else told_check(result))
    return int(result["moved"])
