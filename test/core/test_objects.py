"""The sections objects and success of a task file: what is refused, in one sentence, and how far an object reaches."""

from __future__ import annotations

import math

import pytest
import yaml
from small_task import SMALL

from bid_ros.core.errors import TaskError
from bid_ros.core.objects import SceneObject
from bid_ros.core.task import load_task, parse_task

CUP = {
    "name": "cup",
    "shape": "cylinder",
    "size": [0.06, 0.06, 0.075],
    "start_min": [0.4, 0.0],
    "start_max": [0.5, 0.1],
}
LINE = {"name": "line", "shape": "mark", "size": [0.03, 0.4], "start_min": [0.6, 0.0], "start_max": [0.6, 0.0]}
OBSERVED = [{"name": "tool_position", "kind": "position"}]
ABOVE = {"object": "cup", "rule": "above", "target": "line"}


def content(objects=(CUP, LINE), success=(ABOVE,), **others):
    return {
        **SMALL,
        "observation": OBSERVED,
        "action": OBSERVED,
        "objects": list(objects),
        "success": list(success),
        **others,
    }


def without(item, field):
    return {name: value for name, value in item.items() if name != field}


def test_objects_and_rules_are_no_part_of_what_a_policy_depends_on():
    task = parse_task(content())
    assert [item.moved_by for item in task.objects] == ["robot", "nobody"]
    assert task.success[0].for_s == 0.5
    assert task.signature() == parse_task(content(objects=(), success=())).signature()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"objects": [without(CUP, "size")]}, r"objects\[cup\]: the field 'size' is missing; valid are name, shape"),
        ({"objects": [CUP | {"size": [0.06, 0.06]}]}, "'cup', a cylinder, has size .*; valid is .diameter, diameter"),
        ({"objects": [CUP | {"size": [0.06, 0.07, 0.1]}]}, "'cup', a cylinder, has size"),
        ({"objects": [CUP | {"size": [0.06, 0.06, 0.0]}]}, r"size\[2\] is 0.0; valid is a number from 0.001 to 1"),
        ({"objects": [CUP | {"colour": [230, 28, 0]}]}, r"colour\[0\] is 230; valid is a number from 0 to 1"),
        ({"objects": [LINE | {"size": [0.1, 0.1, 0.1]}]}, r"'line', a mark, has size .*; valid is \[x, y\]"),
        ({"objects": [LINE | {"moved_by": "robot"}]}, "a mark, has moved_by robot; valid is person or nobody"),
        ({"objects": [CUP | {"shape": "cone"}]}, r"shape is 'cone'; valid is one of box, cylinder"),
        ({"objects": [CUP | {"name": "my cup"}]}, "name is 'my cup'; valid is a letter, then up to 39 letters"),
        ({"objects": [CUP, CUP]}, "objects names cup, cup; valid are different names"),
        ({"objects": [CUP | {"shape": "mesh"}]}, "'cup', a mesh, has mesh ''; valid is a file that ends in .stl or"),
        ({"objects": [CUP | {"mesh": "cup.stl"}]}, "'cup', a cylinder, has mesh 'cup.stl'"),
        ({"objects": [CUP | {"shape": "sphere", "size": [0.1] * 3, "hollow": True}]}, "a sphere, has hollow true"),
        ({"objects": [CUP | {"size": [0.05, 0.05, 0.004], "hollow": True}]}, "valid is 0.01 m or more, as its walls"),
        ({"objects": [CUP | {"start_max": [0.3, 0.1]}]}, "start region from 0.4 to 0.3 m in x; valid is min <= max"),
        ({"objects": [CUP | {"start_max": [1.4, 0.1]}]}, "'cup' starts from 0.4 to 1.4 m in x; valid is inside the"),
        (
            {"objects": [CUP | {"moved_by": "person", "start_max": [0.45, 0.1]}]},
            "from 0.4 to 0.45 m in x; valid is min <= max with 0.06 m between them, as a person moves it",
        ),
        ({"kind": "placing"}, "kind 'placing' brings objects of its own; valid with objects is the kind 'table'"),
        ({"objects": []}, "rule 'above' names the object 'cup'; valid are none: there are no objects"),
        ({"success": [ABOVE | {"object": "mug"}]}, "rule 'above' names the object 'mug'; valid are cup, line"),
        ({"success": [ABOVE | {"target": "wall"}]}, "names the target 'wall'; valid are other objects of cup, line"),
        ({"success": [ABOVE | {"target": "cup"}]}, "names the target 'cup'; valid are other objects"),
        ({"success": [without(ABOVE, "target")]}, "rule 'above' of 'cup' has no target; valid is cup, line"),
        ({"success": [ABOVE | {"rule": "held"}]}, "rule 'held' of 'cup' has the target 'line'; valid is none"),
        ({"success": [ABOVE | {"object": "line"}]}, "'line' is a mark; valid is an object that can be above"),
        ({"success": [ABOVE | {"rule": "on"}]}, "rule is 'on'; valid is one of inside, above, upright, held, released"),
        (
            {"objects": [CUP, CUP | {"name": "can"}], "success": [ABOVE | {"rule": "inside", "target": "can"}]},
            "'cup' is to be inside 'can'; valid is a mark or a hollow object",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(changed, sentence):
    with pytest.raises(TaskError, match=sentence) as caught:
        parse_task(content(**changed))
    assert "\n" not in str(caught.value)


def test_a_mesh_is_looked_for_beside_the_task_file(tmp_path):
    mug = CUP | {"name": "mug", "shape": "mesh", "mesh": "meshes/mug.obj"}
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump(content([mug], ())))
    with pytest.raises(TaskError, match=r"'mug', a mesh, has mesh 'meshes/mug.obj'; valid is a file in "):
        load_task(file)
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "mug.obj").write_text("")
    assert load_task(file).objects[0].mesh == str(tmp_path / "meshes" / "mug.obj")


@pytest.mark.parametrize(
    ("shape", "size", "along_x", "aslant"),
    [
        ("box", (0.2, 0.4, 0.6), 0.1, 0.4 / math.sqrt(2)),
        ("cylinder", (0.2, 0.2, 0.6), 0.1, 0.4 / math.sqrt(2)),
        ("sphere", (0.2, 0.2, 0.2), 0.1, 0.1),
        ("mark", (0.2, 0.4), 0.1, 0.1 / math.sqrt(2)),
    ],
)
def test_how_far_an_object_reaches(shape, size, along_x, aslant):
    item = SceneObject("it", shape, size, (0.4, 0.0), (0.4, 0.0))
    assert item.reach([1.0, 0.0, 0.0]) == pytest.approx(along_x)
    assert item.reach([-math.sqrt(0.5), 0.0, math.sqrt(0.5)]) == pytest.approx(aslant)
