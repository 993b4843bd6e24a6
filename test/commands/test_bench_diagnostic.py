"""``bid bench diagnostic`` from its arguments to its files."""

from __future__ import annotations

import argparse
import json

import pytest

from bid_ros.commands.bench_diagnostic import add_diagnostic_parser
from bid_ros.core.errors import BidError

FAST = ["--episodes", "500", "--repeats", "2", "--action-horizon", "1,7", "--noise", "0,0.4"]
FASTEST = ["--episodes", "100", "--repeats", "2", "--action-horizon", "1", "--noise", "0.4"]


def bench(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_diagnostic_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["diagnostic", *arguments])
    return options.run(options)


def test_it_writes_numbers_table_and_histograms(tmp_path, capsys):
    assert bench(*FAST, "--reading", "text", "--out", str(tmp_path / "new" / "one")) == 0
    printed = capsys.readouterr()
    folder = tmp_path / "new" / "one"
    names = ["diagnostic.json", "diagnostic.md", "histogram_noise_0.4.png", "histogram_noise_0.png"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert printed.out == (folder / "diagnostic.md").read_text()
    assert "4 of 4 cells" in printed.err
    data = json.loads((folder / "diagnostic.json").read_text())
    assert data["reading"] == "text"
    assert [(cell["noise"], cell["horizon"], cell["pause"]) for cell in data["cells"]] == [
        (0.0, 1, 4),
        (0.0, 7, 4),
        (0.4, 1, 4),
        (0.4, 7, 4),
    ]
    assert all(sum(cell["learner"]) == pytest.approx(1) for cell in data["cells"])


@pytest.mark.parametrize("noises", ["0.4,0", "0,0.4"])
def test_a_noise_level_has_its_own_pause(tmp_path, capsys, noises):
    bench(*FAST, "--noise", noises, "--action-horizon", "1", "--json", "--out", str(tmp_path))
    data = json.loads(capsys.readouterr().out)
    assert data["reading"] == "fitted"
    assert {cell["noise"]: cell["pause"] for cell in data["cells"]} == {0.0: 4, 0.4: 2}


def test_the_same_seed_writes_the_same_file(tmp_path, capsys):
    texts = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        bench(*FASTEST, "--reading", "text", "--seed", seed, "--json", "--out", str(tmp_path / name))
        texts.append(capsys.readouterr().out)
    assert json.loads(texts[0])["cells"] == json.loads(texts[1])["cells"]
    assert json.loads(texts[0])["cells"] != json.loads(texts[2])["cells"]


def test_options_change_the_reading(tmp_path, capsys):
    bench(
        *FAST,
        "--pause",
        "3,1",
        "--steps",
        "20",
        "--count",
        "stay",
        "--distance",
        "summed",
        "--json",
        "--out",
        str(tmp_path),
    )
    data = json.loads(capsys.readouterr().out)
    assert data["reading"] == "custom"
    wanted = {"pauses": [3, 1], "steps": 20, "count": "stay", "distance": "summed"}
    assert wanted.items() <= data["settings"].items()


def test_bad_input_is_one_sentence(tmp_path, capsys):
    with pytest.raises(BidError, match="there are 3 pauses; valid is 1 or one for each of 2 noise levels"):
        bench(*FAST, "--pause", "4,2,2", "--out", str(tmp_path))
    with pytest.raises(BidError, match=r"'fitted' has no pause for noise 0\.3; valid are 0, 0.2, 0.4, or --pause too"):
        bench(*FAST, "--noise", "0.3", "--out", str(tmp_path))
    with pytest.raises(BidError, match="--seed is -1"):
        bench(*FAST, "--seed", "-1", "--out", str(tmp_path))
    with pytest.raises(BidError, match="--action-horizon is '1,x'; valid is a comma list of numbers"):
        bench("--action-horizon", "1,x")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BidError, match="file is a file; valid is a folder"):
        bench(*FAST, "--reading", "text", "--out", str(tmp_path / "file" / "below"))
