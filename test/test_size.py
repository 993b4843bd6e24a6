"""What keeps the package small enough to be carried by few people."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "bid_ros").rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 300, 60
# Names that say nothing of what a file holds.
EMPTY_NAMES = {"parts", "words", "utils", "util", "helpers", "misc", "common", "tools"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_public_class_name_stands_for_two_things():
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name_of(path))
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_the_name_of_a_file_says_what_it_holds():
    assert not [name_of(path) for path in MODULES if path.stem in EMPTY_NAMES]


def test_modules_are_short():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: length for name, length in lengths.items() if length > MODULE_LINES}


def test_functions_are_short():
    lengths = {
        f"{name_of(path)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: length for name, length in lengths.items() if length > FUNCTION_LINES}
