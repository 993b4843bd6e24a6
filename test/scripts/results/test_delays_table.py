"""The table of policies trained for delays, on scores that can be worked out by hand."""

from dataclasses import asdict

import pytest
from results.delays_table import against, main, scores_of

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.results import encode_row

SCORES = {("flow", "vanilla"): {0: 0.9, 1: 0.6, 2: 0.4}, ("flow", "bid"): {0: 0.9, 1: 0.8, 2: 0.8}}


@pytest.fixture
def folder(tmp_path):
    for (run, decoder), by_delay in SCORES.items():
        file = tmp_path / f"runs_{run}" / "episodes.jsonl"
        file.parent.mkdir(exist_ok=True)
        for delay, score in by_delay.items():
            cell = asdict(BenchCell(decoder=decoder, horizon=4, delay=delay))
            rows = [
                {"key": BenchCell(**cell).key, "cell": cell, "seed": 1, "episode": number, "score": score}
                for number in range(4)
            ]
            with file.open("a") as out:
                out.writelines(encode_row(row) for row in rows)
    return tmp_path


def test_only_real_delays_count_in_a_difference(folder):
    found = scores_of(folder)
    assert against(found["plain", "bid"], found["plain", "vanilla"]) == "+0.300 (+0.300 to +0.300)"
    assert against(found["plain", "bid"], found["plain", "bid"]) == "-"


def test_the_table_has_a_score_for_each_delay(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["delays-table", str(folder)])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| trained | decoder | 0 | 1 | 2 | minus plain vanilla | minus plain bid |"
    assert lines[2].startswith("| plain | vanilla | .900 | .600 | .400 | - | -0.300")
