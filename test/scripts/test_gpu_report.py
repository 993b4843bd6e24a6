"""``scripts/gpu_report.py`` in its tiny form: the same code as on a GPU, on the CPU."""

import importlib.util
import json
import shutil
import subprocess
import sys
from itertools import pairwise

import pytest


@pytest.fixture
def script(root, monkeypatch):
    spec = importlib.util.spec_from_file_location("gpu_report", root / "scripts" / "gpu_report.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_report", module)  # where dataclasses look for annotations
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_every_row_is_measured(script, monkeypatch, tmp_path):
    out = tmp_path / "gpu.json"
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", "--tiny", "--out", str(out)])
    assert script.main() == 0
    report = json.loads(out.read_text())
    assert report["skipped"] == []
    full, batch, agree = report["rows"]
    assert full["p99_over_floor"] == pytest.approx(full["p99_ms"] / full["floor_ms"])
    assert full["operations"] > 1e6 and full["bytes"] > full["parameters"]
    assert batch["ratio"] == pytest.approx(batch["p50_ms"] / batch["p50_ms_of_1"])
    assert (agree["decisions"], agree["agree"]) == (2, 1.0)
    assert all(isinstance(row["holds"], bool) for row in report["rows"])


def test_a_runtime_that_fails_is_left_out_with_its_reason(script):
    report = script.Report()
    with report.part("row", "torch"):
        raise RuntimeError("out of\nmemory")
    assert report.skipped == [{"row": "row", "runtime": "torch", "reason": "out of memory"}]


def test_the_recorded_decisions_are_there(script):
    task = script.load_task(script.task_path("pusht"))
    seen = script.recorded(task)
    assert len(seen) == script.Sizes().compared
    assert [after.stamp_ns - before.stamp_ns for before, after in pairwise(seen[:6])] == [task.dt_ns] * 5


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_it_says_so_in_one_sentence(root, tmp_path):
    ended = subprocess.run(
        [root / "scripts" / "gpu_report.sh", "--out", tmp_path / "gpu.json"],
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: nothing to measure: there is no NVIDIA driver")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "gpu.json").exists()
