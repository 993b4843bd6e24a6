"""Training for delays: what is given clean or rolled forward, what counts, what the bundle says and does."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml

from bid_ros.bench.batch_policy import BatchPolicy
from bid_ros.cli import main
from bid_ros.core.errors import BidError, BundleError, DecodingError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import Observation
from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder
from bid_ros.learning import DistillConfig, NetworkConfig, distill, export, export_again, train
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.trainer import DiffusionTrainer
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.draft import Draft
from bid_ros.policy.registry import load_policy

SMALL = NetworkConfig(widths=(16, 32), kernel=3, condition=32, step_embedding=16)
FLOW = {"sampler": "flow", "prediction": "velocity"}
WAYS = {
    "ddim": {"simulated_delay": 3},
    "flow": {"simulated_delay": 3, **FLOW},
    "rolled": {"simulated_delay": 3, "roll_forward": True, **FLOW},
}
COMMITTED = np.linspace(-0.1, 0.1, 5)[:, None] * np.array([1.0, 0.5, -1.0, 0.0]) + np.array([0, 0, 0, 0.05])


@pytest.fixture(scope="module")
def small(make_task):
    return make_task(images=False)


@pytest.fixture(scope="module")
def folders(small, make_dataset, make_config, tmp_path_factory):
    """The bundle of a short run for each of the ways."""
    found = {}
    for name, settings in WAYS.items():
        out = tmp_path_factory.mktemp(name)
        config = make_config(steps=4, diffusion=DiffusionConfig(sampling_steps=2, **settings))
        train(config, make_dataset(small), out / "run", small, progress=False)
        found[name] = export(out / "run", out / "bundle", small).path
    return found


def seen(place=0.1):
    return Observation(0, {"tool_position": np.full((2, 3), place)})


def test_rows_that_are_given_do_not_count(small, make_dataset):
    data, windows = TrainingData(make_dataset(small), small), np.arange(6)
    networks = PolicyNetworks(small, SMALL, clean_step=-1)
    batch = data.batch(windows, torch.device("cpu"))
    noisy, step, rows = torch.randn(batch.actions.shape), torch.zeros(6, dtype=torch.int64), torch.tensor([0, 2, 3] * 2)
    losses = []
    for part in ("nothing", "given", "other"):
        target, of_others = torch.zeros_like(noisy), noisy.clone()
        if part == "given":
            target[1, :2] = of_others[1, :2] = 9.0
        if part == "other":
            target[1, 2] = 9.0
        losses.append(networks.losses(batch, of_others, step, target, rows)["loss"].item())
    assert losses[0] == losses[1] < losses[2]


def test_each_sample_has_a_delay_of_its_own(small, make_dataset, make_config):
    data, windows = TrainingData(make_dataset(small), small, "tool"), np.arange(40)
    config = make_config(batch=40, diffusion=DiffusionConfig(simulated_delay=3, sampling_steps=2))
    trainer, asked = DiffusionTrainer(small, data, windows, windows[:0], config, torch.device("cpu")), []

    def losses(batch, noisy, step, target, prefix_rows):
        asked.extend(prefix_rows.tolist())
        return {"loss": next(trainer.networks.parameters()).sum()}

    trainer.networks.losses = losses
    trainer.advance()
    assert set(asked) == {0, 2, 3, 4}, "no row, or the row of the past and one to three more"


@pytest.mark.parametrize("runtime", ["onnx", "torch"])
@pytest.mark.parametrize("way", list(WAYS))
def test_committed_rows_come_out_as_they_are(folders, small, way, runtime):
    policy = load_policy(load_bundle(folders[way], small), small, runtime)
    policy.warm_up(3)
    assert policy.capabilities.simulated_delay == 3

    def chunks(committed):
        return policy.sample(policy.encode(seen(), committed=committed), 3, 2, np.random.default_rng(1))

    (strong, weak), (free, _) = chunks(COMMITTED[:3]), chunks(None)
    for drawn in (strong, weak):
        np.testing.assert_array_equal(drawn[:, :3], [COMMITTED[:3]] * len(drawn))
    assert np.abs(strong[:, 3:] - free[:, 3:]).max() > 1e-6, "the rest knows of them"
    np.testing.assert_array_equal(chunks(COMMITTED[:1])[0], free)  # the row of the past alone is no delay
    # Rows of a longer delay than the policy was trained for are not given.
    np.testing.assert_array_equal(chunks(COMMITTED)[0][:, :4], [COMMITTED[:4]] * 3)


def test_a_chunk_from_the_rolled_state_is_that_of_its_time(folders, small):
    policy = load_policy(load_bundle(folders["rolled"], small), small, "onnx")
    encoded = policy.encode(seen(), committed=COMMITTED[:3])
    rolled = policy.encode(Observation(0, {"tool_position": COMMITTED[1:3, :3]}))
    (late, _), (now, _) = (policy.sample(item, 2, 0, np.random.default_rng(1)) for item in (encoded, rolled))
    np.testing.assert_allclose(late[:, 3:], now[:, 1:-2], atol=1e-6)
    assert not policy.capabilities.starts and not policy.capabilities.gradients


@pytest.mark.parametrize("way", list(WAYS))
def test_many_environments_share_a_call(folders, small, way):
    policy = BatchPolicy(load_bundle(folders[way], small), small, "onnx")
    assert policy.batched
    request = DecodeRequest(0, small.dt_ns, 2, 8, 4)
    given = [None, COMMITTED[:2], COMMITTED[:4]]

    def encoded(committed):
        return policy.unbatched.encode(seen(), committed=committed)

    found = policy.sample([Draft(request, encoded(rows), 3, 3, np.random.default_rng(4)) for rows in given])
    for rows, drawn in zip(given, found, strict=True):
        alone = policy.unbatched.sample(encoded(rows), 3, 3, np.random.default_rng(4))
        np.testing.assert_allclose(drawn, alone, atol=1e-5)


def test_a_decision_continues_what_is_executed_meanwhile(folders, small):
    policy, step = load_policy(load_bundle(folders["flow"], small), small, "onnx"), small.dt_ns
    maker = DecisionMaker(policy, build_decoder("vanilla", DecoderConfig(delay=2)), small)
    first = maker.decide(seen()).choice.actions
    second = maker.decide(Observation(step, seen(0.2).values)).choice.actions
    np.testing.assert_array_equal(second[:3], first[1:4])
    assert not np.allclose(second[3:7], first[4:], atol=1e-6)
    maker.delay = 0
    third = maker.decide(Observation(2 * step, seen(0.2).values)).choice.actions
    assert not np.allclose(third[:3], second[1:4], atol=1e-6)


def test_the_bundle_says_what_it_was_trained_for(folders, exported):
    said = yaml.safe_load((folders["rolled"] / "bundle.yaml").read_text())
    assert said["diffusion"]["simulated_delay"] == 3 and said["diffusion"]["roll_forward"] is True
    assert said["provenance"]["training"]["diffusion"]["simulated_delay"] == 3
    assert "roll_forward" not in yaml.safe_load((folders["flow"] / "bundle.yaml").read_text())["diffusion"]
    assert "simulated_delay" not in yaml.safe_load((exported.path / "bundle.yaml").read_text())["diffusion"]


def test_a_bundle_can_be_exported_again(folders, small, tmp_path):
    before = load_bundle(folders["flow"], small)
    after = export_again(before, tmp_path / "again", small)
    drawn = []
    for bundle in (before, after):
        policy = load_policy(bundle, small, "onnx")
        drawn.append(policy.sample(policy.encode(seen(), committed=COMMITTED[:3]), 2, 2, np.random.default_rng(1)))
    np.testing.assert_array_equal(*drawn)


def test_what_cannot_be_trained_or_given_is_refused(
    folders, exported, task, small, make_dataset, make_config, tmp_path
):
    def refused(message, of=small, **settings):
        config = make_config(diffusion=DiffusionConfig(sampling_steps=2, **settings))
        with pytest.raises(BidError, match=message):
            train(config, make_dataset(of), tmp_path / "run", of, progress=False)
        assert not (tmp_path / "run").exists()

    refused("simulated_delay is 7; valid for task 'dot' is up to 6", simulated_delay=7)
    with pytest.raises(BundleError, match="roll_forward is true with simulated_delay 0"):
        DiffusionConfig(roll_forward=True)
    with pytest.raises(BidError, match="simulated_delay is 2 with the family vqbet, which denoises nothing"):
        make_config(family="vqbet", diffusion=DiffusionConfig(simulated_delay=2))
    policy = load_policy(exported, task, "onnx")
    values = {"front": np.zeros((2, 24, 24, 3), np.uint8), **seen().values}
    with pytest.raises(DecodingError, match="3 committed rows are given to bundle 'bundle', which was trained for no"):
        policy.encode(Observation(0, values), committed=COMMITTED[:3])
    bundle = load_bundle(folders["ddim"], small)
    with pytest.raises(BundleError, match="was trained for delays, which a student would not know"):
        distill(bundle, make_dataset(small), tmp_path / "s", tmp_path / "student", small, DistillConfig())


def test_a_task_without_a_state_to_roll_is_refused(small, make_config, make_dataset, tmp_path):
    """Its tool is not observed, so nobody knows where the actions begin."""
    task = replace(small, observation=(Feature("cup_position", "position", frame="base"),))
    settings = DiffusionConfig(sampling_steps=2, simulated_delay=2, roll_forward=True)
    with pytest.raises(BidError, match="task 'dot' observes nothing as it is commanded"):
        train(make_config(diffusion=settings), make_dataset(small), tmp_path / "run", task, progress=False)
    assert not (tmp_path / "run").exists()


def test_the_command_line_trains_for_delays(tmp_path, capsys, task_file, make_dataset, task):
    make_dataset(task).save(tmp_path / "data.npz")
    arguments = ["train", str(tmp_path / "data.npz"), "--task", str(task_file), "--steps", "1", "--batch", "2"]
    arguments += ["--out", str(tmp_path / "run"), "--device", "cpu", "--set", "network.widths=[16,32]"]
    assert main([*arguments, "--simulated-delay", "2", "--roll-forward", "--family", "act"]) == 2
    assert "simulated_delay is 2 with the family act, which denoises nothing" in capsys.readouterr().err
    assert main([*arguments, "--roll-forward"]) == 2
    assert "roll_forward is true with simulated_delay 0; valid is a delay of 1 or more" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main([*arguments, "--simulated-delay", "2", "--family", "flow"]) == 0
