import shutil
import subprocess
import sys

import pytest


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
    pages = [root / "docs" / "results" / "pusht.md", *(root / "docs" / "reference" / "decoders").glob("*.md")]
    shown = ("<!-- table ", "results/moving-targets.md")  # Push-T has no target that moves steadily
    without = [page.name for page in pages if page.stem != "index" and not any(s in page.read_text() for s in shown)]
    assert not without, f"these pages show no measurement: {without}"


def test_a_number_changed_by_hand_is_found(copy, root):
    page = copy / "docs" / "reference" / "decoders" / "bid.md"
    text = page.read_text()
    row = next(line for line in text.splitlines() if line.startswith("|bid"))
    page.write_text(text.replace(row, row.replace("0.", "1.", 1)))
    done = check(copy, root)
    assert done.returncode == 1 and done.stderr.split() == ["reference/decoders/bid.md"]


def test_the_table_of_histories_is_what_its_data_say(copy, root):
    assert check(root, root, "history-table").returncode == 0
    page = copy / "docs" / "results" / "history.md"
    text = page.read_text()
    row = next(line for line in text.splitlines() if line.startswith("| 5 |"))
    page.write_text(text.replace(row, row.replace("0.", "1.", 1)))
    assert check(copy, root, "history-table").returncode == 1
