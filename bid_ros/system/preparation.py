"""What every front end does before it starts the nodes of a system: check what can be checked, and make room."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bid_ros.core.errors import ArmError, BidError
from bid_ros.core.lock import check_unlocked, lock_folder
from bid_ros.core.task import Task, load_task
from bid_ros.recording.events import FILE as EVENTS
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.robots.registry import load_arm_config
from bid_ros.system.description import NodeSpec
from bid_ros.system.folder import POLICY
from bid_ros.system.security import check_security, enclave_of

if TYPE_CHECKING:
    from bid_ros.policy.base import Bundle

# What a run leaves in its folder, at the latest when its first node has started.
WRITTEN: Final = ("logs", "parameters", "bag", "episodes", "run.json", EVENTS)
ARM: Final = "arm"
CAMERA: Final = "camera"
_locks: dict[Path, int] = {}  # by folder; held until this process ends, or runs there again


def prepare(specs: Sequence[NodeSpec], out: Path) -> None:
    """Check a system before any of its processes starts, and move an earlier run out of its folder.

    Raises:
        BidError: keys are asked for that do not protect. What the policy node would refuse; one of its subclasses says
            which part. The task commands a gripper that the robot has not. Another run writes there, or nothing can be
            written there.
    """
    from bid_ros.system.begin_events import begin_events  # with bundles, which take a while to import

    check_security([enclave_of(spec.name, spec.namespace) for spec in specs])
    check_policy(specs)
    check_arm(specs)
    check_files(specs)
    place = out.resolve()
    if place in _locks:
        os.close(_locks.pop(place))
    check_unlocked(out)
    _set_aside(out)
    _locks[place] = lock_folder(out)
    begin_events(specs, out)


def check_policy(specs: Iterable[NodeSpec]) -> None:
    """Check that bundle, decoder and task fit, and that the runtime can be used.

    Raises:
        BidError: (one of its subclasses) the policy node would refuse them.
    """
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.decide import bundle_decoder
    from bid_ros.policy.runtimes.registry import missing
    from bid_ros.policy.signature import check_signature
    from bid_ros.policy.spaces.policy import check_space

    for spec in specs:
        if spec.name == POLICY:
            wanted = spec.parameters
            task = load_task(wanted.get("bundle_task") or wanted["task"])
            bundle = load_bundle(Path(wanted["bundle"]), task)
            if wanted.get("signed_by"):
                check_signature(bundle, wanted["signed_by"])
            decoder = bundle_decoder(wanted["decoder"], bundle, task, wanted["samples"], wanted["action_horizon"])
            runtime = wanted.get("runtime", "auto")
            if decoder.needs.gradients:
                _check_gradient(decoder.name, bundle, runtime)
            if bundle.space is not None:
                check_space(bundle.space, task, decoder)
            problem = missing(runtime)
            if problem and not wanted.get("fallback_runtime"):
                raise BidError(f"the policy node cannot use runtime '{runtime}': {problem}")


def _check_gradient(decoder: str, bundle: "Bundle", runtime: str) -> None:
    """Raise BidError if nothing derives the network of a bundle, here or on its server."""
    from bid_ros.policy.remote.config import RemoteConfig
    from bid_ros.policy.runtimes.registry import parse_runtime

    if isinstance(bundle.settings, RemoteConfig):
        if not bundle.settings.gradients:
            raise BidError(
                f"decoder '{decoder}' needs the network's gradient, which the server at {bundle.settings.address} did "
                "not have; valid is one of bid serve --runtime torch: start it, and call bid remote again"
            )
    elif parse_runtime(runtime)[0] != "torch":
        raise BidError(
            f"decoder '{decoder}' needs the network's gradient; the policy's runtime is '{runtime}', "
            f"valid is torch, in the system's nodes.yaml or by --parameters"
        )


def check_arm(specs: Iterable[NodeSpec]) -> None:
    """Raise ArmError if the task has other joints than the robot, or a gripper that it has not or never moves."""
    for spec in specs:
        if spec.name == ARM:
            wanted = spec.parameters
            task, path = load_task(wanted["task"]), wanted["arm_config"]
            config = load_arm_config(path, wanted["robot_ip"], wanted["twin"], wanted["arm"])
            if task.columns("gripper") is not None and not getattr(config, "gripper", True):
                raise ArmError(
                    f"task '{task.name}' commands a gripper, and the robot of {path} has none; valid is `gripper` in "
                    f"that file, or a task without it"
                )
            _check_joints(task, getattr(config, "joint_names", ()), path)
            if task.columns("gripper") is not None:
                _check_openings(task, getattr(config, "gripper_thresholds", None), path)


def check_files(specs: Iterable[NodeSpec]) -> None:
    """Raise CameraError if a video file or bag of a camera is not there: its node would wait for it."""
    from bid_ros.cameras.config import load_cameras  # OpenCV takes a while to import

    for spec in specs:
        if spec.name == CAMERA:
            names = [camera.name for camera in load_task(spec.parameters["task"]).cameras]
            file = Path(spec.parameters["cameras"])
            for camera in load_cameras(file, names, spec.parameters["twin"]).values():
                camera.check_there(file.parent)


def _check_joints(task: Task, names: Sequence[str], path: str) -> None:
    """Raise ArmError if a feature has more or fewer joints than a file names: its recordings would be no use."""
    for feature in (*task.observation, *task.action):
        if names and feature.kind == "joints" and feature.size != len(names):
            raise ArmError(
                f"task '{task.name}' has '{feature.name}' of shape [{feature.size}], and {path} names {len(names)} "
                f"joints; valid is [{len(names)}]"
            )


def _check_openings(task: Task, thresholds: GripperThresholds | None, path: str) -> None:
    """Raise ArmError if no opening that the task allows means open, or closed, to the robot of a file."""
    low, high = task.limits.gripper_min, task.limits.gripper_max
    if thresholds is not None and not (low <= thresholds.close_below and thresholds.open_above <= high):
        raise ArmError(
            f"task '{task.name}' commands openings from {low:g} to {high:g} m, and the gripper of {path} closes below "
            f"{thresholds.close_below:g} and opens above {thresholds.open_above:g} m; valid are gripper_min and "
            "gripper_max with both of these between them"
        )


def _set_aside(out: Path) -> None:
    """Move an earlier run out of the way, whether it ended well or in its start: nothing recorded is overwritten."""
    if not any((out / name).exists() for name in WRITTEN):
        return
    number = 1
    while (earlier := out.with_name(f"{out.name}.{number}")).exists():
        number += 1
    out.rename(earlier)
    print(f"moved the earlier run to {earlier}", file=sys.stderr)
