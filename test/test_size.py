"""What keeps the package small enough to be carried by few people."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "bid_ros").rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 300, 60
# Names that say nothing of what a file holds.
EMPTY_NAMES = {"parts", "words", "utils", "util", "helpers", "misc", "common", "tools"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def definitions() -> list[tuple[str, str, int]]:
    """File, name and lines of each class (0 lines) and function of the package."""
    return [
        (name_of(path), node.name, 0 if isinstance(node, ast.ClassDef) else (node.end_lineno or 0) - node.lineno + 1)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_public_class_name_stands_for_two_things():
    places: dict[str, list[str]] = defaultdict(list)
    for file, name, lines in definitions():
        if not lines and not name.startswith("_"):
            places[name].append(file)
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_the_name_of_a_file_says_what_it_holds():
    assert not [name_of(path) for path in MODULES if path.stem in EMPTY_NAMES]


def test_modules_are_short():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: length for name, length in lengths.items() if length > MODULE_LINES}


def test_functions_are_short():
    lengths = {f"{file}:{name}": lines for file, name, lines in definitions()}
    assert not {name: length for name, length in lengths.items() if length > FUNCTION_LINES}
