"""The board: its page in true size, its file, and what is refused."""

from __future__ import annotations

import re
import zlib

import pytest

from bid_ros.calibration.board import Board, board_of, board_text, write_pdf
from bid_ros.cli import main
from bid_ros.core.errors import CalibrationError
from bid_ros.core.settings import load_settings
from bid_ros.system.folder import find_system


def areas(path):
    """Sides in mm of all rectangles on the page, and the page's own."""
    content = path.read_bytes()
    streams = re.findall(rb"stream\r?\n(.*?)endstream", content, re.S)
    drawn = b"".join(zlib.decompress(item) for item in streams if item[:1] == b"x")
    number = rb"(-?[\d.]+) "
    path_of = number * 2 + rb"m\n" + (number * 2 + rb"l\n") * 3 + rb"h"
    found = []
    for values in re.findall(path_of, drawn):
        xs, ys = [float(v) for v in values[::2]], [float(v) for v in values[1::2]]
        found.append((max(xs) - min(xs), max(ys) - min(ys)))
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", content)
    return [(w * 25.4 / 72, h * 25.4 / 72) for w, h in found], [float(v) * 25.4 / 72 for v in box.groups()]


def test_the_page_is_a4_and_has_the_board_in_its_true_size(tmp_path):
    board = Board()
    write_pdf(board, tmp_path / "board.pdf")
    drawn, page = areas(tmp_path / "board.pdf")
    assert page == pytest.approx([297, 210], abs=0.1)
    count = board.columns * board.rows // 2
    assert sum(w == pytest.approx(30, abs=0.02) and h == pytest.approx(30, abs=0.02) for w, h in drawn) == count
    assert sum(w == pytest.approx(22, abs=0.02) and h == pytest.approx(22, abs=0.02) for w, h in drawn) == count


def test_the_command_writes_page_and_description_and_keeps_a_corrected_one(folder, capsys):
    assert main(["calibrate", "board", str(folder)]) == 0
    assert "measure it, and correct" in capsys.readouterr().out and (folder / "board.pdf").stat().st_size > 1000
    file = folder / "board.yaml"
    assert load_settings(Board, file, "board file") == Board() == board_of(find_system(folder))
    file.write_text(board_text(Board(square=0.0297, marker=0.0218)))
    assert main(["calibrate", "board", str(folder), "--json"]) == 0
    assert board_of(find_system(folder)).square == 0.0297


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dictionary": "9X9_50"}, "dictionary is '9X9_50'; valid are 4X4_50, "),
        ({"marker": 0.03}, "marker is 0.03 m; valid is less than square"),
        ({"columns": 20, "rows": 20}, "needs 200 markers; valid for dictionary 4X4_50 is 50"),
        ({"columns": 2}, "columns is 2"),
    ],
)
def test_a_board_that_cannot_be_is_one_sentence(given, words):
    with pytest.raises(CalibrationError, match=words):
        Board(**given)
