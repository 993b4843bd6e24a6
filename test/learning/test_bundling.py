from dataclasses import replace
from shutil import copytree

import numpy as np
import onnx
import pytest
import torch

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.observation import Observation
from bid_ros.learning import export, export_again, train
from bid_ros.learning.families import bundle_networks
from bid_ros.learning.graphs import compare, write_denoiser, write_encoding
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.run_folder import RunFolder
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.diffusion.sampler import Sampler
from bid_ros.policy.runtimes.registry import build_runtime


@pytest.fixture(scope="module")
def full(trained, make_task):
    """The bundle of the short run in full precision, under a name of its own; not to be changed."""
    return export(trained, trained.parent / "full", make_task(), half=False, name="dot policy")


@pytest.fixture(scope="module")
def other(make_task, make_dataset, make_config, tmp_path_factory):
    """A run whose actions refer to the robot's base, and its bundle in full precision."""
    task, folder = make_task(), tmp_path_factory.mktemp("base")
    train(make_config(steps=2, action_reference="base"), make_dataset(task), folder / "run", task, progress=False)
    return folder / "run", export(folder / "run", folder / "bundle", task, half=False)


@pytest.fixture(scope="module")
def chosen(trained, make_task):
    """The bundle of the short run without a weak policy, and with sampling steps of its own."""
    return export(trained, trained.parent / "chosen", make_task(), weak=False, sampling_steps=3)


@pytest.mark.parametrize(
    ("reference", "runtime"),
    [
        ("tool", "onnx"),
        pytest.param("tool", "openvino", marks=pytest.mark.long),  # students and shipped bundles run in it elsewhere
        ("base", "onnx"),  # what actions refer to is no part of the graphs: one runtime shows it
    ],
)
def test_a_bundle_decides_as_pytorch_does(task, dataset, request, reference, runtime) -> None:
    if reference == "tool":
        run, bundle = request.getfixturevalue("trained"), request.getfixturevalue("full")
    else:
        run, bundle = request.getfixturevalue("other")
    assert bundle.action_reference == reference
    values = {name: items[5:7] for name, items in dataset.observations.items()}
    policy = DiffusionPolicy(bundle, task, runtime)
    encoded = policy.encode(Observation(0, values))
    ours, weak = policy.sample(encoded, 3, 2, np.random.default_rng(4))
    assert weak is not None

    networks = PolicyNetworks(task, RunFolder(run).config().network).eval()
    networks.load_state_dict(torch.load(run / "strong.pt", weights_only=True)["weights"])
    noise = np.random.default_rng(4).standard_normal((3, task.horizon, task.action_dim), dtype=np.float32)
    with torch.no_grad():
        images = {"front": torch.from_numpy(values["front"]).float()[None] / 255 - 0.5}
        vector = bundle.observation["tool_position"].normalise(values["tool_position"])
        condition = networks.encoder(images, {"tool_position": torch.from_numpy(vector)[None]})

        def denoise(sample, step):
            return networks.denoiser(torch.from_numpy(sample), torch.from_numpy(step), condition).numpy()

        theirs = bundle.action.denormalise(Sampler(bundle.settings).run(denoise, noise[None]))
    if reference == "tool":
        theirs[..., :3] += values["tool_position"][-1]
    np.testing.assert_allclose(ours, np.clip(theirs, encoded.low, encoded.high), atol=1e-5)


def test_half_weights_are_small_and_close(task, dataset, full, exported) -> None:
    half = exported
    sizes = [bundle.strong["denoiser"].stat().st_size for bundle in (full, half)]
    assert sizes[1] < 0.75 * sizes[0]
    values = {name: items[5:7] for name, items in dataset.observations.items()}
    chunks = []
    for bundle in (full, half):
        policy = DiffusionPolicy(bundle, task, "onnx")
        chunks.append(policy.sample(policy.encode(Observation(0, values)), 4, 0, np.random.default_rng(0))[0])
    assert 0 < np.abs(chunks[0] - chunks[1]).max() < 0.01
    types = {item.data_type for item in onnx.load(half.strong["denoiser"]).graph.initializer}
    assert onnx.TensorProto.FLOAT16 in types


def test_provenance_names_data_steps_and_seeds(dataset, full, exported) -> None:
    assert (full.name, exported.name) == ("dot policy", "bundle")
    bundle, provenance = full, full.provenance
    assert (provenance["weights"], exported.provenance["weights"]) == ("float32", "float16")
    assert provenance["data_sha256"] == dataset.sha256
    assert (provenance["steps_strong"], provenance["steps_weak"], provenance["seeds"]) == (12, 1, [0])
    assert provenance["difference_to_pytorch"]["strong"]["chunk"] < 1e-3
    np.testing.assert_allclose(bundle.action_spread, dataset.actions.std(axis=0))


def test_a_bundle_without_weak_policy(chosen) -> None:
    assert chosen.weak is None
    assert len(list(chosen.path.iterdir())) == 5


def test_sampling_steps_are_chosen_at_export(task, trained, exported, chosen, tmp_path) -> None:
    assert chosen.settings == replace(exported.settings, sampling_steps=3) != exported.settings
    with pytest.raises(BundleError, match="sampling_steps is 0; valid is a whole number, 1 or more"):
        export(trained, tmp_path / "none", task, sampling_steps=0)
    assert not (tmp_path / "none").exists()


def test_a_bundle_written_anew_has_the_same_weights(task, exported, tmp_path) -> None:
    """In another folder, whose name it gets, and in its own."""
    before = replace(exported, action_weights={"gripper_width": 0.5})
    after = export_again(before, tmp_path / "after", task, sampling_steps=1)
    assert (before.settings.sampling_steps, after.settings.sampling_steps) == (2, 1)
    assert (after.name, after.provenance["commit"]) == ("after", before.provenance["commit"])
    assert after.action_weights == {"gripper_width": 0.5}
    for strength in ("strong", "weak"):
        ours, theirs = (bundle_networks(bundle, task)[strength].state_dict() for bundle in (before, after))
        assert all(torch.equal(ours[name], theirs[name]) for name in ours if not name.startswith("goal"))
    again = export_again(after, after.path, task)
    assert again.settings == after.settings
    assert {path.name for path in again.path.iterdir()} == {path.name for path in before.path.iterdir()}
    with pytest.raises(BundleError, match="does not say how it was trained; valid is one that bid policy export wrote"):
        export_again(replace(before, provenance={}), tmp_path / "none", task)


def test_a_student_is_not_exported_with_steps_that_it_was_not_trained_for(task, exported, tmp_path) -> None:
    provenance = {**exported.provenance, "distillation": {"config": {"levels": 8}}}
    student = replace(exported, settings=replace(exported.settings, sampler="consistency"), provenance=provenance)
    with pytest.raises(BundleError, match="sampling_steps is 3; valid with the 8 levels of this student: 1, 2, 4, 8"):
        export_again(student, tmp_path / "student", task, sampling_steps=3)


def test_a_graph_that_differs_is_not_written(task, trained, exported, tmp_path) -> None:
    copytree(exported.path, tmp_path / "bundle")
    before = (tmp_path / "bundle" / "bundle.yaml").read_bytes()
    with pytest.raises(BundleError, match=r"strong policy: \w+ differs from PyTorch by .*; valid is up to 1e-12"):
        export(trained, tmp_path / "bundle", task, tolerance=1e-12)
    assert (tmp_path / "bundle" / "bundle.yaml").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize("part", ["frames", "encoder", "denoiser"])
def test_a_changed_weight_is_noticed(task, trained, tmp_path, part) -> None:
    config = RunFolder(trained).config()
    networks = PolicyNetworks(task, config.network).eval()
    files = {role: tmp_path / f"{role}.onnx" for role in ("frames", "encoder", "denoiser")}
    write_encoding(networks.encoder, task, files)
    write_denoiser(networks.denoiser, task, config.network.condition, files["denoiser"])

    def difference():
        return compare(networks, files, build_runtime("onnx"), task, config.diffusion)

    named = "denoiser" if part == "denoiser" else "encoder"
    assert difference()[named] < 1e-4
    model = onnx.load(files[part])
    tensor = max(model.graph.initializer, key=lambda item: len(item.raw_data))
    # By a fifth: what a twentieth does depends on the number of threads of the training, and may be below the bound.
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * np.float32(1.2), tensor.name))
    onnx.save(model, files[part])
    assert difference()[named] > 1e-4
    assert difference()["chunk"] > 1e-4


def test_a_run_that_is_missing_incomplete_or_of_another_task(task, make_task, trained, tmp_path) -> None:
    run = copytree(trained, tmp_path / "run")
    with pytest.raises(BidError, match=r"not the folder of a training run"):
        export(tmp_path / "nothing", tmp_path / "bundle", task)
    with pytest.raises(BidError, match="trained for another version of task"):
        export(run, tmp_path / "bundle", make_task(horizon=16))
    with pytest.raises(BidError, match=f"trained for task '{task.name}'; valid is the task with the features"):
        export(run, tmp_path / "bundle", replace(task, name="other", rate_hz=task.rate_hz / 2))
    (run / "strong.pt").unlink()
    with pytest.raises(BidError, match=r"strong\.pt does not exist: the run has not come that far"):
        export(run, tmp_path / "bundle", task)
    assert not (tmp_path / "bundle").exists()


def test_a_folder_that_is_no_bundle_is_not_replaced(task, trained, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(BundleError, match="exists and is not a bundle"):
        export(trained, tmp_path / "mine", task)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
