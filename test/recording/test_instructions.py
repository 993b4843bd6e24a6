"""The text of an episode is the one that the policy was asked with while it ran."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from std_msgs.msg import String

from bid_ros.core.topics import INSTRUCTION
from bid_ros.formats.bag import BagSource
from bid_ros.recording.instructions import texts_of

S = 10**9


def test_the_text_of_each_episode_reaches_its_rows(make_run, task, tmp_path):
    run = make_run(episodes=3)
    starts = [stamp for stamp, _, message in run.items if getattr(message, "kind", 0) == 1]
    run.items += [(starts[0] - 5, INSTRUCTION, String(data="place the cup"))]
    run.items += [(starts[2] + 10**8, INSTRUCTION, String(data="place it left"))]  # with the first decision
    run.items.sort(key=lambda item: item[0])
    source = BagSource([run.write(tmp_path / "bag")], task)
    assert "text" in source.contents.extras
    found = [(episode.text, episode.texts) for episode in source.episodes()]
    assert found == [("place the cup", ()), ("place the cup", ()), ("place it left", ())]


def test_without_an_instruction_there_is_no_text(make_run, task, tmp_path):
    source = BagSource([make_run().write(tmp_path / "bag")], task)
    assert "text" not in source.contents.extras and {item.text for item in source.episodes()} == {""}


@pytest.mark.parametrize(
    ("told", "text", "texts"),
    [
        ([], "", ()),
        ([(1, "a"), (2, "b")], "b", ()),
        ([(1, "a"), (9 * S, "b")], "a", ()),  # after the last row: of the next episode
        ([(1, "a"), (4 * S + 1, "b"), (5 * S, "b")], "a", ((0, "a"), (3, "b"))),  # while a person had taken over
        ([(4 * S + 1, "b")], "", ((0, ""), (3, "b"))),
    ],
)
def test_a_text_holds_until_the_next(told, text, texts):
    rows = np.array([2, 3, 4, 5, 6], np.int64) * S
    found = texts_of(told, SimpleNamespace(start_received_ns=2 * S), rows)
    assert found == {"text": text, "texts": texts}
