"""The shipped Push-T policy, in a smoke bench: a few episodes of seed 21, which no published table uses."""

from __future__ import annotations

import json

import pytest

from bid_ros.cli import main
from bid_ros.core.paths import share


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_shipped_policy_pushes_the_block_home(tmp_path, capsys):
    pytest.importorskip("gym_pusht")
    arguments = ["bench", "pusht", "--bundle", str(share("models", "pusht")), "--decoder", "vanilla,bid"]
    arguments += ["--action-horizon", "8", "--noise", "0,1.0", "--episodes", "3", "--seed", "21", "--samples", "4"]
    assert main([*arguments, "--steps", "220", "--workers", "2", "--out", str(tmp_path), "--json"]) == 0
    cells = {(c["cell"]["decoder"], c["cell"]["noise"]): c for c in json.loads(capsys.readouterr().out)["cells"]}
    assert cells["vanilla", 0.0]["score"][0] > 0.8
    assert cells["bid", 0.0]["score"][0] > 0.8
    # Executing eight actions blindly is what noise of this strength ruins.
    assert cells["vanilla", 1.0]["score"][0] < cells["vanilla", 0.0]["score"][0]
    assert cells["bid", 0.0]["published"] == ""  # with 4 samples
    assert (tmp_path / "episodes.parquet").stat().st_size > 0
    assert "<img" in (tmp_path / "report.html").read_text()
