"""What lies on the table of a task, and when the task is done: the sections ``objects`` and ``success`` of a task file.

The section ``objects`` builds the scene of the task's twin, whatever its robot, and lays it out by a seed. The section
``success`` is the judge of its episodes there.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from bid_ros.core.errors import TaskError
from bid_ros.core.settings import Positive, Vector3, list_of, settings
from bid_ros.core.shapes import check_names

Shape = Literal["box", "cylinder", "sphere", "mesh", "mark"]
Mover = Literal["robot", "person", "nobody"]
RuleName = Literal["inside", "above", "upright", "held", "released"]
Side = Annotated[float, Field(ge=0.001, le=1.0)]
Place = Annotated[tuple[float, float], list_of(2)]
Share = Annotated[float, Field(ge=0, le=1)]
WITH_TARGET: Final = ("inside", "above")
MESHES: Final = (".stl", ".obj")
LEAST_PATH: Final = 0.06  # m, side of a start region in which a person moves an object
LEAST_HOLLOW: Final = 0.01  # m, side of what is hollow


@settings(error=TaskError)
class SceneObject:
    """An object on the table of the twin. Its pose is recorded as ``ground_truth/NAME_pose``: never an observation.

    Attributes:
        name: of the object, of letters, digits and _.
        shape: box, cylinder (upright), sphere, mesh, or mark, which is painted on the table and touches nothing.
        size: m along x, y and z, from side to side; of a mark along x and y. A mesh is scaled to it.
        start_min: corner of the region in which the middle is put by the seed of an episode, x and y in m, base frame.
        start_max: the other corner.
        start_turn: rad about the vertical by which an episode turns it at most, either way.
        mass: kg, of an object that the robot moves.
        colour: red, green and blue, 0 to 1.
        moved_by: what moves it: robot (it may be pushed and grasped), person (in the twin it goes round in its start
            region, at the speed moving of system.yaml), or nobody. Default robot, of a mark nobody.
        hollow: of a box or cylinder: open at the top, with walls of 3 mm.
        mesh: file of a mesh, STL or OBJ, relative to the task file. Contacts are those of its convex hull.
    """

    name: str
    shape: Shape
    size: Annotated[tuple[Side, ...], Field(min_length=2, max_length=3)]
    start_min: Place
    start_max: Place
    start_turn: Annotated[float, Field(ge=0, le=math.pi)] = 0.0
    mass: Annotated[float, Field(gt=0, le=10)] = 0.1
    colour: Annotated[tuple[Share, Share, Share], list_of(3, minimum=0, maximum=1)] = (0.9, 0.28, 0.1)
    moved_by: Mover | None = None
    hollow: bool = False
    mesh: str = ""

    def __post_init__(self) -> None:
        if self.moved_by is None:
            object.__setattr__(self, "moved_by", "nobody" if self.shape == "mark" else "robot")
        if not re.fullmatch(r"[A-Za-z]\w{0,39}", self.name, re.ASCII):
            raise TaskError(f"objects: name is '{self.name}'; valid is a letter, then up to 39 letters, digits and _")
        x, y, *rest = self.size
        flat = self.shape == "mark"
        valid = {"mark": "[x, y]", "cylinder": "[diameter, diameter, height]", "sphere": "[diameter] three times"}
        same = {"cylinder": (x, y), "sphere": self.size}.get(self.shape, (x,))
        if flat == bool(rest) or len(set(same)) > 1:
            self._refuse(f"size {list(self.size)}", valid.get(self.shape, "[x, y, z]"))
        if flat and self.moved_by == "robot":
            self._refuse("moved_by robot", "person or nobody, as it is painted on the table")
        if self.hollow and self.shape not in ("box", "cylinder"):
            self._refuse("hollow true", "hollow for a box or a cylinder")
        if self.hollow and min(self.size) < LEAST_HOLLOW:
            self._refuse(f"hollow with size {list(self.size)}", f"{LEAST_HOLLOW:g} m or more, as its walls are 3 mm")
        if (self.shape == "mesh") != bool(self.mesh) or (self.mesh and Path(self.mesh).suffix.lower() not in MESHES):
            self._refuse(
                f"mesh '{self.mesh}'", "a file that ends in .stl or .obj for the shape mesh, and none for others"
            )
        least = LEAST_PATH if self.moved_by == "person" else 0.0
        for low, high, axis in zip(self.start_min, self.start_max, "xy", strict=True):
            if not high - low >= least:
                where = f" with {least:g} m between them, as a person moves it" if least else ""
                self._refuse(f"a start region from {low} to {high} m in {axis}", f"min <= max{where}")

    @property
    def height(self) -> float:
        """Over the table where it stands, m; 0 of a mark."""
        return 0.0 if self.shape == "mark" else self.size[2]

    def reach(self, direction: Sequence[float]) -> float:
        """How far it reaches from its middle along a unit vector ``(3,)`` in its own axes, m; a mesh as its box."""
        x, y, z = map(abs, direction)
        if self.shape == "sphere":
            return self.size[0] / 2
        if self.shape == "cylinder":
            return math.hypot(x, y) * self.size[0] / 2 + z * self.height / 2
        return (x * self.size[0] + y * self.size[1] + z * self.height) / 2

    def beside(self, folder: Path) -> "SceneObject":
        """Return it with the path of its mesh from the folder of its task file. Raises TaskError without the file."""
        if not self.mesh:
            return self
        file = folder / self.mesh
        if not file.is_file():
            self._refuse(f"mesh '{self.mesh}'", f"a file in {folder}")
        return replace(self, mesh=str(file.resolve()))

    def _refuse(self, what: str, valid: str) -> None:
        raise TaskError(f"object '{self.name}', a {self.shape}, has {what}; valid is {valid}")


@settings(error=TaskError)
class SuccessRule:
    """What must be so for a success. All rules of a task must hold at once, each for its own time.

    Attributes:
        object: name of the object.
        rule: inside (all of it on a mark, or its foot within a hollow object), above (its middle is over the target,
            its foot not below the target's top), upright (it leans less than 8 degrees), held (between the fingers,
            1 cm over the table or more) or released (not between the fingers).
        target: name of the object that inside and above are about.
        for_s: s without interruption.
    """

    object: str
    rule: RuleName
    target: str = ""
    for_s: Positive = 0.5


def check_objects(
    objects: Sequence[SceneObject], rules: Iterable[SuccessRule], low: Vector3, high: Vector3, kind: str
) -> None:
    """Hold the sections against each other, and against what else a task file says.

    Args:
        objects: of the task.
        rules: of its success.
        low, high: corners of the workspace, m.
        kind: of the task.

    Raises:
        TaskError: the kind brings objects of its own, two objects have one name, one starts outside of the workspace,
            or a rule names what is not there, or does not fit what it names.
    """
    if objects and kind != "table":
        raise TaskError(f"kind '{kind}' brings objects of its own; valid with objects is the kind 'table', the default")
    check_names("objects", [item.name for item in objects])
    for item in objects:
        for axis, first, last, inner, outer in zip("xy", item.start_min, item.start_max, low, high, strict=False):
            if not inner <= first <= last <= outer:
                raise TaskError(
                    f"object '{item.name}' starts from {first} to {last} m in {axis}; "
                    f"valid is inside the workspace, {inner} to {outer} m"
                )
    for rule in rules:
        _check_rule(rule, {item.name: item for item in objects})


def _check_rule(rule: SuccessRule, objects: dict[str, SceneObject]) -> None:
    names, wants = ", ".join(objects) or "none: there are no objects", rule.rule in WITH_TARGET
    if rule.object not in objects:
        raise TaskError(f"success: rule '{rule.rule}' names the object '{rule.object}'; valid are {names}")
    if objects[rule.object].shape == "mark":
        raise TaskError(f"success: '{rule.object}' is a mark; valid is an object that can be {rule.rule}")
    if wants != bool(rule.target):
        said, valid = (f"the target '{rule.target}'", "none") if rule.target else ("no target", names)
        raise TaskError(f"success: rule '{rule.rule}' of '{rule.object}' has {said}; valid is {valid}")
    if wants and (rule.target not in objects or rule.target == rule.object):
        raise TaskError(
            f"success: rule '{rule.rule}' of '{rule.object}' names the target '{rule.target}'; valid are other "
            f"objects of {names}"
        )
    if rule.rule == "inside" and not (objects[rule.target].shape == "mark" or objects[rule.target].hollow):
        raise TaskError(f"success: '{rule.object}' is to be inside '{rule.target}'; valid is a mark or a hollow object")
