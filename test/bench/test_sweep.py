from __future__ import annotations

import io
import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from tiny_act import make_tiny_act
from tiny_scene import observe_nothing, tiny_setup

from bid_ros.bench.cell import BenchPlan, build_cells, make_cell
from bid_ros.bench.episode import EpisodePath
from bid_ros.bench.report import _film
from bid_ros.bench.results import HEADER, ROWS, read_rows
from bid_ros.bench.summary import markdown
from bid_ros.bench.sweep import run_bench, write_outcome, write_page
from bid_ros.core.errors import BidError, CameraError
from bid_ros.core.worker_pool import WorkerPool

TIMES = {"encode_ms", "sample_ms", "choose_ms", "world_ms", "trace"}
LISTS = {
    "decoder": ["vanilla", "bid"],
    "horizon": ["1"],
    "noise": [0.0, 1.0],
    "samples": [4],
    "weak": [True],
    "variant": ["corrected"],
}


def cells_of(setup, **changes):
    return build_cells(setup.task, {**LISTS, **changes})


def numbers(folder):
    rows = read_rows(folder)
    return {key: {name: row[name] for name in row if name not in TIMES} for key, row in sorted(rows.items())}


def run(setup, folder, plan, pool=None, **changes):
    return run_bench(cells_of(setup, **changes), plan, setup, folder, pool, log=io.StringIO()).summaries


def run_and_write(setup, folder, plan, cells):
    outcome = run_bench(cells, plan, setup, folder, log=io.StringIO())
    write_outcome(folder, outcome)
    write_page(folder, outcome, setup.scene)
    return outcome.summaries


def check_progress(log, episodes, elapsed_s):
    first, *rest = (line.lstrip("\r") for line in log.getvalue().splitlines() if line)
    assert first == "  0%, 00:00 spent, ? left"
    assert re.fullmatch(rf"100%, {episodes} episodes done, \d\d:\d\d spent, 00:00 left", rest[-1])
    assert len(rest) < 4 + elapsed_s / 15, "there is a line each 15 s, not for every step"


def test_workers_and_batches_change_no_number_and_progress_says_what_is_left(setup, tmp_path):
    for name, batch, pool in (("one", 3, None), ("two", 2, WorkerPool(workers=2))):
        log, begin_s = io.StringIO(), time.monotonic()
        run_bench(cells_of(setup), BenchPlan(3, (1, 2), 15, batch=batch), setup, tmp_path / name, pool, log)
        check_progress(log, 24, time.monotonic() - begin_s)
    assert len(numbers(tmp_path / "one")) == 24
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")


def test_a_stopped_bench_goes_on_and_gives_the_same(setup, tmp_path):
    whole = run(setup, tmp_path / "whole", BenchPlan(4, (1,), 12))
    run(setup, tmp_path / "parts", BenchPlan(2, (1,), 12))
    first = (tmp_path / "parts" / ROWS).read_bytes()
    parts = run(setup, tmp_path / "parts", BenchPlan(4, (1,), 12))
    assert (tmp_path / "parts" / ROWS).read_bytes().startswith(first)
    assert numbers(tmp_path / "whole") == numbers(tmp_path / "parts")
    assert [item.score for item in whole] == [item.score for item in parts]


def test_a_bench_knows_the_versions_of_its_simulator(setup, tmp_path, monkeypatch):
    simulated = replace(setup, scene=replace(setup.scene, packages=("numpy",)))
    run(simulated, tmp_path, BenchPlan(1, (1,), 12))
    header = json.loads((tmp_path / HEADER).read_text())
    assert header["simulator"] == f"numpy {np.__version__}"
    monkeypatch.setattr("bid_ros.bench.scene.installed_version", lambda package: "0.1")
    with pytest.raises(BidError, match=rf"made with simulator 'numpy {np.__version__}', not 'numpy 0\.1'"):
        run(simulated, tmp_path, BenchPlan(2, (1,), 12))

    del header["simulator"]
    (tmp_path / HEADER).write_text(json.dumps(header))
    log = io.StringIO()
    run_bench(cells_of(setup), BenchPlan(2, (1,), 12), simulated, tmp_path, log=log)
    assert "bench.json does not say its simulator, as older results do not" in log.getvalue()


def draw_nothing(state):
    raise CameraError("no offscreen OpenGL works here")


def test_a_computer_that_draws_nothing_gets_its_numbers(setup, tmp_path, caplog):
    blind = replace(setup, scene=replace(setup.scene, render=draw_nothing))
    run_and_write(blind, tmp_path, BenchPlan(3, (1,), 15), cells_of(blind, noise=[0.0]))
    page = (tmp_path / "report.html").read_text()
    assert "No film: no offscreen OpenGL works here" in page and "data:image/gif" not in page
    assert "the report has no film" in caplog.text


@pytest.mark.parametrize(("steps", "frames"), [(30, 11), (700, 60)])
def test_a_film_has_few_pictures_however_long_the_episode(setup, steps, frames):
    drawn = []

    def draw(state):
        drawn.append(state)
        return np.zeros((8, 8, 3), np.uint8)

    commands, agents = np.zeros((steps, 2), np.float32), np.full((steps + 1, 2), 256, np.float32)
    path = EpisodePath(commands, agents, np.tile(np.float32([200, 200, 0]), (steps + 1, 1)))
    assert _film([path], replace(setup.scene, render=draw))
    assert frames <= len(drawn) <= frames + 1


def test_the_report_needs_nothing_else(setup, tmp_path):
    cells = cells_of(setup, samples=[4, 8])
    summaries = run_and_write(setup, tmp_path, BenchPlan(2, (1,), 12), cells)
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"(src|href)=['\"](?!data:)", page)
    # Score bars, trade-off, N curve, noise curve, and a path and a film of an episode that differs.
    assert page.count("data:image/png") >= 5 and page.count("data:image/gif") >= 1
    assert all(item.label in page for item in summaries)
    assert "Score: nearness. Intervals: 95 %" in page
    content = json.loads((tmp_path / "summary.json").read_text())
    assert [cell["label"] for cell in content["cells"]] == [item.label for item in summaries]
    assert all(item.latency_ms and item.latency_ms > 0 for item in summaries)
    # What it took is said by the rows, so a call that finds everything done still knows.
    assert content["process_s"] > 0
    run_and_write(setup, tmp_path, BenchPlan(2, (1,), 12), cells)
    assert json.loads((tmp_path / "summary.json").read_text())["process_s"] == content["process_s"]


def test_the_time_of_a_decision_counts_decisions_alone(setup, tmp_path):
    """With agreed rows most calls decide nothing."""
    every, some = run(setup, tmp_path, BenchPlan(1, (1,), 4), decoder=["bid", "bid:agreement=1000"], noise=[0.0])
    assert some.cell.agreement == 1000 and some.latency_ms > 0.2 * every.latency_ms


def test_differences_are_paired_with_vanilla_under_the_same_conditions(setup, tmp_path):
    summaries = run(setup, tmp_path, BenchPlan(6, (1,), 25))
    found = {(item.cell.decoder, item.cell.noise): item for item in summaries}
    assert found["vanilla", 0.0].against is None
    for noise in (0.0, 1.0):
        mean, low, high = found["bid", noise].against
        assert low <= mean <= high
        assert mean == pytest.approx(found["bid", noise].score[0] - found["vanilla", noise].score[0])
    assert not any(item.published for item in summaries), "nothing was published for episodes of 25 steps"
    assert markdown(summaries).count("\n") == 1 + len(summaries)


def test_published_scores_stand_beside_push_t_alone(setup, tmp_path):
    for name, published in (("pusht", ".846"), ("lift", "")):
        scene = replace(setup.scene, name=name)
        (found,) = run(
            replace(setup, scene=scene), tmp_path / name, BenchPlan(1, (1,), 300), decoder=["vanilla"], noise=[0.0]
        )
        assert found.published == published
        score = f"{found.score[0]:.3f}"
        assert f"| 1 | {score} |" in markdown([found]), "one episode gives no interval"


def test_reaction_times_are_measured_against_the_run_without_the_jump(setup, tmp_path):
    slow = replace(setup, scene=replace(setup.scene, score=half))
    summaries = run(
        slow, tmp_path, BenchPlan(4, (1,), 60), decoder=["vanilla"], noise=[0.0], jump=[80.0], horizon=["1", "8"]
    )
    reaction = {(item.cell.horizon, item.cell.jump): (item.reaction_s, item.reacted) for item in summaries}
    assert reaction[1, 0.0] == (None, None)
    assert reaction[1, 80.0] == (0.0, 1.0)  # the policy sees the block at once
    assert {item.switches_per_s is None for item in summaries if item.cell.horizon == 1} == {False}
    assert reaction[8, 80.0][0] > 0 and reaction[8, 80.0][1] == 1.0


def test_an_episode_that_ends_before_the_jump_is_refused(setup, tmp_path):
    with pytest.raises(BidError, match="steps is 44, and the block jumps before step 45; valid with a jump is 45"):
        run(setup, tmp_path / "out", BenchPlan(1, (1,), 44), decoder=["vanilla"], jump=[80.0])
    assert not (tmp_path / "out").exists()


def half(coverage):
    return 0.5 * coverage


def test_a_decoder_that_needs_a_weak_policy_is_refused_without_one(tmp_path):
    setup = tiny_setup(tmp_path / "bundle", weak=False)
    with pytest.raises(BidError, match="has no weak policy, which decoder 'bid' needs"):
        run(setup, tmp_path / "out", BenchPlan(1, (1,), 5))
    assert not (tmp_path / "out").exists()
    assert len(run(setup, tmp_path / "out", BenchPlan(1, (1,), 5), weak=[False])) == 4


def test_more_samples_than_a_policy_has_are_refused_before_anything_runs(setup, tmp_path):
    make_tiny_act(tmp_path / "act", setup.task, members=2)
    act, plan = replace(setup, bundle=tmp_path / "act"), BenchPlan(1, (1,), 5)
    with pytest.raises(BidError, match=r"'bid' draws 4 samples, but bundle .*/act has 2 .* valid is --samples up to 2"):
        run(act, tmp_path / "out", plan, weak=[False], noise=[0.0])
    assert not (tmp_path / "out").exists()
    assert len(run(act, tmp_path / "out", plan, weak=[False], noise=[0.0], samples=[2])) == 2


def test_a_failing_worker_is_reported(setup, tmp_path):
    broken = replace(setup, scene=replace(setup.scene, observe=observe_nothing))
    with pytest.raises(BidError, match="the camera is off"):
        run_bench(cells_of(setup), BenchPlan(2, (1,), 5), broken, tmp_path, WorkerPool(workers=2), log=io.StringIO())


@pytest.mark.long
@pytest.mark.timeout(400)
def test_ray_gives_the_same_numbers(setup, tmp_path, monkeypatch, root):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(root / "test"))  # where the cluster's processes find the tiny scene
    run(setup, tmp_path / "here", BenchPlan(2, (1,), 10))
    for attempt in range(3):
        try:
            run(setup, tmp_path / "ray", BenchPlan(2, (1,), 10, batch=1), WorkerPool(ray="local"))
            break
        except BidError as error:
            # Ray gives its own processes 30 s to start, which a busy computer may not.
            if attempt == 2 or "no Ray cluster answers" not in str(error):
                raise
    assert numbers(tmp_path / "here") == numbers(tmp_path / "ray")


def test_a_cell_alone_is_no_comparison(setup, tmp_path):
    cell = make_cell(setup.task, decoder="vanilla", horizon=1)
    run_and_write(setup, tmp_path, BenchPlan(1, (1,), 5), [cell])
    assert "differ most" not in (tmp_path / "report.html").read_text()
