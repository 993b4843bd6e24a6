"""From one bundle to another that needs fewer network calls."""

from __future__ import annotations

from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest
import torch

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.observation import Observation
from bid_ros.learning import DistillConfig, distill, export, train
from bid_ros.learning.consistency import Distiller
from bid_ros.learning.families import read_policy
from bid_ros.learning.graphs import round_weights
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.run_folder import RunFolder
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.spaces.config import Space

QUICK = DistillConfig(steps=4, batch=16, levels=4)


@pytest.fixture
def teacher(exported):
    return exported


@pytest.fixture(scope="module")
def distilled(exported, make_task, make_dataset, tmp_path_factory):
    """The folder of a quick distillation: its run, and its student; not to be changed."""
    task, folder = make_task(), tmp_path_factory.mktemp("distilled")
    run(exported, make_dataset(task), folder, task)
    return folder


@pytest.fixture
def student(distilled, task):
    return load_bundle(distilled / "student", task)


def run(teacher, dataset, tmp_path, task, config=QUICK):
    return distill(teacher, dataset, tmp_path / "run", tmp_path / "student", task, config, progress=False)


def test_a_student_is_a_bundle_that_samples_in_two_calls(teacher, student, dataset, task):
    assert (student.settings.sampler, student.settings.sampling_steps) == ("consistency", 2)
    assert student.provenance["distillation"]["bundle_sha256"] == teacher.sha256
    assert student.provenance["training"] == teacher.provenance["training"]
    assert student.strong["encoder"].read_bytes() == teacher.strong["encoder"].read_bytes()
    for strength in ("strong", "weak"):
        files = getattr(student, strength), getattr(teacher, strength)
        assert files[0]["denoiser"].read_bytes() != files[1]["denoiser"].read_bytes()
    policy = DiffusionPolicy(student, task, "onnx")
    encoded = policy.encode(Observation(0, {name: items[5:7] for name, items in dataset.observations.items()}))
    strong, weak = policy.sample(encoded, 3, 2, np.random.default_rng(0))
    assert strong.shape == (3, task.horizon, task.action_dim) and weak.shape[0] == 2
    alone, _ = policy.sample(encoded, 3, 0, np.random.default_rng(0))
    np.testing.assert_array_equal(alone, strong)


@pytest.mark.parametrize("runtime", ["onnx", pytest.param("openvino", marks=pytest.mark.long)])
def test_one_graph_samples_what_its_steps_would(student, dataset, task, runtime):
    observation = Observation(0, {name: items[5:7] for name, items in dataset.observations.items()})
    start = dataset.actions[5 : 5 + task.horizon]

    def chunks(bundle, **options):
        policy = DiffusionPolicy(bundle, task, runtime)
        policy.warm_up(3)
        return policy.sample(policy.encode(observation), 3, 2, np.random.default_rng(0), **options)

    stepwise = replace(
        student,
        strong={role: path for role, path in student.strong.items() if role != "sampler"},
        weak={role: path for role, path in student.weak.items() if role != "sampler"},
    )
    for options in ({}, {"start": start, "start_mode": "renoise"}):
        for one, other in zip(chunks(student, **options), chunks(stepwise, **options), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    policy = DiffusionPolicy(student, task, runtime)
    policy._strong.denoiser = policy._weak.denoiser = None
    assert policy.sample(policy.encode(observation), 3, 2, np.random.default_rng(0))[1] is not None


def test_a_sampler_of_other_noise_is_refused(student, task):
    other = replace(student, settings=replace(student.settings, sampling_steps=3))
    with pytest.raises(BundleError, match=r"strong_sampler.onnx: input 'noise' is float32 \(2, .*; valid is .*\(3, "):
        DiffusionPolicy(other, task, "onnx")


def test_a_teacher_of_few_steps_has_one_graph_too(dataset, make_config, tmp_path, task):
    diffusion = DiffusionConfig(prediction="epsilon")
    train(make_config(diffusion=diffusion), dataset, tmp_path / "training", task, progress=False)
    few = export(tmp_path / "training", tmp_path / "few", task, sampling_steps=3)
    many = export(tmp_path / "training", tmp_path / "many", task, sampling_steps=9, weak=False)
    assert "sampler" in few.strong and "sampler" in few.weak and "sampler" not in many.strong
    assert few.provenance["difference_to_pytorch"]["strong"]["chunk"] < 1e-4
    changed = replace(few, settings=replace(few.settings, sampling_steps=4))
    with pytest.raises(BundleError, match=r"strong_sampler.onnx does not sample as the section 'diffusion' of bundle"):
        DiffusionPolicy(changed, task, "onnx")


def test_nothing_is_compiled_after_the_warm_up(student, dataset, task, monkeypatch):
    policy = DiffusionPolicy(student, task, "openvino")
    policy.warm_up(3)

    def refuse(*_: object) -> None:
        raise AssertionError("a decision would wait for this")

    monkeypatch.setattr("bid_ros.policy.runtimes.openvino.OpenVinoGraph._compile", refuse)
    encoded = policy.encode(Observation(0, {name: items[5:7] for name, items in dataset.observations.items()}))
    start = dataset.actions[5 : 5 + task.horizon]
    for mode in ("noise", "renoise"):
        policy.sample(encoded, 3, 3, np.random.default_rng(0), start, mode)
        policy.sample(encoded, 1, 0, np.random.default_rng(0), start, mode)


@pytest.mark.parametrize("strength", ["strong", "weak"])
def test_weights_are_read_back_as_they_were_written(teacher, trained, make_config, task, strength):
    networks, read = (PolicyNetworks(task, make_config().network) for _ in range(2))
    networks.load_state_dict(RunFolder(trained).load(strength)["weights"])
    round_weights(networks)
    files = getattr(teacher, strength)
    read_policy(files, read)
    for name, weight in networks.state_dict().items():
        if not name.startswith("goal."):
            assert torch.equal(read.state_dict()[name], weight), name


@pytest.fixture
def stepwise(monkeypatch):
    """Exports no graph of all steps, which takes longest to write."""
    monkeypatch.setattr("bid_ros.learning.families.MOST_STEPS_OF_ONE_GRAPH", 0)


@pytest.mark.usefixtures("stepwise")
@pytest.mark.parametrize("shared", [True, False])
def test_one_encoder_serves_both_policies_if_they_share_it(teacher, student, dataset, tmp_path, task, shared):
    assert QUICK.share_encoder
    if not shared:
        student = run(teacher, dataset, tmp_path, task, replace(QUICK, share_encoder=False))
    assert (student.weak["encoder"] == student.strong["encoder"]) == shared
    assert (student.path / "weak_encoder.onnx").exists() != shared
    policy = DiffusionPolicy(student, task, "onnx")
    encoded = policy.encode(Observation(0, {name: items[5:7] for name, items in dataset.observations.items()}))
    assert (encoded.weak is encoded.strong) == shared


@pytest.mark.usefixtures("stepwise")
def test_a_stopped_distillation_goes_on(teacher, student, dataset, tmp_path, task, monkeypatch):
    monkeypatch.setattr("bid_ros.learning.distillation.CHECKPOINT_EVERY", 2)
    steps, advance = [], Distiller.advance

    def stop_in_the_third(self: Distiller) -> float:
        steps.append(self.step)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return advance(self)

    monkeypatch.setattr(Distiller, "advance", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        run(teacher, dataset, tmp_path / "stopped", task)
    assert sorted(path.name for path in (tmp_path / "stopped").iterdir()) == ["run"]
    resumed = run(teacher, dataset, tmp_path / "stopped", task)
    assert steps == [0, 1, 2, 3, 2, 3, 0, 1, 2, 3]
    for strength in ("strong", "weak"):
        one, other = getattr(resumed, strength), getattr(student, strength)
        assert one["denoiser"].read_bytes() == other["denoiser"].read_bytes()


def test_what_cannot_teach_is_refused(teacher, student, distilled, dataset, tmp_path, task):
    copytree(distilled, tmp_path, dirs_exist_ok=True)
    with pytest.raises(BundleError, match="is not a diffusion policy that is sampled by ddim"):
        run(student, dataset, tmp_path / "again", task)
    with pytest.raises(BundleError, match="is the bundle to distil; valid is another folder"):
        distill(teacher, dataset, tmp_path / "run", teacher.path, task, QUICK, progress=False)
    with pytest.raises(BundleError, match="levels is 1000; valid for this bundle is up to 100"):
        run(teacher, dataset, tmp_path / "again", task, replace(QUICK, levels=1000))
    (tmp_path / "run" / "strong.pt").unlink()
    torch.save({"step": 1}, tmp_path / "run" / "strong.pt")
    with pytest.raises(BidError, match=r"strong\.pt does not fit this run, remove it"):
        run(teacher, dataset, tmp_path, task)
    with pytest.raises(BundleError, match="does not say how it was trained"):
        run(replace(teacher, provenance={}), dataset, tmp_path / "again", task)
    with pytest.raises(
        BundleError, match=r"has a space, as imported policies do: its weights fit no .*; import it again with"
    ):
        run(replace(teacher, space=Space()), dataset, tmp_path / "again", task)
    with pytest.raises(BidError, match="holds the distillation of another bundle"):
        run(replace(teacher, sha256="0"), dataset, tmp_path, task)
    with pytest.raises(BidError, match="holds a run with seed 0, not 1"):
        run(teacher, dataset, tmp_path, task, replace(QUICK, seed=1))


def test_weights_of_another_network_are_refused(teacher, dataset, tmp_path, task):
    network = {**teacher.provenance["training"]["network"], "condition": 64}
    other = replace(teacher, provenance={"training": {**teacher.provenance["training"], "network": network}})
    with pytest.raises(
        BundleError,
        match=r"frames.onnx, strong_encoder.onnx: weight 'mix.0.weight' has shape \(64, .*; the network",
    ):
        run(other, dataset, tmp_path, task)
