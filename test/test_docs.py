"""The documentation: the site builds without a warning, its links lead somewhere, and nothing is too long."""

import argparse
import ast
import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bid_ros.cli import build_parser

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "results" / "data"  # written by scripts, not pages
LONGEST_README = 120
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")} - set(DATA.glob("*.md")))
OUTSIDE = ROOT / "test" / "outside"  # packages that docs/extending.md includes
TAG = re.compile(r"<[^>]+>")
COMMAND = re.compile(r"(?:^|`)(?:\.venv/bin/)?(bid [^`\n]+)", re.M)
FILE = re.compile(r"`((?:[\w.+-]+/)+[\w.+-]+\.(?:py|sh|yaml|json|npz|xml|md))(?:::[^`]*)?`")
TESTS = re.compile(r"pytest [^`\n]*?test/[^`\n]+")
NOT_YET = {"docs/results/gpu.json"}  # needs a GPU
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_site_has_what_the_code_says(site):
    """A page for every package, a parameter of a node, a field of a message, a verb and an argument of a function."""
    reference = site / "reference"
    packages = {path.parent.name for path in ROOT.glob("bid_ros/*/__init__.py")}
    assert packages <= {path.name for path in (reference / "python").iterdir()}
    for page, words in {
        "nodes": ("decision_phase_ms", "heartbeat_deadline_s"),
        "messages": ("selected_index",),
        "cli": ("bid bench diagnostic", "--action-horizon"),
        "python/decoding": ("bid_ros.decoding.bid.select", "raw action units"),
        "system-files": ("workspace_min", "translational_stiffness", "extrapolate_s"),
    }.items():
        text = (reference / page / "index.html").read_text()
        assert all(word in text for word in words), page
        assert ":class:" not in text, page


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_page_on_packages_of_your_own_shows_the_files_that_are_tested(site):
    shown = html.unescape(TAG.sub("", (site / "extending" / "index.html").read_text()))
    files = [path for end in ("py", "toml", "yaml") for path in OUTSIDE.glob(f"*/**/*.{end}")]
    assert len(files) > len(list(OUTSIDE.glob("*/pyproject.toml")))
    assert not [name_of(path) for path in files if path.read_text().strip() not in shown]


def options(parser: argparse.ArgumentParser, name: str) -> dict[str, set[str]]:
    """The options of a verb, and of those below it, by their full names."""
    found = {name: {option for action in parser._actions for option in action.option_strings}}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, below in action.choices.items():
                found |= options(below, f"{name} {verb}")
    return found


def test_every_command_in_a_page_exists_with_its_options():
    valid = options(build_parser(), "bid")
    wrong = []
    for page in PAGES:
        for command in COMMAND.findall(page.read_text()):
            words = re.split(r"[ |]+", command.split("  #")[0])
            verb = next(" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in valid)
            unknown = [word for word in words if word.startswith("--") and word not in valid[verb]]
            no_verb = verb == "bid" and not words[1].startswith("--")
            wrong += [f"{name_of(page)}: {command}"] if no_verb or unknown else []
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_of_tests_selects_some(page):
    """Without -m, files in which all tests are long select nothing."""
    for command in TESTS.findall(page.read_text()):
        texts = [(ROOT / path).read_text() for path in re.findall(r"test/\S+\.py", command)]
        assert "-m" in command.split() or not all("pytestmark = " in text and "mark.long" in text for text in texts)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_have_at_most_120_characters(page):
    long = [number for number, line in enumerate(page.read_text().splitlines(), 1) if len(line) > 120]
    assert not long


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_exist(page):
    """Paths in backquotes, from the checkout or from the package."""
    named = {path for path in FILE.findall(page.read_text()) if "NAME" not in path} - NOT_YET
    parts = {path.name for place in (ROOT, ROOT / "bid_ros") for path in place.iterdir() if path.is_dir()}
    own = {path for path in named if path.split("/")[0] in parts}
    assert not [path for path in own if not any((place / path).exists() for place in (ROOT, ROOT / "bid_ros"))]


def test_every_picture_is_shown():
    text = "".join(page.read_text() for page in PAGES)
    assert not [path.name for path in ROOT.glob("docs/images/*") if f"images/{path.name})" not in text]


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=name_of)
def test_links_outside_the_site_lead_to_files(page):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README


def said_by_the_code() -> str:
    """All texts of the package and the set-up script, a line each; \0 stands where a value is put in."""
    said = [(ROOT / "scripts" / "setup.sh").read_text()]
    for path in (ROOT / "bid_ros").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
                said.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.append(node.value)
    return "\n".join(said)


def test_the_code_says_every_message_of_the_page_on_troubles():
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text()
    messages = [found for line in re.findall(r"^- (`.*?`): ", page, re.M) for found in re.findall(r"`([^`]+)`", line)]
    wanted = [part.strip() for message in messages for part in message.split("...") if len(part.strip()) > 3]
    said = said_by_the_code()
    assert len(wanted) > 100
    assert not [part for part in wanted if part not in said]
