"""``scripts/results soak``: what its table counts, and which node it says has grown."""

from __future__ import annotations

import pytest
from results import soak


def minutes(*memory, missed=0):
    """Return the minutes of a run with these MB of one node; 10 decisions a minute, the second half beside others."""
    return [
        {
            "minute": number,
            "decoder": "bid" if number % 2 else "ema",
            "busy": number > len(memory) // 2,
            "episodes": number,
            "successes": number,
            "decisions": 10 * number,
            "missed": missed * number,
            "safety_stops": 0,
            "memory_mb": {"policy": used},
        }
        for number, used in enumerate(memory, start=1)
    ]


def test_the_table_counts_what_each_part_of_the_run_added():
    told = soak.table(minutes(90, 100, 100, 100, 100, 101, 102), settle=2.0)
    assert "| until minute 1 | 1 | 1 | 10 | 0 | 0 |" in told
    assert "| until minute 7 | 1 | 1 | 10 | 0 | 0 |" in told  # the minute that six parts of one leave
    assert "| bid, alone | 2 | 2 | 20 | 0 | 0 |" in told
    assert "| ema, beside others | 2 | 2 | 20 | 0 | 0 |" in told
    assert "| policy | 100 | 102 | +2.0 % |" in told


@pytest.mark.parametrize(("memory", "named"), [((50, 100, 104), []), ((50, 100, 106), ["policy"])])
def test_memory_counts_from_when_it_has_settled(memory, named):
    assert soak.grown(minutes(*memory), settle=2.0) == named


def test_a_run_that_has_ended_no_episode_counts_nothing(tmp_path):
    assert set(soak.counted(tmp_path / "run.json").values()) == {0}
