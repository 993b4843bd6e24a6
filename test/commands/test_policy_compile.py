import contextlib
import io
import json

import numpy as np
import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.cli import main
from bid_ros.recording.dataset import Dataset


@pytest.fixture
def bundle(task, tmp_path):
    return make_tiny_bundle(tmp_path / "tiny", task)


def compiled(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = main(["policy", "compile", "--decisions", "3", *map(str, arguments)])
    return status, printed.getvalue()


@pytest.mark.parametrize("runtime", ["onnx", "openvino", "torch", "torch:fp16"])
def test_every_runtime_of_this_computer_is_compared_with_the_cpu(bundle, runtime):
    status, printed = compiled(bundle, "--runtime", runtime, "--samples", 4, "--json")
    assert status == 0
    report = json.loads(printed)
    assert (report["runtime"], report["observations"]) == (runtime, "noise")
    assert [(row["samples"], row["weak"], row["decisions"]) for row in report["rows"]] == [(1, 1, 3), (4, 4, 3)]
    for row in report["rows"]:
        assert row["difference"] < (1e-2 if runtime.endswith("fp16") else 1e-5)
        assert 0 < row["runtime_ms_p50"] <= row["runtime_ms_p99"]
        assert 0 < row["reference_ms_p50"] <= row["reference_ms_p99"]


def test_the_table(bundle):
    status, printed = compiled(bundle, "--runtime", "onnx", "--samples", 2)
    assert status == 0
    rows = [line for line in printed.splitlines() if line.startswith("| ")]
    assert [row.split("|")[1:4] for row in rows[1:]] == [
        [" 1 + 1 ", " 0.0e+00 ", " 100.0% of 3 "],
        [" 2 + 2 ", " 0.0e+00 ", " 100.0% of 3 "],
    ]


def test_observations_of_a_data_set(bundle, task, tmp_path):
    rows = 4
    observations = {
        item.name: np.zeros((rows, *item.shape), np.uint8 if item.kind == "image" else np.float64)
        for item in task.observation
    }
    recorded = {
        "observations": observations,
        "actions": np.zeros((rows, task.action_dim)),
        "stamps_ns": np.arange(1, rows + 1, dtype=np.int64) * task.dt_ns,
        "episode_ends": np.array([2, rows], np.int64),
        "labels": ("clean",) * 2,
        "seeds": np.arange(2, dtype=np.uint64),
        "task": task.name,
        "task_signature": task.signature(),
    }
    Dataset(**recorded).save(tmp_path / "set.npz")
    status, printed = compiled(bundle, "--runtime", "onnx", "--samples", 1, "--dataset", tmp_path / "set.npz", "--json")
    assert status == 0
    assert json.loads(printed)["observations"].endswith("set.npz")
    Dataset(**{**recorded, "task_signature": "another"}).save(tmp_path / "other.npz")
    assert compiled(bundle, "--dataset", tmp_path / "other.npz")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--samples", "0"], "--samples is 0; valid is 1 to 256"),
        (["--samples", "1000000000"], "--samples is 1000000000; valid is 1 to 256"),
        (["--decisions", "1000000000"], "--decisions is 1000000000; valid is 1 to 10000"),
        (["--runtime", "tflite"], "runtime is 'tflite'; valid are auto"),
        (["--runtime", "tensorrt"], "runtime 'tensorrt' cannot be used: "),
    ],
)
def test_bad_input_is_one_sentence(bundle, capsys, arguments, sentence):
    assert compiled(bundle, *arguments)[0] == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith(f"error: {sentence}")


def test_a_folder_without_a_bundle(tmp_path, capsys):
    assert compiled(tmp_path)[0] == 2
    assert f"policy manifest {tmp_path / 'bundle.yaml'} does not exist" in capsys.readouterr().err


def test_a_manifest_with_a_key_twice(tmp_path, capsys):
    (tmp_path / "bundle.yaml").write_text("task: small\nformat: 1\ntask: other\n")
    assert compiled(tmp_path)[0] == 2
    said = "bundle.yaml is not valid YAML: key 'task' stands in line 1 and again in line 3; valid is once"
    assert said in capsys.readouterr().err
