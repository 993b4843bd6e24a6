"""KeyStone: the medoid of the larger of two clusters."""

import numpy as np
import pytest

from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder
from bid_ros.decoding.keystone import keystone

H, D = 8, 3


def by_hand(samples, weights):
    """Return the chosen sample, and whether the samples were two clusters, by the plain formulas."""
    points = np.array([(sample * weights).ravel() for sample in samples])
    apart = np.sqrt(((points[:, None] - points) ** 2).sum(axis=-1))
    two = [apart[one, other] for one in range(len(points)) for other in range(one)]

    def medoid(members):
        return min(members, key=lambda one: sum(apart[one, other] for other in members))

    everyone = list(range(len(points)))
    centre = medoid(everyone)
    if np.linalg.norm(points.mean(axis=0) - points[centre]) <= 0.3 * np.median(two):
        return centre, False
    second = next(number for number in everyone if (points[number] != points[0]).any())
    centres = [points[0], points[second]]
    for _ in range(10):
        owner = [int(np.linalg.norm(point - centres[1]) < np.linalg.norm(point - centres[0])) for point in points]
        clusters = [[number for number in everyone if owner[number] == cluster] for cluster in (0, 1)]
        centres = [points[members].mean(axis=0) for members in clusters]
    return medoid(max(clusters, key=len)), True


def draw(random):
    """Samples around one to three places, some of them drawn again, in any unit; and weights."""
    places = random.normal(0.0, 3.0, (random.integers(1, 4), 1, D)) + random.normal(0.0, 20.0, D)
    count = random.integers(3, 13)
    samples = random.choice(places, count) + random.normal(0.0, random.uniform(0.1, 3.0), (count, 2, D))
    samples[1 : random.integers(1, 3)] = samples[0]
    weights = random.choice([0.1, 1.0, 4.0], D)
    return samples * 10.0 ** random.uniform(-3, 3), weights


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


@pytest.mark.filterwarnings("error")
def test_it_chooses_as_the_plain_formulas_do():
    random, found = np.random.default_rng(6), []
    for number in range(200):
        samples, weights = draw(random)
        weighted = number % 2 == 0
        wanted, two = by_hand(samples, weights if weighted else 1.0)
        chosen = keystone(samples, DecoderConfig(weights=tuple(weights) if weighted else None))
        np.testing.assert_array_equal(samples[chosen], samples[wanted], f"draw {number}")
        found.append(two)
    assert 20 < sum(found) < 180, "one cluster, and two, each in many draws"


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
