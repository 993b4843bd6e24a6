"""New systems: a copy of a shipped one, or a task of one's own for a robot."""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.feature import Feature
from bid_ros.core.objects import MESHES
from bid_ros.core.paths import share
from bid_ros.core.settings import load_yaml
from bid_ros.core.task import Task, load_task
from bid_ros.robots.registry import ROBOTS
from bid_ros.system.folder import FILE, System, find_system
from bid_ros.system.stages import FILE as STAGES
from bid_ros.tasks.registry import kind_of
from bid_ros.tasks.table.scene import FOVY, fixed_view
from bid_ros.tasks.world import on_wrist

SHARED: Final = ("nodes.yaml", "view.rviz", "foxglove.json")  # of every system, unless a robot's template has its own
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
CAMERA: Final = re.compile(r"[A-Za-z]\w{0,39}", re.ASCII)
NAMING: Final = ("task.yaml", "cameras.yaml", "view.rviz", "foxglove.json")  # the files that name cameras
POLICY_TASK: Final = "policy_task.yaml"  # what a copied policy was trained for


def new_system(folder: str | Path, robot: str = "", like: str = "", cameras: Sequence[str] = ()) -> System:
    """Write the folder of a new system.

    Args:
        folder: to write; it must not exist, or be empty. The task gets its name.
        robot: name of the robot; empty: that of ``like``.
        like: name of the shipped system to copy; empty: a task of one's own, with an empty table in the twin.
        cameras: names of the cameras, in the order of the task file; none: they keep their names. A policy that is
            copied knows them by their old ones, so it is left out then.

    Returns:
        The system, whose files can be read.

    Raises:
        BidError: the folder holds something, or its name is not one; there is no such robot or system; the system is
            of another robot; there are more or fewer cameras, or a name is not one.
    """
    path = Path(folder)
    if not NAME.fullmatch(path.resolve().name):
        raise BidError(f"folder {path} cannot name a task; valid is a name of letters, digits, '_', '-' and '.'")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BidError(f"{path} exists and is not an empty folder; valid is a folder to be made")
    if like:
        _copy(find_system(like), path, robot, cameras)
    elif robot:
        _write(path, robot, cameras)
    else:
        raise BidError(f"a new system needs a robot; valid are {', '.join(ROBOTS.names())}")
    return find_system(path)


def _belongs(file: Path) -> bool:
    """Whether a file is part of a system. What a robot has passed with it is not: another system has passed nothing."""
    return file.is_file() and file.name != STAGES and file.suffix.lower() not in MESHES


def _copy(source: System, path: Path, robot: str, cameras: Sequence[str]) -> None:
    if robot and robot != source.task.robot:
        raise BidError(f"system '{source.folder.name}' is of the robot {source.task.robot}, not of {robot}")
    # What stands in for a file of the source becomes a file of the copy.
    found = {file.name: file for folder in reversed(source.folders) for file in folder.iterdir() if _belongs(file)}
    files, rest = _read(found)
    files[FILE] = re.sub(r"(?m)^like:.*\n", "", files[FILE])
    name, task = path.resolve().name, files["task.yaml"]
    policy = source.settings.policy
    if policy.bundle:
        files[FILE] = re.sub(r"(?m)^ *bundle_task:.*\n", "", files[FILE])
        if cameras:
            other = "scripted" if kind_of(source.task).demonstrator else "exercise"
            files[FILE] = _set(_set(files[FILE], "driver", other), "bundle", '""')
        else:
            files[POLICY_TASK] = source.file(policy.bundle_task or "task.yaml").read_text()
            files[FILE] = _set(files[FILE], "bundle", f"{policy.bundle}\n  bundle_task: {POLICY_TASK}")
    copied = f"\n# A copy of the system {source.folder.name}.\nname: {json.dumps(name)}\n"
    text = re.sub(r"\nname:.*\n", lambda _: copied, task, count=1)
    files["task.yaml"], meshes = _with_meshes(text, source.file("task.yaml").parent)
    if "README.md" in files:
        files["README.md"] = _readme(files["README.md"], source.folder.name, name)
    _write_files(path, files, _renamed(source.task, cameras))
    for name, content in rest.items():
        (path / name).write_bytes(content)
    _copy_meshes(meshes, path)


def _with_meshes(text: str, beside: Path) -> tuple[str, dict[str, Path]]:
    """Return the text of a task file, and its meshes by their paths in a copy; one from elsewhere comes into it.

    A mesh that is named by an absolute path stays where it is.
    """
    known: dict[str, str] = {}
    for item in load_yaml(text).get("objects") or ():
        written = str(item.get("mesh") or "")
        if written and not Path(written).is_absolute() and written not in known:
            outside = os.path.normpath(written).startswith("..")
            known[written] = f"{item['name']}_{Path(written).name}" if outside else written
            if outside:
                text = _with_mesh(text, written, known[written])
    return text, {inside: beside / written for written, inside in known.items()}


def _with_mesh(text: str, old: str, new: str) -> str:
    named = rf"(mesh:\s*['\"]?){re.escape(old)}(?=['\"\s,}}]|$)"
    return re.sub(named, lambda found: found[1] + new, text)


def _copy_meshes(meshes: Mapping[str, Path], path: Path) -> None:
    for inside, mesh in meshes.items():
        (path / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(mesh, path / inside)


def _read(found: Mapping[str, Path]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the texts among files, and the content of those that are none, such as the print of a board."""
    files, rest = dict[str, str](), dict[str, bytes]()
    for name, file in found.items():
        content = file.read_bytes()
        try:
            files[name] = content.decode()
        except UnicodeDecodeError:
            rest[name] = content
    return files, rest


def _set(text: str, field: str, value: str) -> str:
    """Return a system file with another value of a field, and what is said of the old one left out."""
    return re.sub(rf"(?m)^( *){field}:.*$", lambda found: f"{found[1]}{field}: {value}", text, count=1)


def _readme(text: str, source: str, name: str) -> str:
    """Return the page of a copy: its own name in the commands, which record too, and not how it was made."""
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("bid new")]
    named = re.sub(rf"(?<![/\w]){re.escape(source)}\b", name, "".join(lines))
    if "bid record" in named:
        return named
    record = f"bid record {name} --episodes 20   # you drive, and say how each episode ended"
    return named.replace("\n```\n\n", f"\n{record}\n```\n\n", 1)


def _renamed(task: Task, cameras: Sequence[str]) -> dict[str, str]:
    """Return the new name of each camera of a task; BidError if there are more or fewer, or one is not a name."""
    names = [camera.name for camera in task.cameras]
    if not cameras:
        return {}
    if len(cameras) != len(names) or len(set(cameras)) != len(names):
        raise BidError(f"cameras are {', '.join(cameras)}; valid are {len(names)} names, for {', '.join(names)}")
    for name in cameras:
        if not CAMERA.fullmatch(name) or name in [item.name for item in task.vectors]:
            raise BidError(f"camera is '{name}'; valid is a name of letters, digits and _ that no other feature has")
    return dict(zip(names, cameras, strict=True))


def _write(path: Path, robot: str, names: Sequence[str]) -> None:
    found = ROBOTS.find(robot).template
    template = Path(found) if Path(found).is_absolute() else share("config", found)
    own, name = share("config", "new", "table"), path.resolve().name
    task = load_task(template / "task.yaml")
    renamed = _renamed(task, names)
    cameras = [replace(camera, name=renamed.get(camera.name, camera.name)) for camera in task.cameras]
    # The template's, where it has one.
    shared = ((template if (template / file).is_file() else own) / file for file in SHARED)
    text = _task((own / "task.yaml").read_text(), (template / "task.yaml").read_text(), name)
    text, meshes = _with_meshes(text, template)
    files = {
        "task.yaml": text,
        "robot.yaml": (template / "robot.yaml").read_text(),
        FILE: (own / FILE).read_text(),
        "cameras.yaml": (own / "cameras.yaml").read_text() + "".join(map(_camera, cameras)),
        "README.md": (own / "README.md").read_text().replace("NAME", name).replace("ROBOT", robot),
        **{file.name: file.read_text() for file in shared},
    }
    _write_files(path, files, renamed)
    _copy_meshes(meshes, path)


def _write_files(path: Path, files: Mapping[str, str], renamed: Mapping[str, str]) -> None:
    """Write a folder's files, with other names of cameras; an editor finds their schemas from the folder.

    What a comment says of a wrist stays.
    """
    path.mkdir(parents=True, exist_ok=True)
    schemas = os.path.relpath(share("config", "schemas"), path.resolve())
    cameras = re.compile(rf"(?m)#.*$|\b(?:{'|'.join(renamed)})\b")
    for file, text in files.items():
        text = re.sub(r"(?<=\$schema=)\S+(?=/)", schemas, text)
        if renamed and file in NAMING:
            text = cameras.sub(lambda found: renamed.get(found[0], found[0]), text)
        (path / file).write_text(text)


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
