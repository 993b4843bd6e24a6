import numpy as np
import pytest

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.policy.diffusion.sampler import DiffusionConfig, Sampler, cumulative_alphas, sampling_timesteps

SHAPE = (5, 4, 3)


def gaussian(shape=SHAPE, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_schedule_matches_its_definition():
    alphas = cumulative_alphas(100)
    level = lambda t: np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2  # noqa: E731
    # Uncapped, the product telescopes to the cosine itself; only the last beta is capped.
    np.testing.assert_allclose(alphas[:-1], [level((t + 1) / 100) / level(0) for t in range(99)], rtol=1e-9)
    np.testing.assert_allclose(alphas[-1], alphas[-2] * 0.001, rtol=1e-9)


@pytest.mark.parametrize(
    ("total", "count", "spacing", "expected"),
    [
        (100, 4, "trailing", [99, 74, 49, 24]),
        (100, 8, "trailing", [99, 87, 74, 61, 49, 37, 24, 11]),
        (100, 4, "leading", [75, 50, 25, 0]),
        (100, 8, "leading", [84, 72, 60, 48, 36, 24, 12, 0]),
        (3, 3, "trailing", [2, 1, 0]),
        (3, 1, "trailing", [2]),
    ],
)
def test_timesteps(total, count, spacing, expected):
    config = DiffusionConfig(train_steps=total, sampling_steps=count, spacing=spacing)
    assert sampling_timesteps(config) == pytest.approx(expected, abs=1 if (total, count) == (100, 8) else 0)
    assert len(set(sampling_timesteps(config))) == count


@pytest.mark.parametrize("spacing", ["trailing", "leading"])
@pytest.mark.parametrize("prediction", ["sample", "epsilon"])
def test_equals_equation_12_written_out(prediction, spacing):
    config = DiffusionConfig(prediction=prediction, spacing=spacing)
    target = np.tanh(gaussian(SHAPE[1:], 7))

    def network(sample, step):
        return (0.3 * sample + 0.4 * target - step[0] / 500).astype(np.float32)

    x = gaussian().astype(np.float64)
    alphas, visited = cumulative_alphas(100), sampling_timesteps(config)
    for index, t in enumerate(visited):
        alpha = alphas[t]
        after = alphas[visited[index + 1]] if index + 1 < len(visited) else 1.0
        output = network(x, [t]).astype(np.float64)
        clean = output if prediction == "sample" else (x - np.sqrt(1 - alpha) * output) / np.sqrt(alpha)
        clean = np.clip(clean, -1, 1)
        noise = (x - np.sqrt(alpha) * clean) / np.sqrt(1 - alpha)
        x = np.sqrt(after) * clean + np.sqrt(1 - after) * noise
    result = Sampler(config).run(network, gaussian()[None])
    assert result.dtype == np.float32
    # The first epsilon step divides by a signal of 5e-5, so rounding of float32 is enlarged before it is clipped.
    np.testing.assert_allclose(result, x, atol=2e-3 if prediction == "epsilon" else 2e-6)


def test_a_network_that_knows_the_answer_is_believed():
    answer = np.clip(gaussian(SHAPE[1:], 3), -0.9, 0.9)
    result = Sampler(DiffusionConfig()).run(lambda x, _: np.broadcast_to(answer, x.shape), gaussian()[None])
    np.testing.assert_allclose(result, np.broadcast_to(answer, SHAPE), atol=1e-6)


def test_samples_follow_the_distribution_of_an_exact_denoiser():
    # For data N(mean, spread^2) the best prediction of the clean value is known; DDIM must carry noise to that data.
    mean, spread = 0.2, 0.1
    alphas = cumulative_alphas(1000)

    def network(x, step):
        alpha = alphas[step[0]]
        gain = np.sqrt(alpha) * spread**2 / (alpha * spread**2 + 1 - alpha)
        return (mean + gain * (x - np.sqrt(alpha) * mean)).astype(np.float32)

    result = Sampler(DiffusionConfig(train_steps=1000, sampling_steps=1000)).run(network, gaussian((1, 10_000, 1, 1)))
    assert result.mean() == pytest.approx(mean, abs=0.005)
    assert result.std() == pytest.approx(spread, rel=0.05)


def test_results_are_clipped():
    result = Sampler(DiffusionConfig(clip=0.5)).run(lambda x, _: np.full_like(x, 3), gaussian()[None])
    np.testing.assert_array_equal(result, np.full(SHAPE, 0.5, np.float32))


def test_the_noise_and_the_networks_output_are_left_alone():
    noise, output = gaussian(), gaussian(seed=1) * 5
    kept = noise.copy(), output.copy()
    Sampler(DiffusionConfig()).run(lambda x, _: output, noise[None])
    np.testing.assert_array_equal(noise, kept[0])
    np.testing.assert_array_equal(output, kept[1])


def record(config, **start):
    seen = []

    def network(x, step):
        seen.append((int(step[0]), x.copy()))
        return x * np.float32(0.5)

    result = Sampler(config).run(network, gaussian()[None], **start)
    return seen, result


def test_clean_start_takes_the_trajectory_for_a_sample_at_full_noise():
    start = gaussian(SHAPE[1:], 5)
    seen, result = record(DiffusionConfig(), start=start, start_mode="clean")
    assert [step for step, _ in seen] == sampling_timesteps(DiffusionConfig())
    np.testing.assert_array_equal(seen[0][1], np.broadcast_to(start, SHAPE))
    np.testing.assert_array_equal(result[0], result[-1])


def test_renoised_start_is_the_trajectory_diffused_to_the_middle():
    start = gaussian(SHAPE[1:], 5)
    seen, result = record(DiffusionConfig(), start=start, start_mode="renoise")
    steps = sampling_timesteps(DiffusionConfig())[4:]
    assert [step for step, _ in seen] == steps
    alpha = cumulative_alphas(100)[steps[0]]
    np.testing.assert_allclose(seen[0][1], np.sqrt(alpha) * start + np.sqrt(1 - alpha) * gaussian(), atol=1e-6)
    assert np.abs(result[0] - result[1]).max() > 1e-3


def test_renoise_strength_says_how_many_steps():
    start = gaussian(SHAPE[1:])
    for strength, steps in ((1.0, 8), (0.25, 2), (0.01, 1)):
        seen, _ = record(DiffusionConfig(renoise_strength=strength), start=start, start_mode="renoise")
        assert len(seen) == steps


CONSISTENCY = DiffusionConfig(sampler="consistency", sampling_steps=3)


def record_consistency(noise, **start):
    seen = []

    def network(x, step):
        seen.append((int(step[0]), x.copy()))
        return np.tanh(x)

    return seen, Sampler(CONSISTENCY).run(network, noise, **start)


def test_consistency_sampling_follows_algorithm_1_of_its_paper():
    noise = gaussian((3, *SHAPE))
    assert Sampler(CONSISTENCY).noises == 3 and Sampler(DiffusionConfig()).noises == 1
    kept, (seen, result) = noise.copy(), record_consistency(noise)
    np.testing.assert_array_equal(noise, kept)
    visited = sampling_timesteps(CONSISTENCY)
    x = noise[0].astype(np.float64)
    for index, (step, sample) in enumerate(seen):
        assert step == visited[index]
        np.testing.assert_allclose(sample, x, atol=1e-5)
        clean = np.clip(np.tanh(x), -1, 1)
        if index < 2:
            alpha = cumulative_alphas(100)[visited[index + 1]]
            x = np.sqrt(alpha) * clean + np.sqrt(1 - alpha) * noise[index + 1]
    np.testing.assert_allclose(result, clean, atol=1e-5)


def test_consistency_sampling_is_random_after_its_first_step_too():
    noise = gaussian((3, *SHAPE))
    noise[0] = noise[0, :1]
    _, result = record_consistency(noise)
    assert np.abs(result[0] - result[1]).max() > 1e-2


def test_consistency_sampling_starts_warm_as_ddim_does():
    start, noise = gaussian(SHAPE[1:], 5), gaussian((3, *SHAPE))
    seen, _ = record_consistency(noise, start=start, start_mode="renoise")
    steps = sampling_timesteps(CONSISTENCY)[1:]
    alpha = cumulative_alphas(100)[steps[0]]
    assert [step for step, _ in seen] == steps
    np.testing.assert_allclose(seen[0][1], np.sqrt(alpha) * start + np.sqrt(1 - alpha) * noise[0], atol=1e-6)


@pytest.mark.parametrize("start", [None, np.zeros((3, 3), np.float32)])
def test_a_warm_start_needs_a_trajectory(start):
    with pytest.raises(DecodingError, match=r"valid is \(4, 3\)"):
        record(DiffusionConfig(), start=start, start_mode="clean")
    with pytest.raises(DecodingError, match="start mode is 'warm'"):
        record(DiffusionConfig(), start_mode="warm")


@pytest.mark.parametrize(
    "values",
    [
        {"prediction": "v"},
        {"sampler": "euler"},
        {"kept_noise": "none"},
        {"beta_end": 1.5},
        {"beta_schedule": "sigmoid"},
        {"spacing": "linspace"},
        {"train_steps": 0},
        {"sampling_steps": 101},
        {"sampling_steps": 8.0},
        {"sampling_steps": True},
        {"clip": 0},
        {"clip": float("nan")},
        {"renoise_strength": 0},
        {"renoise_strength": 1.5},
    ],
)
def test_impossible_configurations_are_refused(values):
    (name,) = values
    with pytest.raises(BundleError, match=f"{name} is .*; valid"):
        DiffusionConfig(**values)
