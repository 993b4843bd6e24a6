"""A whole evaluation: any number of workers, resumption, and episodes that are read one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluated_data import ROWS, TASK, dataset

from bid_ros.core.errors import BidError
from bid_ros.core.worker_pool import WorkerPool
from bid_ros.evaluation.evaluate import EvaluationSetup
from bid_ros.evaluation.run import evaluate
from bid_ros.evaluation.trace import FRAMES, GRID
from bid_ros.formats import mapped, open_source

SEEDS = [1, 2, 3, 4, 5]
DECODERS = ("vanilla", "bid")


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    path = tmp_path_factory.mktemp("five") / "set.npz"
    dataset(SEEDS).save(path)
    return path


def evaluated(bundle, data, folder, pool=None, decoders=DECODERS, **options):
    setup = EvaluationSetup(TASK, bundle, decoders, samples=4, runtime="onnx")
    return evaluate(setup, "hash", mapped(open_source(data, TASK), TASK), folder, pool, **options)


def numbers(outcome):
    times = ("choose_ms", "decision_ms")
    return [
        (item.seed, item.errors, {d: {k: v for k, v in m.items() if k not in times} for d, m in item.means.items()})
        for item in outcome.episodes
    ]


def test_two_processes_find_what_one_does_in_the_order_of_the_data(bundle, five, tmp_path):
    one = evaluated(bundle, five, tmp_path / "one", shown=2)
    two = evaluated(bundle, five, tmp_path / "two", WorkerPool(workers=2), shown=2)
    assert [item.seed for item in one.episodes] == SEEDS
    assert numbers(one) == numbers(two)
    assert [page.name for page in one.pages] == [page.name for page in two.pages]
    for first, second in zip(one.pages, two.pages, strict=True):
        assert first.read_text() == second.read_text()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_ray_finds_the_same(bundle, five, tmp_path, monkeypatch, root):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(root))  # of the cluster's processes
    here = evaluated(bundle, five, tmp_path / "here", most=3)
    for attempt in range(3):
        try:
            ray = evaluated(bundle, five, tmp_path / "ray", WorkerPool(ray="local"), most=3)
            break
        except BidError as error:
            # Ray gives its own processes 30 s to start, which a busy computer may not.
            if attempt == 2 or "no Ray cluster answers" not in str(error):
                raise
    assert numbers(ray) == numbers(here)


def test_an_episode_that_is_done_is_not_judged_again(bundle, five, tmp_path):
    first = evaluated(bundle, five, tmp_path, most=2)
    whole = evaluated(bundle, five, tmp_path)
    assert (first.resumed, whole.resumed) == (0, 2)
    assert whole.episodes[:2] == first.episodes, "with the times of the first run"
    assert evaluated(bundle, five, tmp_path).resumed == 5
    assert evaluated(bundle, five, tmp_path, decoders=("vanilla",)).resumed == 0, "other settings"


def test_a_part_that_was_cut_off_is_made_again(bundle, five, tmp_path):
    evaluated(bundle, five, tmp_path, most=2)
    part = next(path for path in tmp_path.glob("*/*.json") if not path.name.endswith(".page.json"))
    part.write_text(part.read_text()[:40])
    assert evaluated(bundle, five, tmp_path, most=2).resumed == 1


def test_an_episode_whose_end_is_told_now_is_judged_again(bundle, five, tmp_path):
    class Told:
        contents = open_source(five, TASK).contents

        def __init__(self, success):
            self._success = success

        def episodes(self):
            for item in mapped(open_source(five, TASK), TASK).episodes():
                yield replace(item, success=self._success)

    setup = EvaluationSetup(TASK, bundle, ("vanilla",), samples=4, runtime="onnx")
    for success, resumed in ((None, 0), (False, 0), (False, 1)):
        outcome = evaluate(setup, "hash", Told(success), tmp_path, most=1)
        assert (outcome.episodes[0].success, outcome.resumed) == (success, resumed)
        assert json.loads(outcome.pages[0].read_text())["success"] is success


def test_what_the_page_lacks_is_judged_again(bundle, five, tmp_path):
    evaluated(bundle, five, tmp_path, shown=0)
    again = evaluated(bundle, five, tmp_path, shown=1)
    assert (again.resumed, len(again.pages)) == (4, 1)
    assert again.pages[0].exists()


def test_the_progress_counts_episodes_and_decisions(bundle, five, tmp_path):
    seen = []
    evaluated(bundle, five, tmp_path, progress=lambda episodes, rows: seen.append((episodes, rows)))
    assert seen == [(number, number * ROWS) for number in range(1, 6)]


def test_the_page_gets_pictures_choices_and_samples_on_one_grid(bundle, five, tmp_path):
    (page,) = evaluated(bundle, five, tmp_path, shown=1, most=1).pages
    found = json.loads(page.read_text())
    assert found["shown"] == list(range(ROWS)), f"all of fewer than {FRAMES}"
    assert np.array(found["choices"]["bid"]).shape == (ROWS, TASK.horizon - TASK.observation_steps + 1, 3)
    assert np.array(found["samples"]).shape[:2] == (ROWS, 4)
    assert (max(found["extent"]), np.array(found["samples"]).min()) == (GRID, 0)
    assert len(found["series"]["coherence"]["bid"]) == ROWS
    assert found["series"]["coherence"]["bid"][0] is None
    assert found["sheet"].startswith("/9j/"), "a JPEG"


def test_an_error_of_a_worker_is_its_own(five, tmp_path):
    with pytest.raises(BidError, match="nowhere"):
        evaluated(Path("nowhere"), five, tmp_path, WorkerPool(2))
