"""A system is a folder: its task, robot, cameras, node parameters, and who drives the arm."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import tool_task
from bid_ros.core.arms import check_one_arm
from bid_ros.core.errors import ArmError, BidError, TaskError
from bid_ros.core.limits import check_units
from bid_ros.core.paths import share
from bid_ros.core.settings import parse_settings, read_yaml, settings
from bid_ros.core.task import Task, load_task
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.robots.registry import check_joints, check_robot, load_arm_config, posed_arm, task_arm
from bid_ros.safety.self_collision import check_known
from bid_ros.system.parameters import load_parameters
from bid_ros.tasks.base import Stage
from bid_ros.tasks.registry import build_stage, kind_of
from bid_ros.tasks.topics import system_topics

FILE: Final = "system.yaml"
POLICY: Final = "policy"
ANY_ADDRESS: Final = "127.0.0.1"
BESIDE_BUNDLE: Final = ("bundle_task", "signed_by")  # settings of the policy that name further files


@settings
class PolicySettings:
    """The policy of a system.

    Attributes:
        bundle: folder, relative to the system's; or name of a shipped bundle. Empty: there is none yet.
        bundle_task: task file, relative to the system's folder, that the bundle was made for. Needed if the bundle
            predicts poses and this system's task commands joints, or if that task is this one under another name.
            Empty: the bundle was made for this system's task.
        decoder: name of the decoder, which chooses among the samples; its settings may follow: ``bid:variant=paper``.
        samples: N, strong samples a decision.
        action_horizon: actions executed a decision; 1 is closed loop.
        decision_rate_hz: decisions a second, a multiple of the task's rate; 0 is the task's rate.
        signed_by: file in the system's folder with the OpenSSH public key that signed the bundle; empty: none must.
    """

    bundle: str = ""
    bundle_task: str = ""
    decoder: str = "bid"
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 16
    action_horizon: Annotated[int, Field(ge=1, le=64)] = 1
    decision_rate_hz: Annotated[float, Field(ge=0, le=100)] = 0.0
    signed_by: str = ""


@settings
class TwinSettings:
    """The twin of a system.

    Attributes:
        moving: target speed in the twin, m/s; 0 = static.
    """

    moving: Annotated[float, Field(ge=0, le=0.1)] = 0.0


@settings
class SystemSettings:
    """The content of ``system.yaml``.

    Attributes:
        like: folder, relative to this one, of a system whose files stand in for those that this one lacks; empty: none.
        driver: who drives the arm: ``policy``, or the name of a teleoperation device.
        policy: settings of the policy.
        twin: settings of the twin.
    """

    like: str = ""
    driver: str = POLICY
    policy: PolicySettings = PolicySettings()
    twin: TwinSettings = TwinSettings()


@dataclass(frozen=True)
class System:
    """The folder of a system. A file is read when it is needed.

    Attributes:
        folder: holds ``system.yaml``, ``task.yaml``, ``robot.yaml``, ``cameras.yaml``, ``nodes.yaml``,
            ``view.rviz`` and ``foxglove.json``.
        settings: content of ``system.yaml``.
    """

    folder: Path
    settings: SystemSettings

    @cached_property
    def task(self) -> Task:
        """The task. Raises TaskError if its file is not valid."""
        return load_task(self.file("task.yaml"))

    @cached_property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """Parameters by node. Raises BidError if their file is not valid."""
        return load_parameters(self.file("nodes.yaml"))

    def check(self, twin: bool) -> None:
        """Read every file, so that a mistake is found before anything is started.

        Args:
            twin: whether the sections ``twin`` of the files apply.

        Raises:
            BidError: a file is missing or not valid, or the files do not fit each other.
        """
        from bid_ros.cameras.config import check_depths, load_cameras  # OpenCV takes a while to import

        self.check_task()
        cameras = load_cameras(self.file("cameras.yaml"), [camera.name for camera in self.task.cameras], twin)
        check_depths(self.task.cameras, cameras)
        for camera in cameras.values():
            camera.check_not_moved()
        load_arm_config(self.file("robot.yaml"), ANY_ADDRESS, twin, self.task.robot)
        if self.task.limits.min_self_distance is not None:
            check_known(self.task, self.arm(twin) or posed_arm(self.task, self.file("robot.yaml"), twin))
        _ = self.parameters

    def check_task(self) -> None:
        """Hold the task against its kind, its robot and the installed messages. Raises BidError."""
        kind_of(self.task)
        try:
            check_joints(self.task)
            check_units(self.task.limits)
            system_topics(self.task)
            # rosbags takes a tenth of a second to import, which no other use of a system should wait for.
            from bid_ros.recording.definitions import check_vectors

            check_vectors(self.task)
        except TaskError as error:
            raise TaskError(f"task file {self.file('task.yaml')}: {error}") from error

    @cached_property
    def policy_task(self) -> Task:
        """The task that the policy was made for: of its bundle, or the system's.

        Raises:
            BidError: its file is missing or not valid, or has other features than this system's task, unless this
                commands joints, and the file the tool's pose and the gripper.
        """
        if not (named := self.settings.policy.bundle_task):
            return self.task
        task, wanted = load_task(self.file(named)), tool_task(self.task)
        renamed = task.name != self.task.name and replace(task, name=self.task.name).signature()
        kinds, valid = (", ".join(item.kind for item in made.action) for made in (task, wanted))
        if renamed != self.task.signature() and (self.task.columns("joints") is None or kinds != valid):
            raise BidError(
                f"bundle_task {named} commands {kinds}; valid is the tool's pose for a system that commands joints: "
                f"{valid}; or the same features, rate and horizon under another name"
            )
        return task

    def bundle_parameters(self) -> dict[str, Any]:
        """Return the parameter that names the task of the bundle; none if it is the system's. Raises BidError."""
        if not (named := self.settings.policy.bundle_task):
            return {}
        _ = self.policy_task  # so that a mistake is found before anything is started
        return {"bundle_task": str(self.file(named).resolve())}

    def signer_parameters(self) -> dict[str, Any]:
        """Return the parameter with the key that must have signed the bundle; none if none must. Raises BidError."""
        named = self.settings.policy.signed_by
        return {"signed_by": str(self.file(named).resolve())} if named else {}

    def joint_parameters(self, twin: bool) -> dict[str, Any]:
        """Return the parameters of nodes that make joints; none for a task that does not command them."""
        return {} if self.task.columns("joints") is None else self.arm_parameters(twin)

    def arm_parameters(self, twin: bool) -> dict[str, Any]:
        """Return the parameters of nodes that judge what the arm's joints have to do."""
        return {"arm_config": str(self.file("robot.yaml")), "twin": twin}

    def arm(self, twin: bool = True) -> ArmModel | None:
        """Return the kinematics and limits of the joints that the task commands; None if it commands none.

        Args:
            twin: those of the twin, not of the robot.

        Raises:
            BidError: as :func:`bid_ros.robots.registry.task_arm`.
        """
        return None if self.task.columns("joints") is None else task_arm(self.task, self.file("robot.yaml"), twin)

    def judged_arm(self, twin: bool = True) -> ArmModel | None:
        """Return what chunks are judged with: as :meth:`arm`, else the joints below poses; None: nobody knows them."""
        try:
            return self.arm(twin) or posed_arm(self.task, self.file("robot.yaml"), twin)
        except ArmError:
            return None

    def stage(self) -> Stage:
        """Return what its rehearsals play on; the caller closes it. Raises as :func:`build_stage`."""
        config = load_arm_config(self.file("robot.yaml"), "rehearsal", twin=True, name=self.task.robot)
        return build_stage(self.task, config.gripper_thresholds)

    def file(self, name: str) -> Path:
        """Return the path of a file of the folder, or of the system that it is like.

        Raises:
            BidError: it is missing, or ``like`` names no system, or leads in a circle.
        """
        for folder in self.folders:
            if (folder / name).is_file():
                return folder / name
        others = "".join(f", nor has {folder}, which it is like" for folder in self.folders[1:])
        raise BidError(f"system {self.folder} has no file {name}{others}")

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The folder, and those whose files stand in for what it lacks. Raises BidError as :meth:`file`."""
        found, settings = [self.folder], self.settings
        while settings.like:
            folder = (found[-1] / settings.like).resolve()
            if not (folder / FILE).is_file():
                raise BidError(
                    f"system {found[-1]} is like {settings.like}, which is no system; valid is a folder with {FILE}"
                )
            if folder in found:
                raise BidError(
                    f"system {found[-1]} is like {settings.like}, which leads back to itself; valid is another system"
                )
            found.append(folder)
            settings = _settings(folder)
        return tuple(found)

    def bundle(self, asked: str = "") -> Path:
        """Return the folder of the policy bundle.

        Args:
            asked: path that replaces the one in ``system.yaml``.

        Raises:
            BidError: there is no bundle.
        """
        if asked:
            return Path(asked)
        if not (named := self.settings.policy.bundle):
            raise BidError(
                f"system {self.folder} has no policy: train one (bid demos, data build, train, policy export) and "
                f"name its bundle in {FILE} or with --bundle, or let a teleoperation device act"
            )
        own = self.folder / named
        return own if own.is_dir() else share("models", named)


def find_system(named: str | Path) -> System:
    """Return the system in a folder, or the shipped system of a name.

    Raises BidError if there is none, its ``system.yaml`` is not valid, or it is the file of a task of no robot.
    """
    if (folder := Path(named)).suffix == ".yaml" and folder.is_file():
        check_robot(load_task(folder))
    check_one_arm(named)
    if not (folder / FILE).is_file():
        if folder.is_dir():
            raise BidError(f"folder {folder} is no system: it has no {FILE}; make one with: bid new FOLDER")
        if str(named) not in shipped_systems():
            shipped = ", ".join(shipped_systems())
            raise BidError(f"system '{named}' does not exist; valid are a system's folder and the shipped {shipped}")
        folder = share("config", str(named))
    return System(folder := folder.resolve(), _settings(folder))


def _settings(folder: Path) -> SystemSettings:
    """Return the content of a ``system.yaml``. Raises BidError if it is missing or not valid."""
    path, what = folder / FILE, "system file"
    content = read_yaml(path, what)
    if isinstance(content, dict) and "acts" in content and "driver" not in content:
        content["driver"] = content.pop("acts")  # its name until now
    return parse_settings(SystemSettings, content, f"{what} {path}")


def file_beside(task_file: Path, name: str) -> Path:
    """Return the path of a file of the system that a task file belongs to, or beside a task file alone.

    Whether it exists is not said. Raises BidError if the ``system.yaml`` beside the task file is not valid.
    """
    own = task_file.with_name(name)
    if own.is_file() or not task_file.with_name(FILE).is_file():
        return own
    try:
        return find_system(task_file.parent).file(name)
    except BidError:
        return own


def shipped_systems() -> tuple[str, ...]:
    """Names of the systems that come with the package."""
    return tuple(sorted(file.parent.name for file in share("config").glob(f"*/{FILE}")))
