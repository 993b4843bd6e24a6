"""MkDocs hook: makes the reference from the code while the site is built. Nothing of it is written below docs/.

The pages are the help of every ``bid`` verb, the parameters of every node, the messages and services, and one page of
docstrings for each package. ``FOLDER/*`` in the navigation of mkdocs.yml stands for all pages of a folder, and
``<!-- fields NAME -->`` in a page for a table of the fields in the JSON schema ``config/schemas/NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from bid_ros.cli import build_parser
from bid_ros.core.sentence import _resolved as resolved
from bid_ros.core.sentence import _valid as valid_words

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bid_ros"
FIELDS = re.compile(r"<!-- fields (\S+) -->")
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data):(?=<code>)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace every ``FOLDER/*`` of the navigation by the folder's pages, its index first."""
    own = {str(path.relative_to(config.docs_dir)) for path in Path(config.docs_dir).rglob("*.md")}
    config.nav = _filled(config.nav, sorted(own | set(pages())))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables of fields into a page."""
    return FIELDS.sub(lambda match: "\n".join(_fields(match[1])), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Leave the roles of docstrings out, such as ``:class:`` before a name."""
    return ROLE.sub("", html)


def pages() -> dict[str, str]:
    """Return the Markdown of every page that is made from the code, by its path in the site."""
    made = {
        "reference/cli.md": "\n".join(["# The bid command", "", *_verbs(build_parser(), 2)]),
        "reference/nodes.md": "\n".join(["# Nodes and their parameters", "", *_nodes()]),
        "reference/messages.md": "\n".join(["# Messages and services", "", *_messages()]),
    }
    for folder in sorted(path.parent for path in PACKAGE.glob("*/__init__.py")):
        made[f"reference/python/{folder.name}.md"] = "\n".join([f"# bid_ros.{folder.name}", "", *_modules(folder)])
    return made


def _filled(nav: Any, paths: list[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _filled(item, paths) for title, item in nav.items()}
    if isinstance(nav, list):
        return [page for item in nav for page in _expanded(item, paths)]
    return nav


def _expanded(item: Any, paths: list[str]) -> list[Any]:
    if not isinstance(item, str) or not item.endswith("/*"):
        return [_filled(item, paths)]
    inside = [path for path in paths if str(Path(path).parent) == item.removesuffix("/*")]
    return sorted(inside, key=lambda path: (not path.endswith("/index.md"), path))


def _verbs(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Help of a verb and of those below it, a heading each."""
    os.environ["COLUMNS"] = "100"  # argparse breaks lines there
    yield from (f"{'#' * level} {parser.prog}", "", "```text", parser.format_help().rstrip(), "```", "")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _verbs(verb, level + 1 if level == 2 and parser.prog != "bid" else level)


def _nodes() -> Iterator[str]:
    yield "Every node also sends a heartbeat and diagnostics. `ros2 param describe NODE PARAMETER` says the same.\n"
    for path in sorted(PACKAGE.glob("nodes/*_node.py")):
        module = import_module(f"bid_ros.nodes.{path.stem}")
        yield from (f"## {path.stem}", "", str(module.__doc__).strip(), "")
        yield from ("| parameter | default | valid | meaning |", "|---|---|---|---|")
        for item in module.PARAMETERS:
            kind = type(item.default).__name__
            valid = kind if item.minimum is None else f"{kind}, {item.minimum:g} to {item.maximum:g}"
            yield f"| `{item.name}` | `{item.default!r}` | {valid} | {item.description} |"
        yield ""


def _fields(name: str) -> Iterator[str]:
    schema = json.loads((ROOT / "config" / "schemas" / f"{name}.json").read_text())
    yield from ("| field | default | valid | meaning |", "|---|---|---|---|")
    yield from _rows(schema, schema, "")


def _rows(schema: dict[str, Any], node: dict[str, Any], prefix: str) -> Iterator[str]:
    """A line for each field of a part of a schema, and of the parts inside it."""
    if "additionalProperties" in node and isinstance(node["additionalProperties"], dict):
        yield from _rows(schema, node["additionalProperties"], f"{prefix}NAME.")
    for name, given in node.get("properties", {}).items():
        field, found = f"{prefix}{name}", resolved(schema, given)
        if field == f"{prefix}twin" and "properties" in found and set(node["properties"]) > set(found["properties"]):
            continue  # the section that may replace any of the others
        entry = resolved(schema, found.get("items", {})) if found.get("type") == "array" else found
        text = given.get("description", found.get("description", ""))
        missing = "required" if name in node.get("required", ()) else _short(given.get("default"))
        if "properties" in entry:
            valid, missing = ("a list of entries" if entry is not found else "a section"), ""
        else:
            valid = valid_words(schema, given)
        yield f"| `{field}` | {missing} | {valid} | {text} |"
        yield from _rows(schema, entry, f"{field}{'[]' if entry is not found else ''}.")


def _short(value: Any) -> str:
    """A default as JSON, its numbers rounded for reading."""
    return json.dumps(json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.5g}")))


def _messages() -> Iterator[str]:
    for path in sorted((ROOT / "bid_msgs").glob("*/*.???")):
        if path.suffix in (".msg", ".srv"):
            yield from (f"## bid_msgs/{path.parent.name}/{path.stem}", "", "```text", path.read_text().rstrip())
            yield from ("```", "")


def _modules(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py"), key=lambda path: (path.parent, path.stem != "__init__", path.stem)):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            yield from (f"## {name}", "", f"::: {name}")
            if "__all__" in path.read_text():  # its members have sections of their own
                yield "    options: {members: false}"
            yield ""
