"""Which tasks of robomimic there are, and what the simulator calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LIFT: Final = "lift"
CAN: Final = "can"
SQUARE: Final = "square"
TOOL_HANG: Final = "tool_hang"
TRANSPORT: Final = "transport"
POSE: Final = 10
"""Values of an arm's action: x, y, z of the tool in m, its rotation in six numbers, the gripper: -1 open, 1 closed."""


OF_ARM: Final = ("eef_pos", "eef_quat", "gripper_qpos")  # what is observed of an arm


@dataclass(frozen=True)
class ObservedObject:
    """One of the objects that are observed.

    Attributes:
        name: short, unique in its task.
        place_at: index, among the values of ``object``, of its place; its quaternion follows.
        way_at: index of the way from the tool to it.
        arm: number of the arm whose tool that is.
        in_hand: whether the way is in the frame of the hand, and the object's quaternion in that frame follows it.
            Otherwise it is in the world's frame.
    """

    name: str
    place_at: int
    way_at: int
    arm: int = 0
    in_hand: bool = True


@dataclass(frozen=True)
class RobomimicTask:
    """One task.

    Attributes:
        name: of the bench.
        environment: name in robosuite, and in the files of demonstrations.
        objects: where each stands among the values of ``object``, which is what is observed of them.
        columns_14: where each of these values stands in a file of robosuite 1.4.
        centre: m, what a picture looks at.
        facing: where each of the Pandas looks, degrees about the vertical.
        view: of a picture: azimuth and elevation, degrees, and distance, m.
    """

    name: str
    environment: str
    objects: tuple[ObservedObject, ...]
    columns_14: tuple[int, ...]
    centre: tuple[float, float, float]
    facing: tuple[float, ...] = (0.0,)
    view: tuple[float, float, float] = (150.0, -20.0, 1.3)

    @property
    def arms(self) -> int:
        """How many arms there are, each with a tool."""
        return len(self.facing)

    @property
    def action_size(self) -> int:
        """Values of an action: those of the arms, one after the other."""
        return POSE * self.arms

    @property
    def observed(self) -> Mapping[str, str]:
        """What published low-dimensional policies observe, by robomimic's name, and robosuite's name of it."""
        of_arms = (f"robot{arm}_{what}" for arm in range(self.arms) for what in OF_ARM)
        return {"object": "object-state", **{name: name for name in of_arms}}


SWAPPED: Final = (*range(7, 14), *range(7))
"""Robosuite 1.4 has an object's pose in the world before that in the frame of the hand, 1.5 after it."""
TASKS: Final = {
    item.name: item
    for item in (
        RobomimicTask(
            LIFT,
            "Lift",
            (ObservedObject("cube", 0, 7, in_hand=False),),
            tuple(range(10)),
            (-0.05, 0.0, 0.9),
        ),
        RobomimicTask(CAN, "PickPlaceCan", (ObservedObject("can", 7, 0),), SWAPPED, (0.1, 0.05, 0.9)),
        RobomimicTask(SQUARE, "NutAssemblySquare", (ObservedObject("nut", 7, 0),), SWAPPED, (0.05, 0.05, 0.9)),
        RobomimicTask(
            TOOL_HANG,
            "ToolHang",
            (ObservedObject("stand", 7, 0), ObservedObject("frame", 21, 14), ObservedObject("tool", 35, 28)),
            # Two more at the end: 1 where the frame is assembled, and where the tool hangs.
            (*(first + column for first in (0, 14, 28) for column in SWAPPED), 42, 43),
            (-0.05, -0.05, 0.95),
        ),
        RobomimicTask(
            TRANSPORT,
            "TwoArmTransport",
            (
                ObservedObject("payload", 0, 29, in_hand=False),
                ObservedObject("lid", 14, 32, in_hand=False),
                ObservedObject("trash", 7, 38, arm=1, in_hand=False),
            ),
            # Also where the two bins are, what is done, which stands last in 1.4, and the way from the second tool to
            # the payload.
            (*range(27), 39, 40, *range(27, 39)),
            (0.0, 0.0, 0.9),
            facing=(90.0, -90.0),
            view=(180.0, -25.0, 2.0),
        ),
    )
}
