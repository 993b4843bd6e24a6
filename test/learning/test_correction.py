"""A correction head: what it learns, what it writes, what it refuses."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.cli import main
from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.observation import Observation
from bid_ros.learning import CorrectionConfig, export, train, train_correction
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.distillation import AUGMENTATIONS
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.correction import ABOUT, GRAPH, Correction
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.recording.dataset import joined

QUICK = CorrectionConfig(steps=300, batch=64, samples=2, width=64, learning_rate=3e-3)


@pytest.fixture(scope="module")
def head(exported, make_task, make_dataset, tmp_path_factory):
    """The head of a policy that hardly learned anything, and what its training came to."""
    task, out = make_task(), tmp_path_factory.mktemp("head") / "head"
    return train_correction(exported, make_dataset(task), task, out, QUICK, progress=False)


def test_a_head_brings_actions_nearer_to_what_was_demonstrated(head):
    assert head.after < 0.6 * head.before
    assert sorted(item.name for item in head.out.iterdir()) == [ABOUT, GRAPH]
    about = json.loads((head.out / ABOUT).read_text())["provenance"]
    assert (about["error_before"], about["error_after"]) == (head.before, head.after)


def test_a_late_action_is_corrected_by_the_newest_observation(head, exported, make_task, make_dataset):
    task = make_task()
    data = make_dataset(task, episodes=3, seed=7)  # of no training
    policy, correction = DiffusionPolicy(exported, task), Correction(head.out, exported, task)

    def seen(row):
        values = {item.name: data.observations[item.name][[row - 1, row]] for item in task.observation}
        return policy.encode(Observation(0, values))

    errors = []
    for first in (1, 13, 25):
        decided = seen(first)
        chunk = policy.sample(decided, 1, 0, np.random.default_rng(0))[0][0, 1:]
        for row in range(4):
            wanted, newest = data.actions[first + row], seen(first + row)
            corrected = correction.correct(chunk[row], row, newest, decided.strong)
            errors.append(
                [np.linalg.norm((item - wanted) / exported.action_spread) for item in (chunk[row], corrected)]
            )
    before, after = np.mean(errors, axis=0)
    assert after < 0.7 * before


def test_an_observation_is_encoded_once(exported, make_task, make_dataset, tmp_path, monkeypatch):
    """The policy encodes what was recorded, in order to decide; only what is augmented is encoded beside that."""
    augmented = []
    batch = TrainingData.batch

    def watched(self, windows, device, augment=None, **options):
        augmented.append(augment)
        return batch(self, windows, device, augment, **options)

    monkeypatch.setattr(TrainingData, "batch", watched)
    task = make_task()
    train_correction(exported, make_dataset(task), task, tmp_path, replace(QUICK, steps=1), progress=False)
    assert len(augmented) >= AUGMENTATIONS and None not in augmented


def test_the_same_training_gives_the_same_head(head, exported, make_task, make_dataset, tmp_path):
    task = make_task()
    again = train_correction(exported, make_dataset(task), task, tmp_path / "again", QUICK, progress=False)
    assert (again.before, again.after) == (head.before, head.after)
    assert (again.out / GRAPH).read_bytes() == (head.out / GRAPH).read_bytes()


def test_a_head_that_is_there_is_replaced_and_nothing_else(head, exported, make_task, make_dataset, tmp_path):
    task, quick = make_task(), replace(QUICK, steps=1)
    for _ in range(2):
        train_correction(exported, make_dataset(task), task, tmp_path / "out", quick, progress=False)
    Correction(tmp_path / "out", exported, task)
    (tmp_path / "out" / "mine.txt").write_text("kept")
    with pytest.raises(BidError, match="holds something else than a correction head"):
        train_correction(exported, make_dataset(task), task, tmp_path / "out", quick, progress=False)


def test_a_single_episode_is_too_few(exported, make_task, make_dataset, tmp_path):
    task = make_task()
    with pytest.raises(BidError, match="has 1 episodes with a whole window of 8 rows; valid are 2 or more"):
        train_correction(exported, make_dataset(task, episodes=1), task, tmp_path, QUICK, progress=False)


def test_an_episode_that_is_cut_off_before_its_first_window_is_left_out(exported, make_task, make_dataset, tmp_path):
    task, quick = make_task(), replace(QUICK, steps=2)
    whole = make_dataset(task, episodes=2)
    short = make_dataset(task, episodes=1, rows=3)
    cut = replace(joined([short, whole]), truncated=np.array([True, False, False]))
    first, second = (
        train_correction(exported, data, task, tmp_path / str(data.episodes), quick, progress=False)
        for data in (whole, cut)
    )
    assert (first.before, first.after) == (second.before, second.after)
    lonely = replace(joined([short, make_dataset(task, episodes=1)]), truncated=np.array([True, False]))
    with pytest.raises(BidError, match="has 1 episodes with a whole window"):
        train_correction(exported, lonely, task, tmp_path / "lonely", quick, progress=False)


def test_a_policy_that_knows_of_delays_gets_no_head(make_task, make_dataset, make_config, tmp_path):
    task = make_task(images=False)
    config = make_config(steps=1, diffusion=DiffusionConfig(sampling_steps=2, simulated_delay=2))
    train(config, make_dataset(task), tmp_path / "run", task, progress=False)
    bundle = export(tmp_path / "run", tmp_path / "bundle", task)
    with pytest.raises(BundleError, match="was trained for delays"):
        train_correction(bundle, make_dataset(task), task, tmp_path / "head", QUICK, progress=False)
    assert not (tmp_path / "head").exists()


def about(change):
    def damage(folder):
        content = json.loads((folder / ABOUT).read_text())
        (folder / ABOUT).write_text(json.dumps({**content, **change}))

    return damage


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / ABOUT).unlink(), r"correction\.json cannot be read"),
        (lambda folder: (folder / GRAPH).unlink(), r"correction\.onnx cannot be read"),
        (lambda folder: (folder / ABOUT).write_text("{"), "is not JSON"),
        (lambda folder: (folder / ABOUT).write_bytes(b"\xff\xfe"), "is not JSON"),
        (lambda folder: (folder / GRAPH).write_bytes(b"other"), "is damaged, or was replaced"),
        (about({"format": 2}), "format is 2; valid is 1"),
        (about({"bundle_sha256": "0" * 64}), "corrects the policy with the hash 000000000000"),
        (about({"task_signature": "0"}), "another version of task 'dot'"),
        (about({"centre": [0.0]}), "centre has 1 values; valid are 4"),
        (about({"widths": 3}), "unknown field 'widths'"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(damage, sentence, head, exported, make_task, tmp_path):
    for name in (ABOUT, GRAPH):
        (tmp_path / name).write_bytes((head.out / name).read_bytes())
    damage(tmp_path)
    with pytest.raises(BundleError, match=sentence):
        Correction(tmp_path, exported, make_task())


def test_the_command_trains_a_head(exported, make_task, make_dataset, task_file, tmp_path, capsys):
    make_dataset(make_task()).save(tmp_path / "data.npz")
    words = ["policy", "correct", str(exported.path), str(tmp_path / "data.npz"), "--task", str(task_file)]
    words += ["--out", str(tmp_path / "head"), "--set"]
    assert main([*words, "steps=30", "samples=1", "batch=32", "width=16"]) == 0
    said = capsys.readouterr().out
    before, after = map(float, re.findall(r"0\.\d{3}", said))
    assert after < before, said
    task = make_task()
    Correction(tmp_path / "head", load_bundle(exported.path, task), task)
    for wrong, sentence in (
        ("samples=0", "samples is 0"),
        ("steps", "--set is 'steps'"),
        ("depth=2", "unknown field 'depth'"),
    ):
        assert main([*words, wrong]) == 2
        assert sentence in capsys.readouterr().err
