"""The architecture's rules that a machine can check."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bid_ros"
ROS = {"rclpy", "launch", "launch_ros", "ament_index_python", "builtin_interfaces", "rcl_interfaces", "std_srvs"}
# Packages of one tier may import each other; none imports a higher one.
TIERS = (
    {"core"},
    {"control", "decoding", "safety", "sim"},
    {"robots", "tasks", "teleop", "cameras", "observing"},
    {"policy", "recording", "system", "formats"},
    {"bench", "calibration", "curation", "episodes", "evaluation", "importing", "learning", "replay", "views"},
    {"nodes", "commands"},
    {"cli"},
)
TIER = {name: number for number, names in enumerate(TIERS) for name in names}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> set[str]:
    """Names of what a file imports; ``from package import module`` counts as the module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = ROOT / Path(*node.module.split(".")) / f"{alias.name}.py"
                names.add(f"{node.module}.{alias.name}" if inner.exists() else node.module)
    return names


def is_ros(name: str) -> bool:
    top = name.split(".")[0]
    return top in ROS or top.endswith(("_msgs", "_srvs"))


def package_of(name: str) -> str:
    return name.split(".")[1]


def test_only_nodes_import_ros():
    others = [path for path in modules() if package_of(f"{name_of(path)}.") != "nodes"]
    found = {name_of(path): {name for name in imported(path) if is_ros(name)} for path in others}
    assert len(found) > 100 and not {path: names for path, names in found.items() if names}


def test_imports_run_one_way():
    found = {}
    for path in modules():
        if path.parent != PACKAGE or path.stem == "cli":
            own = TIER[package_of(name_of(path))]
            inner = (name for name in imported(path) if name.startswith("bid_ros."))
            found[name_of(path)] = {name for name in inner if TIER[package_of(name)] > own}
    assert len(found) > 100 and not {path: names for path, names in found.items() if names}


def test_every_package_has_a_tier():
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert found == set(TIER) - {"cli"}


def test_the_page_on_the_architecture_says_the_same_layers():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    table = page.split("| layer | packages |")[1].split("\n\n")[0].splitlines()[2:]
    assert [set(re.findall(r"`(\w+)`", row)) for row in reversed(table)] == list(TIERS)


def test_files_import_each_other_in_no_circle():
    assert not circle({name_of(path): imported(path) - {name_of(path)} for path in modules()})


def circle(graph: dict[str, set[str]]) -> str:
    """Return a circle of a graph, as ``a -> b -> a``; empty if it has none."""
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> str:
        if name in trail:
            return " -> ".join([*trail[trail.index(name) :], name])
        if name in done or name not in graph:
            return ""
        found = next(filter(None, (visit(other, (*trail, name)) for other in sorted(graph[name]))), "")
        done.add(name)
        return found

    return next(filter(None, (visit(name, ()) for name in graph)), "")


def test_folders_import_each_other_in_no_circle():
    graph: dict[str, set[str]] = {}
    for path in modules():
        if path.parent != PACKAGE:
            own = package_of(name_of(path) + ".")
            inner = {package_of(name) for name in imported(path) if name.startswith("bid_ros.")}
            graph.setdefault(own, set()).update(inner - {own})
    assert not circle(graph)


def test_the_rules_can_fail():
    assert any(is_ros(name) for name in imported(PACKAGE / "nodes" / "base.py"))
    assert "bid_ros.robots.base" in imported(PACKAGE / "nodes" / "arm_node.py")
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}}) == "a -> b -> c -> a"
    assert not circle({"a": {"b", "c"}, "b": {"c"}})
