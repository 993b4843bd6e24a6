"""KeyStone: the medoid of the larger of two clusters."""

import numpy as np
import pytest

from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder
from bid_ros.decoding.keystone import keystone

H, D = 8, 3


def cluster(random, count, place, spread=0.1):
    return place + random.normal(0.0, spread, (count, H, D))


@pytest.mark.parametrize("seed", range(5))
def test_the_medoid_of_the_larger_cluster_is_chosen(seed):
    random = np.random.default_rng(seed)
    samples = np.concatenate([cluster(random, 6, 5.0), cluster(random, 10, -5.0)])[random.permutation(16)]
    index = keystone(samples, DecoderConfig())
    larger = np.flatnonzero(samples.mean(axis=(1, 2)) < 0)
    sums = np.linalg.norm((samples[larger, None] - samples[None, larger]).reshape(10, 10, -1), axis=-1).sum(axis=1)
    assert index == larger[sums.argmin()]


def test_one_cluster_gives_its_medoid():
    random = np.random.default_rng(3)
    samples = cluster(random, 15, 0.0)
    samples[7] = samples.mean(axis=0)
    assert keystone(samples, DecoderConfig()) == 7


def test_the_weights_decide_what_is_far():
    random = np.random.default_rng(4)
    samples = cluster(random, 15, 0.0)
    samples[:5, :, 0] += 50.0  # a cluster in a column that does not count
    samples[11, :, 1:] = np.delete(samples, 11, axis=0)[..., 1:].mean(axis=0)
    assert keystone(samples, DecoderConfig(weights=(0.0, 1.0, 1.0))) == 11


def test_samples_that_are_drawn_twice_do_not_hide_the_clusters():
    """A policy of codes draws the same chunk again: here the four of the smaller cluster, among them the first two."""
    places = np.array([0.0, 0.0, 0.0, 0.0, 18.0, 19.0, 20.0, 21.0, 22.0])
    samples = np.zeros((len(places), H, D))
    samples[..., 0] = places[:, None]
    assert keystone(samples, DecoderConfig()) == 6, "the medoid of the larger cluster, not of all"
    assert keystone(np.full((5, H, D), 0.1), DecoderConfig()) == 0


def test_the_decoder_draws_strong_samples_only_and_forgets():
    decoder = build_decoder("keystone", DecoderConfig(samples=9))
    request = DecodeRequest(0, 100_000_000, 2, H, D)
    assert (decoder.propose(request).strong, decoder.propose(request).weak) == (9, 0)
    samples = cluster(np.random.default_rng(5), 9, 1.0)
    first = decoder.choose(request, samples, None)
    again = decoder.choose(DecodeRequest(100_000_000, 100_000_000, 2, H, D), samples, None)
    assert first.index == again.index and first.selection is None
    np.testing.assert_array_equal(first.actions, samples[first.index])


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_samples_for_two_clusters_give_the_first(count):
    assert keystone(np.random.default_rng(0).normal(size=(count, H, D)), DecoderConfig()) == 0
