"""Replayed decisions against recorded ones."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.replay.cue import RecordedDecision, Setting
from bid_ros.replay.parity import Parity, summary, table

SETTING = Setting("bid", 1, 16, 0, 1, None, "onnx", "tiny@0")
CHUNK = np.linspace(0, 1, 12).reshape(4, 3)


def recorded(selected=CHUNK, digest=7, index=2):
    return RecordedDecision(10, SETTING, {}, digest, np.asarray(selected, dtype=np.float32), index)


def test_equal_decisions_are_exact():
    parity = Parity()
    for stream in (1, 1, 2):
        parity.add(stream, recorded(), 7, CHUNK, 2)
    assert parity.exact and parity.total.same == 3 and parity.streams[1].same == 2
    assert summary(parity)["exact"] is True
    assert "| all | 3 | 3 | 3 | 3 | 0 | 0 |" in table(parity)


@pytest.mark.parametrize(
    ("digest", "selected", "index"),
    [(8, CHUNK, 2), (7, CHUNK + 1e-6, 2), (7, CHUNK[:3], 2)],
    ids=["another observation", "another value", "another shape"],
)
def test_one_difference_is_not_exact(digest, selected, index):
    parity = Parity()
    parity.add(1, recorded(), 7, CHUNK, 2)
    parity.add(1, recorded(), digest, selected, index)
    assert not parity.exact


def test_the_difference_and_the_choice_are_told():
    parity = Parity()
    parity.add(1, recorded(), 7, CHUNK + 0.25, 3)
    assert parity.total.largest == pytest.approx(0.25) and parity.total.choices == 0


def test_a_moment_without_a_decision_is_not_exact_and_says_why():
    parity = Parity()
    parity.add(1, recorded(), 7, CHUNK, 2)
    parity.miss(1, "no sample")
    parity.miss(1, "another")
    assert not parity.exact and parity.total.missing == 2 and parity.problem == "no sample"


def test_nothing_compared_is_not_exact_and_shows_only_what_was_decided():
    parity = Parity()
    parity.add(0, None, 7, CHUNK, 2)
    assert not parity.exact and not Parity().exact
    assert table(parity) == "| episode | decisions | missing |\n|---|---|---|\n| 0 | 1 | 0 |"
