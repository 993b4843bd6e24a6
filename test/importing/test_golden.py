"""Policies that lerobot 0.3.3 and 0.6.1 saved, against the numbers that lerobot computed from them.

Each goes the whole way: read, exported, loaded as a bundle and sampled by the policy that a robot would run.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bid_ros.core.observation import Observation
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions
from bid_ros.importing.write_bundle import write_imported
from bid_ros.policy.registry import load_policy

CASES = (
    "diffusion_state_ddim",
    "diffusion_state_ddpm",
    "legacy_diffusion_state",
    "diffusion_image",
    "diffusion_two_cameras",
    "dit_flow",
)
TOLERANCE = 1e-4  # normalised units, of another framework; a wrong reading moves the numbers by more than 1.6e-2


class Given:
    """Hands out a given noise in place of a random one."""

    def __init__(self, noise):
        self.noise = noise

    def standard_normal(self, shape, dtype):
        assert shape == self.noise.shape
        assert dtype == np.float32
        return np.ascontiguousarray(self.noise)


@pytest.fixture(scope="module")
def bundles(golden, kit, tmp_path_factory):
    """Import a case by name: its numbers, bundle and policy, told the text of observation 0.

    Two of them take 8 calls a sample, whose graph takes longest to export: it is left out unless it is asked for.
    """
    done = {}

    def imported(name, in_one_graph=False):
        if (name, in_one_graph) not in done:
            case = golden(name)
            told = str(case.numbers["obs/task"][0]) if name == "dit_flow" else ""
            options = ImportOptions(text=told, clip=str(case.path / "clip_tiny") if told else "")
            strong = read_policy(str(case.path / "policy"), options)
            task = kit.task_for(strong)
            with pytest.MonkeyPatch.context() as patch:
                if not in_one_graph:
                    patch.setattr("bid_ros.importing.write_bundle.MOST_CALLS_OF_ONE_GRAPH", 0)
                bundle = write_imported(strong, None, tmp_path_factory.mktemp("bundles") / name, task)
            assert ("sampler" in bundle.strong) == in_one_graph
            done[name, in_one_graph] = (case.numbers, bundle, load_policy(bundle, task, "onnx"))
        return done[name, in_one_graph]

    return imported


def observed(numbers, group, *rows):
    """Return the observation of an index."""
    names = [key.removeprefix(group) for key in numbers if key.startswith(f"{group}observation.")]
    return Observation(0, {name: numbers[group + name][rows] for name in names})


def noise_of(numbers, index):
    """Return first noise and step noise of an observation's draws: ``(noises, K, H, A)``."""
    first = numbers["noise"][:, index][None]
    if "step_noise" not in numbers:
        return first
    return np.concatenate([first, numbers["step_noise"][:, :, index].swapaxes(0, 1)])


@pytest.mark.parametrize(
    ("name", "in_one_graph"),
    [
        *((name, False) for name in CASES),
        *(pytest.param(name, True, marks=pytest.mark.long) for name in ("diffusion_two_cameras", "dit_flow")),
    ],
)
def test_conditions_and_chunks_are_those_of_lerobot(bundles, name, in_one_graph):
    numbers, bundle, policy = bundles(name, in_one_graph)
    for index in range(1 if name == "dit_flow" else 3):  # the others are told another text
        encoded = policy.encode(observed(numbers, "obs/", index))
        condition = numbers["global_cond"][index]
        np.testing.assert_allclose(encoded.network.strong[0], condition, atol=TOLERANCE, rtol=TOLERANCE)
        chunks, weak = policy.sample(encoded, 4, 0, Given(noise_of(numbers, index)))
        assert weak is None
        assert np.abs(bundle.action.normalise(chunks) - numbers["sample"][:, index]).max() < TOLERANCE
        scale = np.ptp(numbers["sample_action"])
        assert np.abs(chunks - numbers["sample_action"][:, index]).max() < TOLERANCE * scale


@pytest.mark.parametrize("name", CASES[:5])
def test_normalised_values_are_those_of_lerobot(bundles, name):
    numbers, bundle, _ = bundles(name)
    for key, normaliser in bundle.observation.items():
        np.testing.assert_allclose(normaliser.normalise(numbers[f"obs/{key}"]), numbers[f"norm/{key}"], atol=2e-6)
    if "norm/action_in" in numbers:
        np.testing.assert_allclose(
            bundle.action.normalise(numbers["norm/action_in"]), numbers["norm/action_out"], atol=2e-6
        )


@pytest.mark.parametrize("name", [*CASES[:2], *CASES[3:]])
def test_single_predictions_are_those_of_lerobot(bundles, name):
    numbers, bundle, _ = bundles(name)
    from bid_ros.policy.runtimes.registry import build_runtime

    graph = build_runtime("onnx").load(bundle.strong["denoiser"])
    group = "net" if name == "dit_flow" else "unet"
    for call in (f"{group}0", f"{group}1"):
        step = numbers[f"{call}/t"] * (bundle.settings.train_steps if name == "dit_flow" else 1)
        assert step == round(float(step)), "the time is none of the steps"
        for index in range(3):
            feeds = {
                "sample": numbers[f"{call}/x"][index][None],
                "step": np.array([round(float(step))]),
                "condition": numbers["global_cond"][index][None],
            }
            assert np.abs(graph.run(feeds)[0] - numbers[f"{call}/out"][index]).max() < TOLERANCE


@pytest.mark.parametrize("name", CASES[:2])
def test_a_roll_out_executes_the_rows_of_lerobot(bundles, name):
    """The first observation fills the history, and rows from the newest observation on are executed."""
    numbers, _, policy = bundles(name)
    actions, found = numbers["rollout/action"], np.zeros_like(numbers["rollout/action"])
    names = [key.removeprefix("rollout/") for key in numbers if key.startswith("rollout/observation.")]
    for time in np.flatnonzero(numbers["rollout/decides"]):
        for robot in range(actions.shape[1]):
            rows = [max(time - 1, 0), time]
            values = {key: numbers[f"rollout/{key}"][rows, robot] for key in names}
            noise = numbers["rollout/noise"][time, robot][None, None]
            if "rollout/step_noise" in numbers:
                noise = np.concatenate([noise, numbers["rollout/step_noise"][time, :, robot][:, None]])
            chunks, _ = policy.sample(policy.encode(Observation(0, values)), 1, 0, Given(noise))
            count = min(8, len(actions) - time)
            found[time : time + count, robot] = chunks[0, 1 : 1 + count]
    assert np.abs(found - actions).max() < TOLERANCE * np.ptp(actions)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_flow_is_followed_by_runge_kutta_as_lerobot_does(golden, kit, tmp_path, steps):
    """No golden case was sampled so: with LeRobot's weights and condition, its method is written out here."""
    case = golden("dit_flow")
    numbers, time = case.numbers, 1 / steps
    told = {"text": str(case.numbers["obs/task"][0]), "clip": str(case.path / "clip_tiny")}
    strong = read_policy(str(case.path / "policy"), ImportOptions(sampler="rk4", sampling_steps=steps, **told))
    task = kit.task_for(strong)
    bundle = write_imported(strong, None, tmp_path / "bundle", task)
    assert ("sampler" in bundle.strong) == (steps == 1)
    policy = load_policy(bundle, task, "onnx")
    noise = numbers["noise"][:, 0][None]
    chunks, _ = policy.sample(policy.encode(observed(numbers, "obs/", 0)), 4, 0, Given(noise))
    condition = torch.from_numpy(numbers["global_cond"][:1])

    def velocity(sample, now):
        level = torch.tensor([round(now * strong.settings.train_steps)])
        with torch.no_grad():
            return strong.denoiser(sample, level, condition)

    x = torch.from_numpy(noise[0])
    for index in range(steps):
        now = index * time
        one = velocity(x, now)
        two = velocity(x + time * one / 2, now + time / 2)
        three = velocity(x + time * two / 2, now + time / 2)
        four = velocity(x + time * three, now + time)
        x = x + time / 6 * (one + 2 * two + 2 * three + four)
    assert np.abs(bundle.action.normalise(chunks) - x.numpy()).max() < TOLERANCE


def test_all_steps_of_training_are_sampled_as_lerobot_does(golden, kit):
    case = golden("diffusion_state_ddpm")
    policy = read_policy(str(case.path / "policy"), ImportOptions(sampling_steps=100))
    assert policy.settings.sampling_steps == 100
    import torch

    from bid_ros.policy.diffusion.sampler import Sampler

    sampler, numbers = Sampler(policy.settings), case.numbers
    for index in range(3):
        condition = torch.from_numpy(numbers["global_cond"][index][None])
        noise = np.concatenate([numbers["noise"][:1, index][None], numbers["step_noise_full"][:, index][:, None]])
        with torch.no_grad():
            found = sampler.run(
                lambda sample, step, given=condition: policy.denoiser(
                    torch.from_numpy(sample), torch.from_numpy(step), given
                ).numpy(),
                noise,
            )
        assert np.abs(found[0] - numbers["sample_full"][index]).max() < TOLERANCE


def test_the_schedule_is_that_of_diffusers(golden):
    from bid_ros.policy.diffusion.sampler import cumulative_alphas

    numbers = golden("diffusion_state_ddim").numbers
    np.testing.assert_allclose(cumulative_alphas(100), numbers["scheduler/alphas_cumprod"], rtol=2e-4, atol=1e-7)


def test_cameras_keep_their_order(bundles):
    numbers, bundle, _ = bundles("diffusion_two_cameras")
    assert list(numbers["rgb/camera_order"]) != sorted(numbers["rgb/camera_order"])
    assert set(bundle.strong) >= {"frames", "encoder", "denoiser"}
