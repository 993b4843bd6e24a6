import re
import shutil
import subprocess
import sys

import pytest

from bid_ros.decoding.registry import decoder_names


@pytest.fixture
def copy(root, tmp_path):
    for part in ("docs", "scripts"):
        shutil.copytree(root / part, tmp_path / part)
    return tmp_path


def check(folder, root, name="tables"):
    command = [sys.executable, str(folder / "scripts" / "results"), name, "--check"]
    return subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(root), "PATH": ""})


def test_every_table_of_the_docs_is_what_its_summary_says(root):
    done = check(root, root)
    assert done.returncode == 0, done.stderr
    pages = ("results/pusht.md", "results/pusht-families.md", "reference/decoders.md")
    assert not [page for page in pages if "<!-- table " not in (root / "docs" / page).read_text()]


def test_every_decoder_shows_what_was_measured(root):
    page = (root / "docs" / "reference" / "decoders.md").read_text()
    in_table = set(re.findall(r"^\|([a-z+]+), noise", page, re.MULTILINE))
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n## ")[1:]}
    without = [name for name in decoder_names() if name not in in_table and "(../results/" not in sections[name]]
    assert in_table and not without, f"these decoders show no measurement: {without}"


def test_a_number_changed_by_hand_is_found(copy, root):
    page = copy / "docs" / "reference" / "decoders.md"
    text = page.read_text()
    row = next(line for line in text.splitlines() if line.startswith("|bid"))
    page.write_text(text.replace(row, row.replace("0.", "1.", 1)))
    done = check(copy, root)
    assert done.returncode == 1 and done.stderr.split() == ["reference/decoders.md"]


def test_the_table_of_histories_is_what_its_data_say(copy, root):
    assert check(root, root, "history-table").returncode == 0
    page = copy / "docs" / "results" / "pusht-families.md"
    text = page.read_text()
    row = next(line for line in text.splitlines() if line.startswith("| 5 |"))
    page.write_text(text.replace(row, row.replace("0.", "1.", 1)))
    assert check(copy, root, "history-table").returncode == 1
