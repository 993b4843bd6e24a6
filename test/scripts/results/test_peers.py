import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from results.peers.choice import choose  # noqa: E402
from results.peers.eager import EagerMaker  # noqa: E402
from results.peers.schedulers import Ddim, Ddpm  # noqa: E402
from results.timing import STAGES, alternate, median_ratio, stream_of_noise, summarise  # noqa: E402
from results_entry import results  # noqa: E402

from bid_ros.core.paths import share  # noqa: E402
from bid_ros.core.task import load_task  # noqa: E402
from bid_ros.learning.families import bundle_networks  # noqa: E402
from bid_ros.policy.bundle import load_bundle  # noqa: E402
from bid_ros.policy.diffusion.policy import DiffusionPolicy  # noqa: E402
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler, cumulative_alphas  # noqa: E402

FREE = 1e6  # clips nothing


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def task():
    return load_task(share("config", "franka_place", "task.yaml"))


@pytest.fixture
def bundle(task):
    return load_bundle(share("models", "franka_place"), task)


def network(sample, timestep):
    """Any smooth function of sample and time step, of PyTorch or NumPy arrays."""
    return 0.5 * sample + 0.01 * float(timestep)


@pytest.mark.parametrize("prediction", ["sample", "epsilon"])
@pytest.mark.parametrize("steps", [10, 100])
def test_ddim_samples_as_ours_does_where_nothing_is_clipped(prediction, steps):
    config = DiffusionConfig(prediction=prediction, sampling_steps=steps, clip=FREE, spacing="leading")
    noise = np.random.default_rng(0).standard_normal((4, 8, 3), dtype=np.float32)
    expected = Sampler(config).run(lambda sample, step: network(sample, step[0]).astype(np.float32), noise[None])
    scheduler, sample = Ddim(config), torch.from_numpy(noise)
    scheduler.set_timesteps(steps)
    for timestep in scheduler.timesteps:
        sample = scheduler.step(network(sample, timestep), timestep, sample)
    np.testing.assert_allclose(sample.numpy(), expected, rtol=2e-3, atol=2e-3)


def test_ddim_clips_the_clean_chunk_and_keeps_the_noise():
    config = DiffusionConfig(prediction="epsilon", clip=0.1)
    scheduler, alphas = Ddim(config), cumulative_alphas(config.train_steps)
    sample, output = torch.ones(1, 1, 1), torch.zeros(1, 1, 1)
    after = scheduler.step(output, torch.tensor(50), sample)
    assert after.item() == pytest.approx(np.sqrt(alphas[49]) * 0.1, rel=1e-4)


@pytest.mark.parametrize("steps", [10, 100])
def test_ddpm_keeps_the_noise_of_each_level(steps):
    """From a chunk at one level to one at the next: mean and variance are those of the clean chunk diffused to it."""
    config = DiffusionConfig(prediction="sample", clip=FREE)
    scheduler, alphas = Ddpm(config), cumulative_alphas(config.train_steps)
    scheduler.set_timesteps(steps)
    torch.manual_seed(0)
    clean = torch.full((200_000, 1, 1), 0.7)
    now = scheduler.timesteps[steps // 2]
    noisy = alphas[now] ** 0.5 * clean + (1 - alphas[now]) ** 0.5 * torch.randn_like(clean)
    found, after = scheduler.step(clean, now, noisy), alphas[now - config.train_steps // steps]
    assert found.mean().item() == pytest.approx(after**0.5 * 0.7, abs=0.01)
    assert found.var().item() == pytest.approx(1 - after, rel=0.02)


def test_ddpm_ends_at_the_predicted_chunk():
    scheduler = Ddpm(DiffusionConfig(prediction="sample"))
    end = scheduler.step(torch.full((2, 3, 4), 0.4), scheduler.timesteps[-1], torch.randn(2, 3, 4))
    np.testing.assert_allclose(end.numpy(), 0.4, rtol=1e-6)


@pytest.mark.parametrize("case", range(0, 60, 7))
def test_the_choice_is_that_of_the_published_code(case):
    with np.load(share("test", "data", "reference_visible.npz")) as cases:
        strong, weak, prior = (torch.from_numpy(cases[f"{case}/{name}"]) for name in ("strong", "weak", "prior"))
        numbers = [cases[f"{case}/{name}"].item() for name in ("executed", "n_mode", "beta")]
        expected = int(cases[f"{case}/reference_v2/bid"])
    assert choose(strong, weak, prior if len(prior) else None, 2, *numbers) == expected


def test_the_eager_networks_are_those_of_the_bundle(task, bundle):
    """Same observation, same noise: same chunks as ours, up to the spacing of the steps, which is set alike here."""
    changes = {"clip": FREE, "spacing": "leading", "sampling_steps": 4, "sampler": "ddim"}
    object.__setattr__(bundle, "settings", DiffusionConfig(**(vars(bundle.settings) | changes)))
    for strength in ("strong", "weak"):  # the graph of all steps has others inside
        files = {role: path for role, path in getattr(bundle, strength).items() if role != "sampler"}
        object.__setattr__(bundle, strength, files)
    object.__setattr__(bundle, "action_reference", "base")
    policies = list(bundle_networks(bundle, task).values())
    maker = EagerMaker(policies, bundle, task, "ddim", 4, 3)
    observation = next(stream_of_noise(task, np.random.default_rng(0)))
    ours = DiffusionPolicy(bundle, task, "onnx")
    strong, weak = ours.sample(ours.encode(observation), 3, 3, np.random.default_rng(5))
    noises = iter(np.random.default_rng(5).standard_normal((2, 3, task.horizon, task.action_dim), dtype=np.float32))
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randn", lambda *_: torch.from_numpy(next(noises)))
        batch = maker._repeat(observation)
        found = [maker._sample(policy, maker._encode(policy, batch)).numpy() for policy in policies]
    np.testing.assert_allclose(found[0], strong, atol=2e-3)
    np.testing.assert_allclose(found[1], weak, atol=2e-3)


def test_procedures_alternate_on_the_same_observations(task):
    seen = {"one": [], "two": []}
    order = []

    def procedure(name, duration):
        def decide(observation):
            seen[name].append(observation.stamp_ns)
            order.append(name)
            return duration, 2 * duration, 1

        return decide

    between = []
    procedures = {"one": procedure("one", 1_000_000), "two": procedure("two", 3_000_000)}
    rows = alternate(procedures, task, 20, 2, lambda: between.append(len(order)))
    assert seen["one"] == seen["two"] and len(set(seen["one"])) == 22
    assert between == list(range(2, 46, 2)), "once a round"
    assert {tuple(order[i : i + 2]) for i in range(0, 44, 2)} == {("one", "two"), ("two", "one")}
    assert rows["one"].shape == (20, len(STAGES))
    times = summarise(rows, "one")
    assert times["two"]["encode"].p50_ms == 3 and times["two"]["sample"].ratio == (3, 3, 3)


def test_a_ratio_is_of_pairs():
    """Rounds that are slow for both do not matter."""
    slow = np.array([1.0, 50.0, 2.0, 9.0, 4.0])
    assert median_ratio(3 * slow, slow) == pytest.approx((3, 3, 3))


@pytest.mark.long
def test_the_command_compares_and_draws(tmp_path, capsys):
    picture = tmp_path / "peers.png"
    options = ["peers", "franka_place", "--samples", "6", "--decisions", "2", "--warm-up", "1"]
    assert results(*options, "--peers", "ddim,ddpm:10", "--json", "--plot", str(picture)) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["times"]) == ["bid_ros, CONSISTENCY 2", "eager, DDIM 2", "eager, DDPM 10"]
    whole = result["times"]["eager, DDIM 2"]["whole"]
    assert whole["ratio"][1] <= whole["ratio"][0] <= whole["ratio"][2]
    floors = result["floors"]
    assert floors["whole"]["flops"] == sum(floors[stage]["flops"] for stage in STAGES[:-1])
    assert floors["sample"]["ratio"] > 1, "nothing is faster than the machine"
    assert picture.stat().st_size > 5000
    assert torch.get_num_threads() == 1


def test_the_image_network_is_a_resnet_18():
    from results.peers.full_size import ResNet18

    network = ResNet18()
    assert sum(item.numel() for item in network.parameters()) == 11_176_512, "11.69 M less the classifier's 0.51 M"
    assert network(torch.zeros(2, 3, 96, 96)).shape == (2, 512, 3, 3)


@pytest.mark.long
def test_a_policy_of_other_sizes_is_counted_and_run(task, tmp_path):
    """The full-size policy with few channels."""
    from results.peers import full_size
    from results.peers.comparison import Peer, Setup, compare_peers

    from bid_ros.learning.config import NetworkConfig

    small = NetworkConfig(widths=(8, 16, 32), blocks=2, condition=1, step_embedding=16)
    settings = DiffusionConfig(sampling_steps=2)
    found, networks = full_size.write_full_size(tmp_path, task, settings, small, (64, 80, 96, 112))
    assert sum(full_size.parameters(networks[0])) < 3_000_000
    result = compare_peers(Setup(found, networks, task, 6, "onnx"), [Peer("ddim")], 2, 1)
    assert set(result.times) == {"bid_ros, DDIM 2", "eager, DDIM 2"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peers", "euler"], "--peers has 'euler'; valid is ddim or ddpm"),
        (["--peers", "ddim:many"], "--peers has 'ddim:many'"),
        (["--peers", "ddpm:101"], "101 steps are asked for; valid is up to 100"),
        (["--samples", "0"], "samples is 0; valid is 1 to 256"),
        (["--decisions", "0"], "decisions is 0"),
        (["--warm-up", "-1"], "--warm-up is -1"),
        (["--threads", "0"], "threads is 0; valid is 1 to 256"),
        (["--bundle", "/nowhere"], "bundle folder /nowhere does not exist"),
    ],
)
def test_bad_input_is_one_sentence(capsys, arguments, message):
    assert results("peers", *arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and message in error[0]
