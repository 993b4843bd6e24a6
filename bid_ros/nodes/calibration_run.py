"""The ways to images of the board: a person guides the arm, or a system is started that drives it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from rclpy.executors import ExternalShutdownException

from bid_ros.calibration.board import Board
from bid_ros.calibration.calibrating import FIXED, FRAMES, HAND_EYE, lens_of
from bid_ros.calibration.proposing import PosePlan, reach_of
from bid_ros.calibration.shots import Shot, ShotFolder, size_of
from bid_ros.calibration.twin_scene import TwinCamera
from bid_ros.cameras.config import CameraConfig
from bid_ros.core.errors import BidError, CalibrationError
from bid_ros.core.files import replace_text
from bid_ros.core.rotation import Array
from bid_ros.nodes.calibration import SystemWatch, Taken, take, watching
from bid_ros.system.folder import System
from bid_ros.system.stages import read_record

IMAGES: Final = 15
START_S: Final = 90.0  # for a system to start, and its arm to be in control
EPISODE_S: Final = 3600.0
END_S: Final = 30.0
FIRST_MOTIONS: Final = 3  # stages that a robot has passed before it is driven to poses
TWIN_EPISODES: Final = 20
NICE: Final = 10
# Of a twin: a computer that also renders large images stutters, which is no fault of a node.
PATIENT: Final = {name: {"ros__parameters": {"heartbeat_deadline_s": 2.0}} for name in ("arm", "safety")}
SPEEDS: Final = {"twin": 0.7, "robot": 0.2}  # of homing


@dataclass(frozen=True)
class Session:
    """What images are taken of.

    Attributes:
        system, board, camera: as they are described.
        kind: ``hand-eye``, ``fixed``, or ``intrinsics`` with any camera.
        robot_ip: address of the robot; empty: the twin.
        namespace: of the system.
        say: tells a person how it goes.
    """

    system: System
    board: Board
    camera: CameraConfig
    kind: str
    robot_ip: str
    namespace: str
    say: Callable[[str], None]

    @contextmanager
    def watch(self) -> Iterator[SystemWatch]:
        """Give what listens to the running system, until the end of the block.

        Raises:
            ArmError: the robot has no twin.
            CameraError: the twin does not show the camera.
        """
        if self.camera.source != "twin":
            with watching(self.camera, None, self.namespace) as watch:
                yield watch
            return
        in_hand = self.kind == FIXED or (self.kind not in FRAMES and not self._on_arm())
        eye = TwinCamera(self.system.task, self.board, self.camera.name, in_hand)
        try:
            with watching(self.camera, eye, self.namespace) as watch:
                yield watch
        finally:
            eye.close()

    def _on_arm(self) -> bool:
        from bid_ros.tasks.twins import scene_model

        return bool(scene_model(self.system.task).camera(self.camera.name).bodyid[0])


def guided(session: Session, folder: ShotFolder) -> list[Shot]:
    """Return images taken while a person brings the arm from pose to pose. Ctrl-C ends it early.

    Args:
        session: of a system that runs.
        folder: to which each image is added.

    Raises:
        BidError: the arm or the camera is silent.
    """
    taken: list[Taken] = []
    shots: list[Shot] = []
    session.say(f"bring the arm to {IMAGES} poses from which the camera sees the board, tilted to all sides: an image")
    session.say("is taken whenever the arm rests; Ctrl-C ends early")
    with session.watch() as watch, suppress(KeyboardInterrupt, ExternalShutdownException):
        while len(taken) < IMAGES:
            taken.append(take(watch, session.board, taken))
            shots.append(folder.add(taken[-1].shot))
            session.say(_line(taken[-1], len(shots)) + "; on to another pose")
    return shots


def one_shot(session: Session) -> Shot:
    """Return one image of a running system, for a check. Raises BidError as :func:`guided`, or no board is seen."""
    with session.watch() as watch:
        return take(watch, session.board, [], again=False).shot


def driven(session: Session, folder: ShotFolder, out: Path) -> list[Shot]:
    """Return images from poses that this process proposes, and drives a system to that it starts.

    Args:
        session: of a system that does not run.
        folder: to which each image is added.
        out: folder for what the system writes.

    Raises:
        BidError: as :func:`guided`; the robot has not passed its first stages, nobody can answer or the answer is not
            yes, or the system has ended.
    """
    _check_robot(session)
    taken: list[Taken] = []
    shots: list[Shot] = []
    with _started(session, out) as process, session.watch() as watch:
        plan = _plan(session, _first(session, watch, process, out).shot, watch.joints)
        while (goal := plan.next([(item.tool, item.sighting) for item in taken])) is not None:
            if session.robot_ip:
                _ask(goal)
            reached = watch.go(goal)
            _check_runs(process, out)
            try:
                if not reached:
                    raise CalibrationError("the arm does not come to rest at the pose")
                taken.append(take(watch, session.board, [], again=False))
            except CalibrationError as error:
                session.say(f"left out: {error}")
                continue
            if not plan.scouting:
                shots.append(folder.add(taken[-1].shot))
            session.say("the board is seen; looking around" if plan.scouting else _line(taken[-1], len(shots)))
    return shots


def _first(session: Session, watch: SystemWatch, process: "subprocess.Popen[bytes]", out: Path) -> Taken:
    """Return what the camera sees before anything moves."""
    for _ in range(int(START_S)):
        _check_runs(process, out)
        if watch.until(watch.driven, 1.0):
            return take(watch, session.board, [], again=False)
    raise CalibrationError(f"the system did not drive the arm within {START_S:g} s of its start: {_log(out)}")


def _plan(session: Session, first: Shot, joints: Array) -> PosePlan:
    lens = lens_of(session.camera, size_of([first]))
    arm = session.system.judged_arm(twin=not session.robot_ip)
    assert first.tool is not None, "it was taken at a pose"
    reach = None if arm is None else reach_of(arm, joints)
    return PosePlan(session.system.task, session.board, lens, reach, session.kind == HAND_EYE, first.tool, IMAGES)


def _line(item: Taken, count: int) -> str:
    return f"{count:2} of {IMAGES}: {len(item.sighting.numbers)} corners"


def _check_robot(session: Session) -> None:
    address = session.robot_ip
    if address and (passed := read_record(session.system, address).passed) < FIRST_MOTIONS:
        raise CalibrationError(
            f"robot {address} has passed {passed} stages; valid are {FIRST_MOTIONS} or more before it is driven to "
            f"poses: bid up {session.system.folder} --robot-ip {address} --stage next"
        )
    if address and not sys.stdin.isatty():
        raise CalibrationError("nobody can answer here whether the arm may move; valid is a terminal")


def _ask(goal: Array) -> None:
    place = ", ".join(f"{value:.3f}" for value in goal[:3, 3])
    if input(f"may the tool go to [{place}] m? yes, or anything else: ").strip().lower() != "yes":
        raise CalibrationError("not confirmed, so nothing moves any more")


@contextmanager
def _started(session: Session, out: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a system whose arm goes where it is asked to, and end it with the block."""
    speed = SPEEDS["robot" if session.robot_ip else "twin"]
    words = ["up", str(session.system.folder), "--driver", "poses", "--device-settings", f"{{speed: {speed}}}"]
    words += ["--timeout", str(EPISODE_S), "--no-record", "--out", str(out / "run")]
    words += ["--namespace", session.namespace] if session.namespace else []
    if session.robot_ip:
        words += ["--robot-ip", session.robot_ip, "--unstaged", "--episodes", "1"]  # a stop ends it
    else:
        replace_text(out / "patient.yaml", yaml.safe_dump(PATIENT))
        words += ["--moving", "0", "--episodes", str(TWIN_EPISODES)]  # the twin goes on after a stop
        words += ["--parameters", str(out / "patient.yaml")]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "system.log").open("wb") as log:
        command = [sys.executable, "-m", "bid_ros.cli", *words]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not session.robot_ip:
            os.nice(NICE)  # after it has started: rendering waits for the nodes of the twin, not they for it
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _check_runs(process: "subprocess.Popen[bytes]", out: Path) -> None:
    if process.poll() is not None:
        raise BidError(f"the system has ended with status {process.returncode}: {_log(out)}")


def _log(out: Path) -> str:
    """Return what the system says is wrong, or where it says it."""
    lines = (out / "system.log").read_text(errors="replace").splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return errors[0] if errors else f"see {out / 'system.log'}"
