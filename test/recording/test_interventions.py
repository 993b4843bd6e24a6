"""Which rows of a data set a person drove."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import ARM_STATUS
from bid_ros.formats import build_dataset
from bid_ros.formats.bag import dataset_episodes
from bid_ros.formats.rows import runs_of
from bid_ros.recording.dataset import Dataset

FROM_S, TO_S = 1.2, 1.6


def with_person(run, start_ns=1_700_000_000 * 10**9):
    """A person takes over in the middle; before that nobody moves the arm for a moment."""
    for _, topic, message in run.items:
        if topic == ARM_STATUS:
            at = (message.header.stamp.sec * 10**9 + message.header.stamp.nanosec - start_ns) / 1e9
            message.source = "teleop" if FROM_S <= at < TO_S else "" if FROM_S - 0.1 <= at < FROM_S else "policy"
    return run


def test_the_rows_of_a_person_are_those_whose_set_point_came_from_one(make_run, task, tmp_path):
    dataset = build_dataset([with_person(make_run()).write(tmp_path / "bag")], task)
    seconds = dataset.stamps_ns / 1e9 - 1_700_000_000
    assert (dataset.intervention == ((seconds >= FROM_S) & (seconds < TO_S))).all()
    assert 3 <= dataset.intervention.sum() < dataset.rows / 2
    dataset.save(tmp_path / "data.npz")
    assert (Dataset.load(tmp_path / "data.npz").intervention == dataset.intervention).all()
    (episode,) = dataset_episodes(dataset)
    assert (episode.by_person == dataset.intervention).all() and len(episode.interventions) == 1


def test_without_a_person_the_data_set_is_what_it_always_was(make_run, task, tmp_path):
    run = make_run()
    plain = build_dataset([run.write(tmp_path / "plain")], task)
    assert not plain.intervention.any() and "intervention" not in plain._arrays()
    driven = build_dataset([with_person(run).write(tmp_path / "driven")], task)
    assert driven.sha256 != plain.sha256
    assert (driven.actions == plain.actions).all()


def test_a_mask_of_another_length_is_refused(make_run, task, tmp_path):
    from dataclasses import replace

    plain = build_dataset([make_run().write(tmp_path / "bag")], task)
    with pytest.raises(RecordingError, match=r"'intervention' has 2 rows; valid is"):
        replace(plain, intervention=np.array([True, False]))


@pytest.mark.parametrize(
    ("mask", "runs"), [([], ()), ([0, 0], ()), ([1, 1, 0, 1], ((0, 2), (3, 4))), ([0, 1, 1], ((1, 3),))]
)
def test_runs_of_true_values(mask, runs):
    assert runs_of(np.array(mask, dtype=bool)) == runs
