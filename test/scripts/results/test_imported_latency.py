"""``scripts/results imported-latency``: what was measured is kept, and a run that was ended goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.core.task import load_task

COUNTS = [1, 3]
WHAT = {"policy": "small", "steps": 8, "runtime": "onnx", "threads": 1}


@pytest.fixture
def module():
    pytest.importorskip("torch")
    from results import imported_latency

    return imported_latency


@pytest.fixture
def folder(root, tmp_path, module, monkeypatch):
    """A bundle and its task, as an import leaves them."""
    file = tmp_path / "task.yaml"
    file.write_text((root / "config" / "franka_place" / "task.yaml").read_text())
    task = load_task(file)
    make_tiny_bundle(tmp_path / "bundle", task)
    monkeypatch.setattr(module, "IMAGE", task.cameras[0].name)
    return tmp_path


def test_a_run_goes_on_where_it_was_ended(module, folder, tmp_path):
    out = tmp_path / "out"
    module.measure(WHAT, folder, COUNTS, 1, module.Rows(out))
    file = out / "rows.jsonl"
    first = file.read_text()
    file.write_text(first + '{"policy": "sm')  # ended while it wrote
    module.measure(WHAT, folder, COUNTS, 2, module.Rows(out))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert file.read_text().startswith(first)
    assert [(row["round"], row["n"]) for row in rows] == [(0, 1), (0, 3), (1, 1), (1, 3)]
    assert all(row["clock"] > 0 and row["product"] > 0 for row in rows)
    assert len(module.Rows(out).of(n=3, **WHAT)) == 2


def test_the_table_has_a_row_for_each_number_of_samples(module, tmp_path):
    rows = module.Rows(tmp_path / "out")
    rows.add({"imported": "small_8", "seconds": 2.0, "peak_gb": 1.0, "bundle_gb": 0.5})
    for index, clock in enumerate((10.0, 20.0, 30.0)):
        times = {"encode": 2.0, "sample": 6.0, "clock": clock, "product": 4.0}
        rows.add({**WHAT, "n": 1, "round": index, "load": float(index), **times})
    rows.add({**WHAT, "n": 3, "round": 0, "load": 0.0, **times})
    head, _, cpu, products, clock, *notes = module.table(rows)
    assert head == "| policy | runtime | decisions | what | N = 1 | N = 3 |"
    assert cpu == "| small, 8 steps | onnx, 1 thread | 3 | CPU, ms | 8 / 8 | 8 / 8 |"
    assert products.endswith("| products | 2.0 / 2.0 | 2.0 / 2.0 |")
    assert clock.endswith("| on the clock, ms | 20 / 30 | 30 / 30 |")
    assert "import 2.0 s, 1.0 GB" in notes[0] and "4.0 ms; load average 0.0 to 2.0" in notes[1]


def test_each_observation_brings_one_new_image(module, folder):
    task = load_task(folder / "task.yaml")
    seen, name = module.Observations(task), task.cameras[0].name
    first, second = seen.next().values[name], seen.next().values[name]
    np.testing.assert_array_equal(second[:-1], first[1:])
    assert not np.array_equal(second[-1], first[-1])
