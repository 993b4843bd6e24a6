"""Samplers of imported policies, against their definitions written out step by step."""

import numpy as np
import pytest

from bid_ros.core.errors import BundleError
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler, cumulative_alphas

SHAPE = (5, 4, 3)


def gaussian(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(sample, step):
    """A smooth function of sample and step that leaves [-1, 1], so that clipping matters."""
    return (1.2 * np.sin(2 * sample + 0.01 * step[0])).astype(np.float32)


def test_a_linear_schedule_matches_its_definition():
    alphas = cumulative_alphas(50, "linear", 1e-3, 0.1)
    expected, product = [], 1.0
    for index in range(50):
        product *= 1 - (1e-3 + (0.1 - 1e-3) * index / 49)
        expected.append(product)
    np.testing.assert_allclose(alphas, expected, rtol=1e-12)


@pytest.mark.parametrize("prediction", ["epsilon", "sample"])
@pytest.mark.parametrize("schedule", ["squaredcos_cap_v2", "linear"])
@pytest.mark.parametrize("clip", [1.0, None])
def test_ddpm_draws_from_the_posterior(prediction, schedule, clip):
    """Ho et al. 2020, Eqs. 6 and 7, with the betas of the visited steps."""
    config = DiffusionConfig(
        sampler="ddpm",
        prediction=prediction,
        beta_schedule=schedule,
        clip=clip,
        sampling_steps=10,
        spacing="leading",
        kept_noise="predicted",
    )
    noise = gaussian(10, *SHAPE)
    alphas = cumulative_alphas(100, schedule)
    x, draws = noise[0].astype(np.float64), iter(noise[1:])
    for step in range(90, -1, -10):
        now, after = alphas[step], alphas[step - 10] if step else 1.0
        out = network(x.astype(np.float32), [step])
        clean = (x - np.sqrt(1 - now) * out) / np.sqrt(now) if prediction == "epsilon" else out
        clean = clean if clip is None else np.clip(clean, -clip, clip)
        alpha = now / after
        mean = np.sqrt(after) * (1 - alpha) / (1 - now) * clean + np.sqrt(alpha) * (1 - after) / (1 - now) * x
        x = mean + np.sqrt((1 - after) / (1 - now) * (1 - alpha)) * next(draws) if step else mean
    found = Sampler(config).run(network, noise)
    np.testing.assert_allclose(found, x, rtol=2e-4, atol=2e-4)
    assert Sampler(config).noises == 10


@pytest.mark.parametrize("prediction", ["epsilon", "sample"])
def test_ddim_keeps_the_predicted_noise_where_it_is_told_to(prediction):
    config = DiffusionConfig(prediction=prediction, spacing="leading", sampling_steps=5, kept_noise="predicted")
    noise = gaussian(1, *SHAPE)
    alphas = cumulative_alphas(100)
    x = noise[0].astype(np.float64)
    for step in range(80, -1, -20):
        now, after = alphas[step], alphas[step - 20] if step else 1.0
        out = network(x.astype(np.float32), [step])
        if prediction == "epsilon":
            clean, kept = (x - np.sqrt(1 - now) * out) / np.sqrt(now), out
        else:
            clean, kept = out, (x - np.sqrt(now) * out) / np.sqrt(1 - now)
        x = np.sqrt(after) * np.clip(clean, -1, 1) + np.sqrt(1 - after) * kept
    found = Sampler(config).run(network, noise)
    np.testing.assert_allclose(found, x, rtol=2e-4, atol=2e-4)


def test_which_noise_is_kept_matters_where_something_is_clipped():
    noise = gaussian(1, *SHAPE)
    found = [
        Sampler(DiffusionConfig(prediction="epsilon", spacing="leading", kept_noise=kept)).run(network, noise)
        for kept in ("clipped", "predicted")
    ]
    assert np.abs(found[0] - found[1]).max() > 1e-2


def test_a_flow_is_followed_in_steps_of_euler():
    config = DiffusionConfig(sampler="flow", prediction="velocity", train_steps=1000, sampling_steps=8, clip=None)
    noise = gaussian(1, *SHAPE)
    x = noise[0].astype(np.float64)
    for index in range(8):
        x = x + network(x.astype(np.float32), [125 * index]) / 8
    np.testing.assert_allclose(Sampler(config).run(network, noise), x, rtol=1e-5, atol=1e-5)


def test_a_flow_starts_from_a_trajectory_as_straight_paths_say():
    config = DiffusionConfig(sampler="flow", prediction="velocity", train_steps=8, sampling_steps=8, clip=None)
    start, seen = gaussian(*SHAPE[1:], seed=1), []

    def watch(sample, step):
        seen.append((int(step[0]), sample))
        return start - gaussian(*SHAPE)  # the velocity of the straight path

    found = Sampler(config).run(watch, gaussian(1, *SHAPE), start, "renoise")
    assert [step for step, _ in seen] == [4, 5, 6, 7]
    np.testing.assert_allclose(seen[0][1], 0.5 * start + 0.5 * gaussian(*SHAPE), atol=1e-6)
    np.testing.assert_allclose(found, np.broadcast_to(start, SHAPE), atol=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sampler": "flow"}, "sampler 'flow' has prediction 'sample'; valid is 'velocity'"),
        ({"prediction": "velocity"}, "sampler 'ddim' has prediction 'velocity'; valid"),
        ({"sampler": "flow", "prediction": "velocity", "sampling_steps": 7}, "flow is 7; valid is a divisor"),
    ],
)
def test_a_flow_needs_velocities_and_even_steps(values, message):
    with pytest.raises(BundleError, match=message):
        DiffusionConfig(**values)


def curved(sample, step):
    """The velocity of x(t) = x(0) exp(sin(3 t)), with 960 steps of time."""
    return 3 * np.cos(3 * step[0] / 960) * sample


def exact(sample):
    return sample * np.exp(np.sin(3.0))


def test_runge_kutta_has_the_fourth_order():
    """With half of the step an error is a sixteenth. The samples are float64 here: rounding would hide it."""
    start = gaussian(1, *SHAPE).astype(np.float64)
    errors = []
    for steps in (20, 40, 80):
        config = DiffusionConfig(
            train_steps=960, sampler="flow", prediction="velocity", clip=None, sampling_steps=steps, integration="rk4"
        )
        errors.append(np.abs(Sampler(config).run(curved, start) - exact(start[0])).max())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.3) and errors[1] / errors[2] == pytest.approx(16, rel=0.3)


def test_runge_kutta_calls_the_network_four_times_a_step():
    config = DiffusionConfig(
        train_steps=12, sampler="flow", prediction="velocity", clip=None, sampling_steps=2, integration="rk4"
    )
    seen, start = [], gaussian(1, *SHAPE)
    kept = start.copy()
    found = Sampler(config).run(lambda sample, step: (seen.append(int(step[0])), network(sample, step))[1], start)
    assert seen == [0, 3, 3, 6, 6, 9, 9, 12] and config.calls == 8
    assert found.dtype == np.float32
    np.testing.assert_array_equal(start, kept)
    assert not Sampler(config).guides


def test_runge_kutta_starts_from_a_chunk_too():
    config = DiffusionConfig(
        train_steps=960, sampler="flow", prediction="velocity", clip=None, sampling_steps=8, integration="rk4"
    )
    start, noise = gaussian(*SHAPE[1:], seed=1), gaussian(1, *SHAPE)
    found = Sampler(config).run(curved, noise, start, "renoise")
    begin = 0.5 * start + 0.5 * noise[0]  # half of the steps are left
    np.testing.assert_allclose(found, begin * np.exp(np.sin(3.0) - np.sin(1.5)), rtol=1e-3)


@pytest.mark.parametrize("changes", [{"sampler": "ddim", "prediction": "sample"}, {"clip": 1.0}, {"train_steps": 15}])
def test_runge_kutta_is_of_flows_that_clip_nothing(changes):
    valid = {"train_steps": 20, "sampler": "flow", "prediction": "velocity", "clip": None, "sampling_steps": 5}
    DiffusionConfig(**valid, integration="rk4")
    with pytest.raises(BundleError, match=r"integration is 'rk4'; it needs sampler 'flow', clip null, and an"):
        DiffusionConfig(**{**valid, **changes}, integration="rk4")
