"""What the rest of bid_ros needs to know of a robot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from bid_ros.control.arm_model import ArmModel
from bid_ros.robots.base import Arm
from bid_ros.sim.twin import Twin, TwinScene


def later(name: str) -> Callable[..., Any]:
    """Return a function that passes its call on to ``package.module:function``, whose module is imported only then."""

    def call(*arguments: Any) -> Any:
        return resolve_name(name)(*arguments)

    return call


@dataclass(frozen=True)
class TwinMaker:
    """How a robot's twin is made. The functions import its libraries; nobody needs those of a robot they do not have.

    Attributes:
        build: from the scene of a task and a loopback address to a twin that is not started; raises ArmError for an
            address it cannot serve.
        scene_model: from the scene of a task to the twin's compiled MuJoCo model, with the ``qpos`` and mocap layout
            that the running twin has, for a renderer in another process.
        picture_model: from the scene of a task to the same model as it looks; None: there is none for pictures.
        limbs: names arm and hand in that model (:class:`bid_ros.sim.limbs.Limbs`), path as ``package.module:name``;
            empty: tasks of a file with objects cannot be rehearsed with the robot.
    """

    build: Callable[..., Twin]
    scene_model: Callable[[TwinScene], Any]
    picture_model: Callable[[TwinScene], Any] | None = None
    limbs: str = ""


@dataclass(frozen=True)
class TrackedMotion:
    """How a robot, or its twin, followed its set-points with a configuration.

    Attributes:
        lag_s: s by which its tool came after them.
        rest_m: m by which it was off them at rest, the median.
        config: fields of its configuration.
    """

    lag_s: float
    rest_m: float
    config: Mapping[str, Any]


@dataclass(frozen=True)
class RobotDescriptor:
    """A robot. Its folder has one of these as ``ROBOT``; another package names its own in ``bid_ros.robots``.

    Attributes:
        name: for example ``franka``.
        config: class that its configuration file is read into, marked with :func:`bid_ros.core.settings.settings`. Its
            fields ``address`` and ``twin`` are set by the caller and marked ``BY_CALLER``.
        driver: from a configuration to the driver, not connected; imports the robot's library.
        library: Python package that the driver needs, for the error that names it.
        ports: TCP ports that the robot serves, and so its twin.
        template: what ``bid new`` starts from: path of a folder with ``task.yaml``, ``robot.yaml`` and, if the usual
            ones do not suit, ``nodes.yaml``, ``view.rviz`` and ``foxglove.json``; or the name of a shipped system.
        extra: of bid_ros, that installs the library; empty for a robot of another package.
        twin: how its twin is made; None without one.
        joints: number of the arm's joints, against which observed joints are checked; 0: not known.
        over_ros: it is driven through ROS. Its driver and its twin take a :class:`bid_ros.robots.bus.Bus` as their last
            argument.
        compliant: it is pulled to its set-points as by a spring, so a stopped one holds where it is.
        forward: from joint angles ``(joints,)`` rad to the pose of the frame that the configuration's tool counts from:
            position ``(3,)`` m and rotation ``(3, 3)``, base frame. A leader arm needs it; None: not known.
        arm_model: from a configuration to kinematics and limits of the joints. A task that commands joints needs it;
            None: such tasks are refused.
        unready: from a configuration, of a robot that answers, to one sentence on what a person has yet to do before it
            moves; empty if nothing. It moves nothing. For ``bid check``.
        external_force: from a configuration with a ``payload_mass`` in kg, of a robot that answers and rests, to the
            force ``(3,)`` N that it feels at its tool beside that payload, base frame with z up; raises ArmError if it
            cannot be read. It moves nothing. For ``bid check``. None: the robot does not tell.
        firmware: from a configuration to the versions that a robot says of itself; raises ArmError if it does not
            answer. It moves nothing. For ``bid accept``.
        alike: from the motion of the robot and that of its twin to the fields of the section ``twin`` that would make
            the twin follow as the robot did. For ``bid accept --compare``; without it only the figures are compared.
    """

    name: str
    config: type[Any]
    driver: Callable[..., Arm]
    library: str
    ports: tuple[int, ...]
    template: str
    extra: str = ""
    twin: TwinMaker | None = None
    joints: int = 0
    over_ros: bool = False
    compliant: bool = False
    forward: Callable[[Any], tuple[Any, Any]] | None = None
    arm_model: Callable[[Any], ArmModel] | None = None
    unready: Callable[[Any], str] = lambda config: ""
    external_force: Callable[[Any], tuple[float, float, float]] | None = None
    firmware: Callable[[Any], str] = lambda config: "not told"
    alike: Callable[[TrackedMotion, TrackedMotion], Mapping[str, Any]] = lambda robot, twin: {}
