"""The architecture's rules that a machine can check."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROS = {"rclpy", "launch", "launch_ros", "ament_index_python", "builtin_interfaces", "rcl_interfaces", "std_srvs"}
LOW_LEVEL = {
    "checks",
    "chunk",
    "deadline",
    "errors",
    "kinematics",
    "limits",
    "paths",
    "rotation",
    "rtde",
    "schedule",
    "stamps",
    "task",
}
MIDDLE = {"observation", "decoding", "safety", "arms", "sim", "cameras", "teleop"}
ALLOWED = {
    "checks": set(),
    "chunk": LOW_LEVEL,
    "kinematics": {"errors", "kinematics"},
    "limits": {"checks", "errors"},
    "rtde": set(),
    "stamps": {"chunk"},
    "task": LOW_LEVEL,
    **{name: LOW_LEVEL | {name} for name in MIDDLE},
    "policy": LOW_LEVEL | MIDDLE | {"policy"},
    "recording": LOW_LEVEL | MIDDLE | {"recording"},
    "learning": LOW_LEVEL | MIDDLE | {"policy", "recording", "learning"},
    "evaluation": LOW_LEVEL | MIDDLE | {"policy", "recording", "learning", "evaluation"},
}


def modules() -> list[Path]:
    return sorted((ROOT / "bid_ros").rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def is_ros(name: str) -> bool:
    top = name.split(".")[0]
    return top in ROS or top.endswith(("_msgs", "_srvs"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_nodes_and_what_starts_them_import_ros(path):
    relative = path.relative_to(ROOT / "bid_ros")
    if relative.parts[0] == "nodes" or str(relative) == "bringup.py":
        return
    assert not {name for name in imported(path) if is_ros(name)}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path):
    part = path.relative_to(ROOT / "bid_ros").with_suffix("").parts[0]
    if part not in ALLOWED:
        return
    inner = {name.split(".")[1] for name in imported(path) if name.startswith("bid_ros.")}
    assert inner <= ALLOWED[part]


def test_the_rule_can_fail():
    assert any(is_ros(name) for name in imported(ROOT / "bid_ros" / "nodes" / "base.py"))
