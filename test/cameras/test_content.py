import numpy as np
import pytest

from bid_ros.cameras.content import EQUAL, EQUAL_S, RATED, FrameWatch

MS = 1_000_000
SIZES = [(96, 96), (480, 640), (24, 31)]


def noisy(level: float, sigma: float = 2.0, size=(96, 96), seed: int = 0) -> np.ndarray:
    """An image of one level with the noise of a sensor, cut off as a sensor does."""
    noise = np.random.default_rng(seed).normal(level, sigma, (*size, 3))
    return np.clip(np.round(noise), 0, 255).astype(np.uint8)


def scene(size=(96, 96), seed: int = 0) -> np.ndarray:
    """A dim scene: a table with some things on it."""
    image = noisy(60, size=size, seed=seed)
    image[: size[0] // 3, : size[1] // 3] += 25
    return image


def watch(sensor: bool = True, rate_hz: float = 10.0) -> FrameWatch:
    return FrameWatch("wrist", sensor, rate_hz)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("level", "word"), [(3, "black"), (0, "black"), (255, "white"), (128, "of one colour")])
def test_a_covered_a_blinded_and_an_empty_picture_are_of_no_use(size, level, word):
    image = noisy(level, sigma=1.0, size=size)
    image[0, 0] = 255  # a broken pixel
    assert word in watch().look(image, 0)


@pytest.mark.parametrize("size", SIZES)
def test_a_dim_scene_is_of_use(size):
    assert not watch().look(scene(size), 0)


def test_equal_images_of_a_sensor_are_frozen_though_their_stamps_go_on():
    seen, image = watch(), scene()
    found = [seen.look(image, step * 100 * MS) for step in range(6)]
    assert found.index(next(filter(None, found))) == 3, "three equal images after the first, and a quarter of a second"
    assert found[-1].startswith("camera 'wrist' is frozen: 6 equal images in 0.5 s")
    assert not seen.look(scene(seed=1), 600 * MS)


def test_a_driver_that_repeats_an_image_at_a_high_rate_is_not_frozen():
    seen, image = watch(), scene()
    steps = round(EQUAL_S * 1000 / 5)
    assert steps > EQUAL
    assert not any(seen.look(image, step * 5 * MS) for step in range(steps))


def test_the_noise_of_a_scene_that_stands_still_is_enough():
    seen = watch()
    assert not any(seen.look(scene(seed=step), step * 100 * MS) for step in range(20))


def test_what_is_rendered_may_stand_still():
    seen, image = watch(sensor=False), scene()
    assert not any(seen.look(image, step * 100 * MS) for step in range(20))


def test_a_rate_that_is_too_low_is_named_with_what_the_task_wants():
    seen = watch()
    for step in range(RATED):
        assert not seen.rate_problem()
        seen.look(scene(seed=step), step * 250 * MS)
    assert seen.rate_problem() == (
        "camera 'wrist' delivers 4.0 images a second; valid is 6.7 or more, for the 10 that are wanted"
    )


def test_a_rate_with_the_jitter_of_a_busy_computer_is_valid():
    seen = watch()
    for step, late_ms in enumerate([0, 60, 0, 70, 10, 80]):
        seen.look(scene(seed=step), (step * 100 + late_ms) * MS)
    assert not seen.rate_problem()


def test_a_camera_that_measures_no_distance_is_of_no_use():
    image = np.zeros((96, 96, 1), np.uint16)
    image[0, 0] = 900
    assert watch().look(image, 0) == "camera 'wrist' measures no distance: look what covers it"
    image[40:60] = 900
    assert not watch().look(image, 0)
