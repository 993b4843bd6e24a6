"""``bid policy import``, from files to a policy that is sampled."""

import json

import numpy as np
import pytest
import yaml

from bid_ros.cli import main
from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.task import load_task
from bid_ros.importing.fit import gflop, measure_fit
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy

TASK = {
    "name": "imported",
    "robot": "franka",
    "rate_hz": 10,
    "observation_steps": 2,
    "horizon": 8,
    "observation": [{"name": "joints", "kind": "joints", "shape": [3]}],
    "action": [{"name": "goal", "kind": "joints", "shape": [2]}],
    "limits": {"workspace_min": [0.0, -0.5, 0.0], "workspace_max": [0.9, 0.5, 0.8]},
    "data": {"observation": {"joints": "observation.state"}},
}


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(TASK))
    return path


def test_two_checkpoints_become_a_bundle_with_a_weak_policy(kit, tmp_path, task, capsys):
    strong = kit.write_lerobot(tmp_path / "late")
    weak = kit.write_lerobot(tmp_path / "early", seed=1)
    out = tmp_path / "bundle"
    arguments = [
        "policy",
        "import",
        str(strong),
        "--weak",
        str(weak),
        "--task",
        str(task),
        "--out",
        str(out),
        "--json",
    ]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["weak"] and report["type"] == "diffusion"
    differences = report["difference_to_pytorch"]
    assert differences.keys() == {"strong", "weak"} and differences["strong"].keys() == {
        "encoder",
        "denoiser",
        "sampler",
    }
    loaded = load_task(task)
    bundle = load_bundle(out, loaded)
    assert report["fit"]["weak"] and 0 < report["fit"]["encode_ms"] < report["fit"]["decision_ms"]["16"]
    read = read_policy(str(strong), ImportOptions())
    tight = measure_fit(bundle, loaded, read, budget_ms=1e-6)  # down to the first number that fits: none does
    assert list(tight.decision_ms) == [16, 8, 4, 1] and tight.fitting == 0 and tight.steps == 2
    assert tight.gflop == 2 * gflop(read, 16) > 0
    assert bundle.provenance["imported"] == {"type": "diffusion", "strong": str(strong), "weak": str(weak)}
    policy = load_policy(bundle, loaded, "onnx")
    chunks, weaker = policy.sample(policy.encode(blank_observation(loaded)), 3, 3, np.random.default_rng(0))
    assert chunks.shape == weaker.shape == (3, 8, 2)
    assert np.abs(chunks - weaker).max() > 1e-3
    maker = DecisionMaker(policy, bundle_decoder("bid", bundle, loaded, 4, 1), loaded)
    for stamp in (0, 100_000_000):
        record = maker.decide(Observation(stamp, blank_observation(loaded).values))
        assert record is not None and record.strong.shape == record.weak.shape == (4, 8, 2)
    low, high = np.array([0.0, -1.0]), np.array([2.0, 1.0])
    assert (chunks >= low - 1e-6).all() and (chunks <= high + 1e-6).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--sampling-steps", "0"], "--sampling-steps is 0; valid is 1 or more"),
        (["--sampling-steps", "101"], "sampling_steps is 101; valid is up to train_steps 100"),
        (["--weak", "nowhere"], "nowhere is no folder; valid is one on this computer"),
        (["--sampler", "euler"], "sampler is 'euler'; valid"),
    ],
)
def test_bad_arguments_end_with_a_sentence(kit, tmp_path, task, capsys, given, message):
    folder = kit.write_lerobot(tmp_path / "policy")
    out = tmp_path / "bundle"
    assert main(["policy", "import", str(folder), "--task", str(task), "--out", str(out), *given]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not out.exists()


def test_nothing_but_a_bundle_is_replaced(kit, tmp_path, task, capsys):
    folder = kit.write_lerobot(tmp_path / "policy")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert main(["policy", "import", str(folder), "--task", str(task), "--out", str(tmp_path / "full")]) == 2
    assert "exists and is not a bundle" in capsys.readouterr().err


def test_a_graph_that_onnx_cannot_hold_is_refused(kit, tmp_path, task, capsys, monkeypatch):
    monkeypatch.setattr("bid_ros.importing.write_bundle.LARGEST", 1000)
    folder, out = kit.write_lerobot(tmp_path / "policy"), tmp_path / "bundle"
    assert main(["policy", "import", str(folder), "--task", str(task), "--out", str(out)]) == 2
    assert "strong policy: denoiser has weights of 0.0 GB; valid is up to 0 GB" in capsys.readouterr().err
    assert not out.exists()
