"""What the worlds of the tasks share: a hand of two fingers over a table, in a MuJoCo model."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bid_ros.core.errors import ArmError
from bid_ros.sim.mjcf import look, text
from bid_ros.sim.twin import Array, Pose, World

WRIST_UP: Final = (1.0, 0.0, 0.0)  # of a camera on the wrist, in the frame of the hand


@dataclass
class TaskScene:
    """What a task that is the same for every task file puts into the twin (:class:`bid_ros.sim.twin.TwinScene`)."""

    bodies: tuple[str, ...]
    furnish: Callable[..., None]
    layout: Callable[[int, float], Any]
    world: Callable[[Any, Any], World]

    def named(self, own: Sequence[str], cameras: Sequence[str]) -> "TaskScene":
        """Return the scene with its cameras under the names that a task has for them.

        Args:
            own: names of the scene's cameras.
            cameras: of the task. The first one on the wrist, by its name, is the scene's on the wrist; the first other
                one is the scene's other one.
        """
        free = [name for name in cameras if name not in own]
        names: dict[str, str] = {}
        for camera in own:
            if camera not in cameras:
                found = next((name for name in free if on_wrist(name) == on_wrist(camera)), camera)
                names[camera] = found

        def furnish(scene: ET.Element, hand: ET.Element) -> None:
            self.furnish(scene, hand)
            for camera in scene.iter("camera"):
                camera.set("name", names.get(camera.get("name", ""), camera.get("name", "")))

        return replace(self, furnish=furnish) if names else self


def on_wrist(camera: str) -> bool:
    """Whether a camera of this name is on the wrist; every other one looks at the table from the front."""
    return "wrist" in camera or "hand" in camera


@dataclass(frozen=True)
class TaskTruth:
    """Where everything is. For scoring and scripted demonstrations, never for a policy.

    Attributes:
        stamp_ns: wall time.
        bodies: pose of what lies in the scene, by name: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame.
        tool_position: ``(3,)`` m; tool_quaternion: ``(4,)`` xyzw, base frame.
        gripper_width: m.
        held: the fingers hold, or have held, the object by themselves since the last reset.
        tension: of the string that pulls it, N.
    """

    stamp_ns: int
    bodies: Mapping[str, Pose]
    tool_position: Array
    tool_quaternion: Array
    gripper_width: float
    held: bool
    tension: float = 0.0


class HandWorld:
    """Acts on a MuJoCo model before every step. All methods belong to the stepping thread.

    Args:
        model, data: of the furnished scene.
        hand: name of the gripper's body.
        tool_from_hand: m, the tool's frame lies this far along the hand's z axis.
        fingers: names of the two finger joints. Their sum is the opening in m.
    """

    def __init__(self, model: Any, data: Any, hand: str, tool_from_hand: float, fingers: tuple[str, str]) -> None:
        self._model, self._data = model, data
        self._hand, self._tool_from_hand = data.body(hand), tool_from_hand
        self._fingers = [data.joint(name) for name in fingers]
        self._moving = self._held = False

    @property
    def gripper_width(self) -> float:
        """Opening width, m."""
        left, right = self._fingers
        return float(left.qpos[0] + right.qpos[0])

    @property
    def tool_position(self) -> Array:
        """Position of the tool, ``(3,)`` m, base frame."""
        return along(self._hand, self._tool_from_hand)

    def start_path(self) -> None:
        """Let what moves begin to move, now or as soon as it may."""
        self._moving = True

    def check_open(self, width: float, reason: str) -> None:
        """Raise ArmError unless the gripper is open wider than ``width`` m, which the next episode needs."""
        if self.gripper_width <= width:
            raise ArmError(
                f"the gripper is open {self.gripper_width * 1e3:.0f} mm; the next episode of the twin needs more than "
                f"{width * 1e3:.0f} mm{reason}: open it first"
            )

    def mocap(self, body: str) -> int:
        """Return the row of a body in ``mocap_pos`` and ``mocap_quat``."""
        return int(self._model.body(body).mocapid[0])

    def _truth(self, stamp_ns: int, bodies: Mapping[str, Pose], tension: float = 0.0) -> TaskTruth:
        """Return the present state of the hand, and where the bodies are."""
        turn = xyzw(self._hand.xquat)
        return TaskTruth(stamp_ns, bodies, self.tool_position, turn, self.gripper_width, self._held, tension)


def along(hand: Any, distance: float) -> Array:
    """Return the point ``(3,)`` m that lies ``distance`` m along the z axis of a body."""
    point: Array = hand.xpos + distance * hand.xmat[2::3]
    return point


def xyzw(wxyz: Array) -> Array:
    """Return a quaternion of MuJoCo's as one of ours."""
    return wxyz[[1, 2, 3, 0]]


def add_camera(
    parent: ET.Element,
    name: str,
    fovy: float,
    eye: Sequence[float],
    target: Sequence[float],
    up: Sequence[float] = (0.0, 0.0, 1.0),
) -> None:
    """Add a camera to a body that looks from ``eye`` at ``target``, both m in the body's frame; ``fovy`` in degrees."""
    axes = look(eye, target, up)
    ET.SubElement(parent, "camera", name=name, mode="fixed", fovy=str(fovy), pos=text(eye), xyaxes=axes)
