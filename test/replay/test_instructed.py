"""A policy that takes a text is asked with the one that was recorded, in a replay and in an evaluation."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from policy.remote.served import holding, remote_bundle, talking
from std_msgs.msg import String

from bid_ros.core.topics import INSTRUCTION
from bid_ros.evaluation.evaluate import EvaluationSetup
from bid_ros.evaluation.run import evaluate
from bid_ros.formats import mapped, open_source
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.recording.instructions import find_text_at
from bid_ros.recording.reader import BagReader
from bid_ros.replay.lockstep import Changes, lockstep_decider, replay
from bid_ros.replay.parity import Parity

S = 10**9
OWN = "the bundle's"


@pytest.fixture
def run(make_run):
    """Three episodes: without a text, with one that comes with the first decision, and with one that changes."""
    run = make_run(episodes=3)
    starts = [stamp for stamp, _, message in run.items if getattr(message, "kind", 0) == 1]
    told = [(starts[1] + S // 10, "stack it"), (starts[2] - 5, "place it"), (starts[2] + 3 * S // 2, "drop it")]
    run.items += [(at, INSTRUCTION, String(data=text)) for at, text in told]
    return run


@contextmanager
def asked_of(task, folder):
    """A server as those of openpi, and the texts that it is asked with."""
    asked: list[str] = []

    with talking(holding(task, asked)) as address:
        remote_bundle(folder, task, address, prompt=OWN, timeout_ms=5000.0)
        yield asked


def test_a_replay_asks_with_the_text_of_each_decision(run, task, tmp_path):
    bag = run.write(tmp_path / "bag")
    with asked_of(task, tmp_path / "pi") as asked, BagReader(bag) as reader:
        bundle = load_bundle(tmp_path / "pi", task)
        policy = load_policy(bundle, task)
        asked.clear()
        decider = lockstep_decider(task, bundle, policy, ("vanilla", 1, 1, 0), Changes())
        texts = [cue.text for cue, record in replay(reader, task, decider, Parity()) if record is not None]
    assert asked == [text or OWN for text in texts]
    first, second, third = (texts[at : at + 20] for at in (0, 20, 40))
    assert set(first) == {""} and set(second) == {"stack it"}
    assert third == ["place it"] * third.count("place it") + ["drop it"] * third.count("drop it")
    assert 10 < third.count("place it") < 20


def test_an_evaluation_asks_with_the_text_of_the_episode_and_does_not_take_that_of_another(run, task, tmp_path):
    with asked_of(task, tmp_path / "pi") as asked:
        setup, source = EvaluationSetup(task, tmp_path / "pi", ("vanilla",), 1), None
        sha256 = load_bundle(tmp_path / "pi", task).sha256
        for name, expected in (("with", {OWN, "stack it", "place it", "drop it"}), ("without", {OWN})):
            if name == "without":
                run.items = [item for item in run.items if item[1] != INSTRUCTION]
            source = mapped(open_source(run.write(tmp_path / name), task), task)
            asked.clear()
            outcome = evaluate(setup, sha256, source, tmp_path / "parts")
            assert len(outcome.episodes) == 3 and set(asked) == expected
            assert outcome.resumed == (0 if name == "with" else 1), "the episode without a text is the same one"


def test_a_text_holds_from_its_episode_on(run, tmp_path):
    with BagReader(run.write(tmp_path / "bag")) as reader:
        text_at, begin = find_text_at(reader), 1_700_000_000 * S
        found = [text_at(begin + at * S) for at in (0, 2, 5, 6, 9, 10, 12)]
    assert found == ["", "", "stack it", "stack it", "stack it", "place it", "drop it"]
