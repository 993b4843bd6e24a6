"""New systems: a copy of a shipped one, or a task of one's own for a robot."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.task import Feature, load_task
from bid_ros.robots.registry import ROBOTS
from bid_ros.system.folder import FILE, System, find_system
from bid_ros.system.stages import FILE as STAGES
from bid_ros.tasks.table.scene import FOVY, fixed_view, on_wrist

SHARED: Final = ("nodes.yaml", "view.rviz", "foxglove.json")  # of every system, unless a robot's template has its own
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
LIKE: Final = """\
# A copy of the system {name}. The task keeps the name {task}: the shipped policy was trained for it.
# Give it another name together with a policy of your own.
"""


def new_system(folder: str | Path, robot: str = "", like: str = "") -> System:
    """Write the folder of a new system.

    Args:
        folder: to write; it must not exist, or be empty. A task of one's own gets its name.
        robot: name of the robot; empty: that of ``like``.
        like: name of the shipped system to copy; empty: a task of one's own, with an empty table in the twin.

    Returns:
        The system, whose files can be read.

    Raises:
        BidError: the folder holds something, or its name is not one; there is no such robot or system; the system is
            of another robot.
    """
    path = Path(folder)
    if not NAME.fullmatch(path.resolve().name):
        raise BidError(f"folder {path} cannot name a task; valid is a name of letters, digits, '_', '-' and '.'")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BidError(f"{path} exists and is not an empty folder; valid is a folder to be made")
    if like:
        _copy(find_system(like), path, robot)
    elif robot:
        _write(path, robot)
    else:
        raise BidError(f"a new system needs a robot; valid are {', '.join(ROBOTS.names())}")
    return find_system(path)


def _belongs(file: Path) -> bool:
    """Whether a file is part of a system. What a robot has passed with it is not: another system has passed nothing."""
    return file.is_file() and file.name != STAGES


def _copy(source: System, path: Path, robot: str) -> None:
    if robot and robot != source.task.robot:
        raise BidError(f"system '{source.folder.name}' is of the robot {source.task.robot}, not of {robot}")
    # What stands in for a file of the source becomes a file of the copy.
    found = {file.name: file for folder in reversed(source.folders) for file in folder.iterdir() if _belongs(file)}
    files = {name: file.read_text() for name, file in found.items()}
    files[FILE] = re.sub(r"(?m)^like:.*\n", "", files[FILE])
    first, rest = files["task.yaml"].split("\n", 1)
    files["task.yaml"] = f"{first}\n{LIKE.format(name=source.folder.name, task=source.task.name)}{rest}"
    _write_files(path, files)


def _write(path: Path, robot: str) -> None:
    found = ROBOTS.find(robot).template
    template = Path(found) if Path(found).is_absolute() else share("config", found)
    own, name = share("config", "new", "table"), path.resolve().name
    # The template's, where it has one.
    shared = ((template if (template / file).is_file() else own) / file for file in SHARED)
    files = {
        "task.yaml": _task((own / "task.yaml").read_text(), (template / "task.yaml").read_text(), name),
        "robot.yaml": (template / "robot.yaml").read_text(),
        FILE: (own / FILE).read_text(),
        "cameras.yaml": (own / "cameras.yaml").read_text()
        + "".join(map(_camera, load_task(template / "task.yaml").cameras)),
        "README.md": (own / "README.md").read_text().replace("NAME", name).replace("ROBOT", robot),
        **{file.name: file.read_text() for file in shared},
    }
    _write_files(path, files)


def _write_files(path: Path, files: Mapping[str, str]) -> None:
    """Write a folder's files; an editor finds their schemas where bid_ros is installed."""
    path.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (path / file).write_text(re.sub(r"(?<=\$schema=)(\.\./)+schemas", str(share("config", "schemas")), text))


def _task(head: str, template: str, name: str) -> str:
    """Return the task file of a robot's template with a head, a name and no kind of its own."""
    rest = re.sub(r"(?ms)\A.*?^name:.*?$\n", "", template)
    rest = re.sub(r"(?m)^(description|kind):.*\n|^.*\bheld: .*\n", "", rest)  # nobody knows what it will hold
    return head.replace("NAME", json.dumps(name)) + rest


def _camera(camera: Feature) -> str:
    """Return what a camera file says of one camera that looks at an empty table in the twin."""
    lines = [f"{camera.name}:", "  source: topic", f"  address: {camera.name}/color/image_raw", "  crop: null"]
    if on_wrist(camera.name):
        return "\n".join([*lines, "  twin: {source: twin}", ""])
    position, quaternion = fixed_view()
    pose = [f"    position: {list(position)}   # m, base frame", f"    quaternion: {[round(q, 6) for q in quaternion]}"]
    return "\n".join([*lines, "  twin:", "    source: twin", *pose, f"    fovy: {FOVY}", ""])
