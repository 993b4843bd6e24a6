"""Which tasks of robomimic there are, and what the simulator calls them."""

from dataclasses import dataclass
from typing import Final

LIFT: Final = "lift"
CAN: Final = "can"
SQUARE: Final = "square"
TOOL_HANG: Final = "tool_hang"


@dataclass(frozen=True)
class ObservedObject:
    """One of the objects that are observed.

    Attributes:
        name: short, unique in its task.
        place_at: index, among the values of ``object``, of its place; its quaternion follows.
        way_at: index of the way from the tool to it, in the world's frame or in that of the hand.
    """

    name: str
    place_at: int
    way_at: int


@dataclass(frozen=True)
class RobomimicTask:
    """One task.

    Attributes:
        name: of the bench.
        environment: name in robosuite, and in the files of demonstrations.
        object_size: values of ``object``, which is what is observed of the objects.
        objects: where each stands among these values.
        centre: m, what a picture looks at.
    """

    name: str
    environment: str
    object_size: int
    objects: tuple[ObservedObject, ...]
    centre: tuple[float, float, float]


TASKS: Final = {
    item.name: item
    for item in (
        RobomimicTask(LIFT, "Lift", 10, (ObservedObject("cube", 0, 7),), (-0.05, 0.0, 0.9)),
        RobomimicTask(CAN, "PickPlaceCan", 14, (ObservedObject("can", 7, 0),), (0.1, 0.05, 0.9)),
        RobomimicTask(SQUARE, "NutAssemblySquare", 14, (ObservedObject("nut", 7, 0),), (0.05, 0.05, 0.9)),
        RobomimicTask(
            TOOL_HANG,
            "ToolHang",
            44,  # two more at the end: 1 where the frame is assembled, and where the tool hangs
            (ObservedObject("stand", 7, 0), ObservedObject("frame", 21, 14), ObservedObject("tool", 35, 28)),
            (-0.05, -0.05, 0.95),
        ),
    )
}
