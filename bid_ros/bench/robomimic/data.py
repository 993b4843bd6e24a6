"""The public demonstrations by people: robomimic's files of low-dimensional observations, versions 1.4 and 1.5.

Their actions are steps from where the tool is, -1 to 1 of 5 cm and half a radian. Diffusion Policy (Chi et al., RSS
2023) turned them into the poses that the controller then aims at, and so does this module. No simulator is needed: the
pose is that of the observation, moved by the step.

The two versions order the values of the objects differently, and differ in what the way from the tool to an object is.
Places are the same in both. So each way is worked out from them, as the simulator shows it here.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.demonstrations import joined_episodes
from bid_ros.bench.robomimic.catalogue import TASKS, RobomimicTask
from bid_ros.bench.robomimic.env import RATE_HZ
from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_from_quaternion, matrix_from_vector, matrix_to_6d, quaternion_from_matrix
from bid_ros.core.task import Task
from bid_ros.formats.convert import check_episode
from bid_ros.formats.robomimic import RobomimicSource
from bid_ros.recording.dataset import Dataset

Array = NDArray[np.float64]

VERSIONS: Final = ("1.4", "1.5")  # of robosuite
CONTROLLER: Final = "OSC_POSE"
STEPS, BASE_STEPS, ABSOLUTE = "steps", "steps in the frame of the arm's base", "poses"
"""Forms of the actions of a file; of an arm that looks along the world's x axis, the first two are the same."""
STEP: Final = 7  # values of an arm's action
STEP_M, STEP_RAD = 0.05, 0.5  # that an action of 1 stands for
SAME_M: Final = 0.01  # far less than values in another order differ
UNIT: Final = 0.01  # by which the length of a quaternion may differ from 1
DOWNLOAD: Final = "take robomimic's low_dim_v15.hdf5 or low_dim_v141.hdf5 of the same demonstrations"
# From the hand, whose rotation is observed, to the grip site, which the controller moves: -90 degrees about z.
SITE: Final = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def human_dataset(path: str | Path, task: Task) -> Dataset:
    """Read ``low_dim_v15.hdf5`` (Mandlekar et al., CoRL 2021) or one of version 1.4 as a data set for ``task``.

    Row ``t`` holds what was seen at step ``t`` and the pose that the action then asked for.

    Args:
        path: of the file.
        task: of the bench, such as ``config/lift.yaml``.

    Raises:
        RecordingError: the file is missing, damaged, of another task, version or rate, or of other features.
    """
    path = Path(path)
    if not path.is_file():
        raise RecordingError(f"robomimic data {path} does not exist")
    source = RobomimicSource(path)
    contents = source.contents
    about = TASKS[task.name]
    form, old = _check_made(path, about)
    if contents.rate_hz != task.rate_hz or task.rate_hz != RATE_HZ:
        rate = "an unknown number of" if contents.rate_hz is None else f"{contents.rate_hz:g}"
        raise RecordingError(f"robomimic data {path}: {rate} rows a second; valid is {RATE_HZ}")
    has = {column.name: column.shape for column in contents.columns}
    for item in task.observation:
        if item.name not in has:
            raise RecordingError(
                f"robomimic data {path} lacks 'obs/{item.name}'; needed are {', '.join(about.observed)}"
            )
        if has[item.name] != item.shape:
            raise RecordingError(
                f"robomimic data {path}: 'obs/{item.name}' has rows of {has[item.name]}; valid is {item.shape}"
            )
    if contents.action.shape != (STEP * about.arms,):
        raise RecordingError(
            f"robomimic data {path}: actions are {contents.action.shape}; valid is {(STEP * about.arms,)}"
        )
    try:
        return _joined(source, form, task, old)
    except RecordingError as error:
        raise RecordingError(f"robomimic data {path}: {error}") from error


def _joined(source: RobomimicSource, form: str, task: Task, old: bool) -> Dataset:
    about = TASKS[task.name]
    whole = source.contents
    contents = replace(whole, columns=tuple(column for column in whole.columns if column.name in about.observed))
    seen: list[dict[str, Array]] = []
    actions: list[Array] = []
    for number, episode in enumerate(source.episodes(names=set(about.observed))):
        check_episode(contents, episode, number)
        shown = {name: episode.observations[name].astype(np.float64) for name in about.observed}
        if old:
            shown["object"] = shown["object"][:, list(about.columns_14)]
        _check_turns(shown, source.names[number], about)
        _check_object(shown, number, about)
        shown["object"] = object_as_simulated(shown, about)
        seen.append(shown)
        steps = episode.actions.astype(np.float64)
        poses = [
            _poses(shown, arm, steps[:, STEP * arm :][:, :STEP], form, yaw) for arm, yaw in enumerate(about.facing)
        ]
        actions.append(np.concatenate(poses, axis=1))
    return joined_episodes(task, seen, actions)


def _poses(shown: Mapping[str, Array], arm: int, actions: Array, form: str, facing: float) -> Array:
    """Return an arm's actions ``(T, 10)`` of the bench for actions ``(T, 7)`` of the file.

    Args:
        shown: what was observed.
        arm: its number.
        actions: of the file.
        form: :data:`STEPS`, BASE_STEPS or ABSOLUTE.
        facing: where the arm looks, degrees.
    """
    places, vectors = actions[:, :3], actions[:, 3:6]
    if form != ABSOLUTE:
        places, vectors = STEP_M * np.clip(places, -1, 1), STEP_RAD * np.clip(vectors, -1, 1)
    if form == BASE_STEPS:
        base = matrix_from_vector([0.0, 0.0, np.deg2rad(facing)])
        places, vectors = places @ base.T, vectors @ base.T
    turns = matrix_from_vector(vectors)
    if form != ABSOLUTE:
        turns = turns @ matrix_from_quaternion(shown[f"robot{arm}_eef_quat"]) @ SITE
        places = shown[f"robot{arm}_eef_pos"] + places
    return np.concatenate([places, matrix_to_6d(turns), actions[:, 6:]], axis=1)


def object_as_simulated(shown: Mapping[str, Array], task: RobomimicTask) -> Array:
    """Return ``object`` ``(T, K)`` of an episode with the ways from tool to object as the simulator shows them here.

    In the frame of a hand they are zero in the first row, and then lead to where the object was in the row before:
    robosuite 1.5 works them out before it looks where the object is.

    Args:
        shown: what was observed, ``object`` in the order of the simulator.
        task: of the bench.
    """
    values = shown["object"].copy()
    for item in task.objects:
        tool, turn = shown[f"robot{item.arm}_eef_pos"], matrix_from_quaternion(shown[f"robot{item.arm}_eef_quat"])
        place, way = values[:, item.place_at : item.place_at + 3], values[:, item.way_at : item.way_at + 7]
        if not item.in_hand:
            way[:, :3] = place - tool
            continue
        way[0], into_hand = 0.0, np.swapaxes(turn[1:], 1, 2)
        way[1:, :3] = np.einsum("tij,tj->ti", into_hand, place[:-1] - tool[1:])
        turned = matrix_from_quaternion(values[:-1, item.place_at + 3 : item.place_at + 7])
        way[1:, 3:] = quaternion_from_matrix(into_hand @ turned)
    return values


def _check_turns(shown: Mapping[str, Array], demo: str, task: RobomimicTask) -> None:
    """Raise RecordingError if a quaternion is none: such as zeros, where something was not recorded."""
    turns = {f"'obs/{name}'": values for name, values in shown.items() if name.endswith("_quat")}
    for item in task.objects:
        first = item.place_at + 3
        turns[f"the rotation of {item.name} in 'obs/object'"] = shown["object"][:, first : first + 4]
    for name, values in turns.items():
        if (bad := np.flatnonzero(np.abs(np.linalg.norm(values, axis=1) - 1) > UNIT)).size:
            raise RecordingError(
                f"data/{demo}: {name} is {values[bad[0]].tolist()} in row {bad[0]}; valid are quaternions of length 1"
            )


def _check_object(shown: Mapping[str, Array], number: int, task: RobomimicTask) -> None:
    """Raise RecordingError unless the values of the objects are in the order that the simulator has them in here.

    A way may be from tool to object or back, in the world's frame or in that of the hand, or to where the object was in
    the row before. The first row counts in none of them: robosuite 1.5 has the way of an earlier episode there.
    """
    for item in task.objects:
        place, way = (shown["object"][:, at : at + 3] for at in (item.place_at, item.way_at))
        tool, turn = shown[f"robot{item.arm}_eef_pos"], matrix_from_quaternion(shown[f"robot{item.arm}_eef_quat"])
        found, late = place[1:] - tool[1:], place[:-1] - tool[1:]
        ways = [found, -found, *(np.einsum("tji,tj->ti", turn[1:], each) for each in (found, late))]
        if not any(np.allclose(way[1:], each, rtol=0, atol=SAME_M) for each in ways):
            raise RecordingError(
                f"in demo {number} 'object' does not hold the vector from tool to {item.name} where it is expected, so "
                f"another version wrote the file; valid are robosuite {' and '.join(VERSIONS)}"
            )


def _check_made(path: Path, task: RobomimicTask) -> tuple[str, bool]:
    """Return which of the forms the actions of a file have, and whether robosuite 1.4 made it.

    Raises:
        RecordingError: it is of another task or version.
    """
    import h5py  # RobomimicSource has opened the file before

    with h5py.File(path, "r") as file:
        try:
            about = json.loads(file["data"].attrs["env_args"])
            name, settings = str(about["env_name"]), dict(about["env_kwargs"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordingError(f"robomimic data {path} does not say what made it (env_args); {DOWNLOAD}") from error
    if name != task.environment:
        raise RecordingError(f"robomimic data {path} is of '{name}'; valid for {task.name} is {task.environment}")
    version = str(about.get("env_version") or settings.get("env_version") or "")
    if not re.match(rf"({'|'.join(re.escape(item) for item in VERSIONS)})(\.|$)", version):
        made = f"was made with robosuite {version}" if version else "does not say which robosuite made it"
        raise RecordingError(f"robomimic data {path} {made}; valid are {' and '.join(VERSIONS)}: {DOWNLOAD}")
    arm = _controller(settings)
    if (kind := arm.get("type")) != CONTROLLER:
        raise RecordingError(f"robomimic data {path}: its controller is '{kind}'; valid is {CONTROLLER}")
    absolute = arm.get("input_type") == "absolute" or arm.get("control_delta") is False
    old = version.startswith("1.4")
    usual = "world" if old else "base"  # of a file that does not say it
    of_base = arm.get("input_ref_frame", usual) == "base" and any(task.facing)
    if absolute and of_base:
        raise RecordingError(
            f"robomimic data {path}: its poses are in the frame of each arm's base; valid is the world's"
        )
    if not absolute:
        _check_steps(path, arm)
    form = ABSOLUTE if absolute else BASE_STEPS if of_base else STEPS
    return form, old


def _controller(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a file says of the arm's controller, in the form of version 1.5 or 1.4; empty: nothing."""
    found: Any = settings.get("controller_configs")
    parts = found.get("body_parts") if isinstance(found, dict) else None
    arm = parts.get("right", found) if isinstance(parts, dict) else found
    return arm if isinstance(arm, dict) else {}


def _check_steps(path: Path, arm: Mapping[str, Any]) -> None:
    """Raise RecordingError if a file says that an action of 1 moves farther, or less far, than :data:`STEP_M`."""
    most = np.array([STEP_M] * 3 + [STEP_RAD] * 3)
    for name, valid in (("input_max", 1.0), ("input_min", -1.0), ("output_max", most), ("output_min", -most)):
        said = arm.get(name)
        try:
            same = said is None or np.allclose(np.asarray(said, dtype=np.float64), valid)
        except (TypeError, ValueError):
            same = False
        if not same:
            raise RecordingError(
                f"robomimic data {path}: its controller's {name} is {said}; valid is {np.asarray(valid).tolist()}"
            )
