"""Each camera frame is encoded once, and remembering changes no result."""

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.policy.graph_policy import LEAST_KEPT, MOST_KEPT, FrameEncoder, frames_in_use


class Means:
    """A graph: the mean of each image."""

    def run(self, feeds):
        assert all(value.shape == (1, 4, 4, 3) for value in feeds.values())
        return np.array([[value.mean() for value in feeds.values()]], dtype=np.float32)


@pytest.fixture
def frames():
    return np.random.default_rng(0).integers(0, 256, (6, 2, 4, 4, 3), dtype=np.uint8)


def observation(frames, *rows):
    return {name: frames[list(rows), camera] for camera, name in enumerate(("front", "wrist"))}


def encoder():
    return FrameEncoder(Means(), ["front", "wrist"])


def test_the_points_are_those_of_every_frame(frames):
    points = encoder().points(observation(frames, 3, 4, 5))
    np.testing.assert_allclose(points, frames[3:].mean(axis=(2, 3, 4)), rtol=1e-6)


def test_consecutive_observations_encode_only_what_is_new(frames):
    one, fresh = encoder(), encoder()
    for index, runs in ((1, 2), (2, 3), (3, 4), (3, 4), (5, 6)):
        values = observation(frames, index - 1, index)
        np.testing.assert_array_equal(one.points(values), fresh.points(values))
        assert one.runs == runs
        fresh = encoder()


@pytest.mark.parametrize("a_step", [1, 4, 6, 10])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_history_is_encoded_once_however_many_decisions_a_step_has(task, steps, a_step):
    task = replace(task, observation_steps=steps)
    many = np.random.default_rng(0).integers(0, 256, (120, 2, 4, 4, 3), dtype=np.uint8)
    one, before, runs = FrameEncoder(Means(), ["front", "wrist"], frames_in_use(task)), (steps - 1) * a_step, {}
    for newest in range(before, len(many)):
        values = observation(many, *range(newest - before, newest + 1, a_step))
        np.testing.assert_array_equal(one.points(values), encoder().points(values))
        runs[newest] = one.runs
    # In its first steps each decision has a history that no decision before it saw.
    assert runs[119] - runs[79] == 40, "each decision encodes its newest frame alone"


def test_what_is_remembered_is_bounded(task):
    assert frames_in_use(replace(task, observation_steps=1, rate_hz=50)) == LEAST_KEPT
    assert frames_in_use(replace(task, observation_steps=4, rate_hz=1)) == MOST_KEPT
    one = FrameEncoder(Means(), ["front", "wrist"], LEAST_KEPT)
    many = np.random.default_rng(0).integers(0, 256, (20, 2, 4, 4, 3), dtype=np.uint8)
    for row in (*range(20), *range(12, 20)):
        one.points(observation(many, row))
    assert one.runs == 20, "the last eight are remembered"
    one.points(observation(many, 11))
    assert one.runs == 21, "the one before is not"


def test_a_repeated_frame_is_encoded_once(frames):
    one = encoder()
    assert one.points(observation(frames, 0, 0)).shape == (2, 2) and one.runs == 1


def test_a_frame_that_differs_in_one_camera_by_one_value_is_encoded_anew(frames):
    one = encoder()
    before = one.points(observation(frames, 0, 1))
    changed = frames.copy()
    changed[1, 1, 2, 2, 0] ^= 1
    after = one.points(observation(changed, 0, 1))
    assert one.runs == 3 and after[1, 1] != before[1, 1] and after[1, 0] == before[1, 0]


def test_images_that_are_written_into_later_are_not_mistaken_for_those_before(frames):
    one, values = encoder(), observation(frames, 0, 1)
    one.points(values)
    values["front"][1] = 7
    np.testing.assert_allclose(one.points(values)[1, 0], 7.0)
