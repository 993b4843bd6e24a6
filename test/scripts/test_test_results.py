"""The results of ``scripts/test_all.sh`` in the page of the tests, and the script's own arguments."""

from __future__ import annotations

import subprocess
import sys

BEGIN, END = "<!-- results: scripts/test_all.sh writes them -->", "<!-- end of results -->"
PAGE = f"# Tests\n\nbefore\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n"


def test_the_page_gets_a_row_for_each_lane_and_keeps_the_rest(root, tmp_path):
    folder, page = tmp_path / "1a2b3c", tmp_path / "tests.md"
    folder.mkdir()
    (folder / "docs").write_text("docs: failed, 0 min 09 s\n")
    (folder / "suite").write_text("suite: passed, 9 min 10 s\n")
    (folder / "suite.log").write_text("docs: passed, of a log\n")
    page.write_text(PAGE)
    for _ in range(2):  # writing again replaces
        subprocess.run([sys.executable, root / "scripts/test_results.py", folder, page], check=True)
    text = page.read_text()
    assert text.startswith("# Tests\n\nbefore\n") and text.endswith("\nafter\n") and "old" not in text
    assert "Commit 1a2b3c, 20" in text
    assert text.count("| docs | failed | 0 min 09 s |") == text.count("| suite | passed | 9 min 10 s |") == 1


def test_the_page_of_the_docs_has_a_place_for_them(root):
    text = (root / "docs" / "explanation" / "tests.md").read_text()
    assert text.index(BEGIN) < text.index(END)
    script = (root / "scripts" / "test_all.sh").read_text()
    names = script.partition("names=(")[2].partition(")")[0].split()
    assert all(f"| {name} |" in text for name in names) and len(names) >= 8


def test_an_unknown_lane_is_one_sentence(root):
    done = subprocess.run([root / "scripts/test_all.sh", ".venv", "soak"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: no lane 'soak'; valid are suite serial long")
