"""The experiment against closed forms, its findings in each reading, table, histograms and repeatability."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from bid_ros.bench.diagnostic.experiment import READINGS, DiagnosticReading, run
from bid_ros.bench.diagnostic.report import PUBLISHED, draw_histograms, markdown, mean_difference
from bid_ros.core.errors import BidError

LONG = DiagnosticReading((4,), 60, "idle", "wasserstein")


@pytest.mark.parametrize("pause", [2, 4, 5])
def test_one_action_at_a_time_the_pause_is_geometric(pause):
    """Idle with probability L / (L + 1) each time: mean distance to L is 2 (L + 1) (L / (L + 1))^(L + 1)."""
    result = run(DiagnosticReading((pause,), 100, "idle", "wasserstein"), [0.0], [1], episodes=10_000, repeats=3)
    assert result.cells[0].distance == pytest.approx(2 * (pause + 1) * (pause / (pause + 1)) ** (pause + 1), rel=0.03)


def test_longer_chunks_without_noise_are_uniform():
    """h = 5 starts anew on entering s5, anywhere in the pause of 4; h = 7 after 2 of its steps; h = 10 holds it all."""
    result = run(LONG, [0.0], [5, 7, 10], episodes=5000, repeats=2)
    assert [cell.distance for cell in result.cells] == pytest.approx([2.0, 1.2, 0.0], abs=0.05)


@pytest.mark.parametrize(("name", "wanted"), [("text", (10, 10, 7)), ("caption", (10, 5, 3)), ("fitted", (10, 5, 1))])
def test_best_horizons_of_each_reading(name, wanted):
    result = run(READINGS[name], horizons=(1, 3, 5, 7, 10), episodes=8000, repeats=2)
    assert tuple(result.best(noise) for noise in result.noises) == wanted


def test_the_published_table_says_ten_five_one():
    assert [min(row, key=row.get) for row in PUBLISHED.values()] == [10, 5, 1]


def small(**changes):
    return run(LONG, **({"noises": [0.0, 0.4], "horizons": [1, 7], "episodes": 300, "repeats": 3, "seed": 4} | changes))


def test_the_same_seed_gives_the_same_numbers_whatever_else_is_run():
    first, again, other = small(), small(), small(seed=5)
    assert [cell.distance for cell in first.cells] == [cell.distance for cell in again.cells]
    assert [cell.distance for cell in first.cells] != [cell.distance for cell in other.cells]
    alone = small(noises=[0.4], horizons=[7])
    assert alone.cells[0].distance == first.cell(0.4, 7).distance


def test_the_interval_holds_the_mean_and_narrows_with_episodes():
    few, many = (small(episodes=episodes, repeats=6).cell(0.4, 1) for episodes in (200, 5000))
    assert few.low < few.distance < few.high
    assert many.high - many.low < (few.high - few.low) / 2


def test_progress_counts_the_cells():
    seen = []
    small(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_the_table_sets_measured_beside_published():
    result = run(LONG, noises=[0.2, 0.3], horizons=[1, 2], episodes=2000, repeats=2)
    table = markdown(result)
    rows = [line for line in table.splitlines() if line.startswith("| 0.")]
    cell = result.cell(0.2, 1)
    assert f"{cell.distance:.2f} +- {cell.high - cell.distance:.2f} (1.43)" in rows[0]
    assert rows[0].count("(") == 2  # no published number for h = 2
    assert rows[1].endswith("(-) |")
    assert mean_difference(result) == pytest.approx(abs(cell.distance - 1.43))


def test_there_is_a_histogram_for_each_noise_level(tmp_path):
    paths = draw_histograms(small(noises=[0.0, 0.2, 0.4]), tmp_path)
    assert [path.name for path in paths] == [f"histogram_noise_{level}.png" for level in ("0", "0.2", "0.4")]
    pictures = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    assert all(picture.shape == (540, 1080, 3) and len(np.unique(picture)) > 20 for picture in pictures)
    assert not np.array_equal(pictures[0], pictures[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noises": [1.0]}, r"noise levels are \[1.0\]"),
        ({"noises": [0.1, 0.1]}, "noise levels are"),
        ({"horizons": [0]}, r"horizons are \[0\]"),
        ({"episodes": 10}, "episodes is 10"),
        ({"repeats": 1}, "repeats 1"),
    ],
)
def test_impossible_experiments_are_refused(changes, message):
    with pytest.raises(BidError, match=message):
        small(**changes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (((), 60, "idle", "summed"), "pauses is"),
        (((-1,), 60, "idle", "summed"), r"pauses\[0\] is -1; valid is a whole number, 0 or more"),
        (((4,), 9, "idle", "summed"), "steps is 9"),
        (((4,), 60, "rest", "summed"), "count is 'rest'; valid is one of idle, idle-s5, stay, stay-s5"),
        (((4,), 60, "idle", "far"), "distance is 'far'; valid is one of wasserstein, total-variation, summed"),
    ],
)
def test_impossible_readings_are_refused(values, message):
    with pytest.raises(BidError, match=message):
        DiagnosticReading(*values)


def test_pauses_must_fit_the_noise_levels():
    with pytest.raises(BidError, match="there are 2 pauses"):
        run(DiagnosticReading((4, 2), 60, "idle", "summed"))
