"""`select` against the published code's decisions, the worked table and a naive loop that shares no code with it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from bid_ros.decoding import METRICS, TERMS, VARIANTS, BidConfig, DecodingError, select

GOLDEN = np.load(Path(__file__).parents[1] / "data" / "reference_visible.npz")


# --- The published code's own decisions -------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["reference_v1", "reference_v2"])
@pytest.mark.parametrize(("terms", "column"), [("bid", "bid"), ("positive", "bid_positive_only")])
def test_every_golden_case_is_reproduced(variant, terms, column):
    chosen, wanted = [], []
    for case in range(int(GOLDEN["n"])):
        prior = GOLDEN[f"{case}/prior"]
        config = BidConfig(
            variant=variant,
            mode_size=int(GOLDEN[f"{case}/n_mode"]),
            decay=float(GOLDEN[f"{case}/beta"]),
            executed=int(GOLDEN[f"{case}/executed"]),
            observation_steps=2,
            terms=terms,
        )
        previous = prior if prior.size else None
        chosen.append(select(GOLDEN[f"{case}/strong"], GOLDEN[f"{case}/weak"], previous, config).index)
        wanted.append(int(GOLDEN[f"{case}/{variant}/{column}"]))
    assert len(wanted) == 60
    assert chosen == wanted


# --- The worked example of the method's description -------------------------------------------------------------------


def worked_example():
    n, t, d = np.meshgrid(np.arange(15), np.arange(16), np.arange(2), indexing="ij")
    strong = np.sin(0.37 * (n + 1) + 0.21 * t + 1.3 * d) + 0.05 * n
    weak = np.cos(0.53 * (n + 1) - 0.17 * t + 0.7 * d) - 0.03 * n
    plan = 0.5 * np.sin(0.21 * t[0] + 1.3 * d[0] + 0.4)
    return strong, weak, plan


@pytest.mark.parametrize(
    ("executed", "with_previous", "wanted"),
    [
        # variant: (with weak policy, without)
        (1, False, {"reference_v1": (6, 4), "reference_v2": (6, 4), "corrected": (3, 4), "paper": (13, 7)}),
        (8, False, {"reference_v1": (6, 4), "reference_v2": (6, 4), "corrected": (3, 4), "paper": (13, 7)}),
        (1, True, {"reference_v1": (0, 1), "reference_v2": (0, 0), "corrected": (0, 0), "paper": (0, 1)}),
        (8, True, {"reference_v1": (7, 6), "reference_v2": (7, 6), "corrected": (6, 6), "paper": (7, 7)}),
    ],
)
def test_worked_table(executed, with_previous, wanted):
    strong, weak, plan = worked_example()
    previous = plan[executed:] if with_previous else None
    for variant, (with_weak, without) in wanted.items():
        config = BidConfig(variant=variant, executed=executed, observation_steps=2)
        assert select(strong, weak, previous, config).index == with_weak, variant
        assert select(strong, None, previous, config).index == without, variant


# --- A naive loop -----------------------------------------------------------------------------------------------------


def naive_distance(x, y, metric, weights):
    x, y = [w * a for w, a in zip(weights, x, strict=True)], [w * b for w, b in zip(weights, y, strict=True)]
    if metric == "l1":
        return sum(abs(a - b) for a, b in zip(x, y, strict=True))
    if metric == "l2":
        return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))
    lengths = math.sqrt(sum(a * a for a in x)), math.sqrt(sum(b * b for b in y))
    if 0.0 in lengths:
        return 1.0
    return 1.0 - sum(a * b for a, b in zip(x, y, strict=True)) / (lengths[0] * lengths[1])


def naive_between(x, y, config, weights):
    return sum(naive_distance(x[i], y[i], config.metric, weights) for i in range(len(x)))


def naive_backward(x, previous, config, weights):
    first = config.observation_steps - 1 if config.variant in ("reference_v2", "corrected") else 0
    rows = range(first, len(previous))
    decays = [config.decay ** (i - first) for i in rows]
    scale = 1.0 if config.variant == "paper" else sum(decays)
    distances = [naive_distance(x[i], previous[i], config.metric, weights) for i in rows]
    return sum(w * d for w, d in zip(decays, distances, strict=True)) / scale


def naive_select(strong, weak, previous, config):
    """Return (index, totals with NaN where trimmed)."""
    weights = config.weights or [1.0] * strong.shape[2]
    samples, steps = strong.shape[:2]
    if config.terms == "contrast":
        previous = None
    positive = config.terms in ("bid", "positive", "contrast")
    negative = config.terms in ("bid", "negative", "contrast") and weak is not None
    backward, weak_backward = [0.0] * samples, [0.0] * samples
    if previous is not None:
        backward = [naive_backward(x, previous, config, weights) for x in strong]
        weak_backward = [naive_backward(x, previous, config, weights) for x in weak] if negative else []
    ranked = sorted(range(samples), key=lambda n: backward[n])
    weak_ranked = sorted(range(samples), key=lambda n: weak_backward[n]) if negative else []
    totals = [math.nan] * samples
    if config.variant == "paper":
        size = config.mode_size if previous is not None else samples
        for x in range(samples):
            if config.trim == "nearest":
                plus = sorted(naive_between(strong[x], strong[p], config, weights) for p in range(samples) if p != x)
                minus = sorted(naive_between(strong[x], q, config, weights) for q in weak) if negative else []
            else:
                plus = [naive_between(strong[x], strong[p], config, weights) for p in ranked[:size] if p != x]
                minus = [naive_between(strong[x], weak[q], config, weights) for q in weak_ranked[:size]]
            forward = (sum(plus[:size]) if positive else 0.0) - (sum(minus[:size]) if negative else 0.0)
            totals[x] = backward[x] + forward / samples
        return int(np.argmin(totals)), np.array(totals)
    size = samples // config.mode_size if previous is not None else samples
    kept, weak_kept = ranked[:size], weak_ranked[:size]
    for rank, x in enumerate(kept):
        plus = sorted(naive_between(strong[x], strong[p], config, weights) / steps for p in kept)[1:]
        if not negative:
            minus = [0.0] * size
        elif config.variant == "corrected":
            minus = sorted(naive_between(strong[x], weak[q], config, weights) / steps for q in weak_kept)
        else:
            minus = sorted(naive_between(weak[weak_kept[rank]], strong[p], config, weights) / steps for p in kept)
        forward = (sum(plus[: size // 2]) if positive else 0.0) - sum(minus[: size // 2])
        forward /= size // 2
        if config.terms == "backward":
            totals[x] = backward[x]
        elif config.variant == "reference_v1":
            totals[x] = backward[x] + forward
        else:
            reach = (steps * config.decay) ** 2
            ratio = reach / (reach + config.executed**2) if previous is not None else 0.0
            totals[x] = ratio * backward[x] + (1 - ratio) * forward
    return min(kept, key=lambda n: totals[n]), np.array(totals)


def random_case(rng, samples=9, steps=6, values=3, executed=2):
    strong, weak = rng.normal(size=(2, samples, steps, values))
    strong[1, 2] = 0.0  # a zero action, whose cosine distance is 1 even to itself
    weak[2, 3] = 0.0
    return strong, weak, rng.normal(size=(steps - executed, values))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("metric", METRICS)
def test_equals_the_naive_loop(variant, metric):
    rng = np.random.default_rng(VARIANTS.index(variant) * 10 + METRICS.index(metric))
    trims = ("previous", "nearest") if variant == "paper" else ("previous",)
    for terms, trim, weighted, has_weak, has_previous in itertools.product(
        TERMS, trims, (False, True), (False, True), (False, True)
    ):
        strong, weak, previous = random_case(rng)
        weights = tuple(rng.uniform(0, 5, 3)) if weighted else None
        config = BidConfig(variant, 0.7, metric, trim, weights, terms, mode_size=3, executed=2, observation_steps=2)
        given = weak if has_weak else None, previous if has_previous else None
        index, totals = naive_select(strong, *given, config)
        selection = select(strong, *given, config)
        np.testing.assert_allclose(selection.total, totals, atol=1e-12, err_msg=str(config))
        assert selection.index == index, config
        np.testing.assert_array_equal(selection.kept, ~np.isnan(totals))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("copies", [1, 8])
def test_many_samples_take_the_same_decision_as_the_plain_formula(metric, copies):
    """Large N goes through matrix products; here also with samples that are copies, as of a deterministic policy."""
    rng = np.random.default_rng(5)
    strong, weak = (np.repeat(half, copies, axis=0) for half in rng.normal(size=(2, 64 // copies, 16, 10)) + 100.0)
    previous = rng.normal(size=(15, 10)) + 100.0
    for given in (previous, None):
        config = BidConfig(mode_size=1, metric=metric, observation_steps=2)
        difference = strong[:, None] - strong[None]
        pairs = {"l2": np.sqrt((difference**2).sum(-1)).sum(-1), "l1": np.abs(difference).sum((-1, -2))}
        if metric == "cosine":
            unit, other = (c / np.linalg.norm(c, axis=-1, keepdims=True) for c in (strong, weak))
            plus, minus = 16 - np.einsum("ahd,bhd->ab", unit, unit), 16 - np.einsum("ahd,bhd->ab", unit, other)
        else:
            across = strong[:, None] - weak[None]
            plus = pairs[metric]
            minus = np.sqrt((across**2).sum(-1)).sum(-1) if metric == "l2" else np.abs(across).sum((-1, -2))
        near = [np.sort(plus, axis=1)[:, 1:33], np.sort(minus, axis=1)[:, :32]]
        wanted = (near[0].mean(axis=1) - near[1].mean(axis=1)) / 16
        got = select(strong, weak, given, config)
        forward = got.forward
        np.testing.assert_allclose(forward, wanted, atol=1e-10)


def test_feature_weights_scale_the_columns():
    rng = np.random.default_rng(11)
    strong, weak, previous = random_case(rng)
    weights = (2.0, 0.0, 30.0)
    plain = BidConfig(executed=2, observation_steps=2)
    scaled = select(strong * weights, weak * weights, previous * weights, plain)
    weighted = select(strong, weak, previous, BidConfig(executed=2, observation_steps=2, weights=weights))
    np.testing.assert_allclose(weighted.total, scaled.total)
    assert weighted.index == scaled.index
    assert not np.allclose(weighted.backward, select(strong, weak, previous, plain).backward)


# --- Meaning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_backward_alone_takes_the_most_coherent_sample(variant):
    rng = np.random.default_rng(1)
    strong = rng.normal(size=(12, 16, 4))
    selection = select(strong, strong[::-1], strong[7, 3:], BidConfig(variant, executed=3, terms="backward"))
    # The previous decision, shifted, is compared row by row: sample 7 itself is not its own continuation.
    wanted = np.argmin(selection.backward)
    assert selection.index == wanted
    strong[5, :13] = strong[7, 3:]
    assert select(strong, None, strong[7, 3:], BidConfig(variant, executed=3, terms="backward")).index == 5


@pytest.mark.parametrize("variant", VARIANTS)
def test_trimming_is_reported(variant):
    rng = np.random.default_rng(2)
    strong, weak = rng.normal(size=(2, 16, 16, 4))
    selection = select(strong, weak, rng.normal(size=(15, 4)), BidConfig(variant, observation_steps=2))
    assert selection.kept.sum() == (16 if variant == "paper" else 5)
    assert np.isfinite(selection.backward).all()
    for values in (selection.forward, selection.total):
        np.testing.assert_array_equal(np.isnan(values), ~selection.kept)
    assert selection.index == np.nanargmin(selection.total)


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_previous_nothing_is_trimmed(variant):
    rng = np.random.default_rng(3)
    strong, weak = rng.normal(size=(2, 16, 16, 4))
    selection = select(strong, weak, None, BidConfig(variant))
    assert selection.kept.all()
    assert not selection.backward.any()


def test_a_previous_decision_that_left_no_comparable_row_counts_as_none():
    rng = np.random.default_rng(4)
    strong, weak = rng.normal(size=(2, 8, 16, 4))
    config = BidConfig(executed=15, observation_steps=2)
    past_row = rng.normal(size=(1, 4))  # the instant before the current step: nothing of it can be executed
    np.testing.assert_array_equal(
        select(strong, weak, past_row, config).total, select(strong, weak, None, config).total
    )


def test_a_previous_decision_without_rows_counts_as_none():
    rng = np.random.default_rng(4)
    strong, weak = rng.normal(size=(2, 8, 6, 2))
    config = BidConfig(executed=6)
    wanted = select(strong, weak, None, config)
    np.testing.assert_array_equal(select(strong, weak, np.zeros((0, 2)), config).total, wanted.total)


def test_one_row_of_the_previous_decision_is_compared():
    rng = np.random.default_rng(4)
    strong, previous = rng.normal(size=(8, 6, 2)), rng.normal(size=(1, 2))
    selection = select(strong, None, previous, BidConfig(executed=5))
    np.testing.assert_allclose(selection.backward, np.linalg.norm(strong[:, 0] - previous[0], axis=-1))


@pytest.mark.parametrize("variant", ["reference_v1", "reference_v2", "corrected"])
@pytest.mark.parametrize("seed", range(4))
def test_of_equally_coherent_samples_the_first_are_kept(variant, seed):
    rng = np.random.default_rng(seed)
    strong = rng.normal(size=(200, 3, 1))
    strong[:, :2] = rng.integers(0, 2, (200, 1, 1))  # the overlap: about half of the samples continue it exactly
    selection = select(strong, None, np.zeros((2, 1)), BidConfig(variant))
    coherent = np.flatnonzero(strong[:, 0, 0] == 0)
    assert coherent.size > 66
    np.testing.assert_array_equal(np.flatnonzero(selection.kept), coherent[:66])


@pytest.mark.parametrize("metric", METRICS)
def test_samples_of_single_precision_are_compared_in_double(metric):
    rng = np.random.default_rng(8)
    strong, weak = rng.normal(size=(2, 8, 16, 4)).astype(np.float32)
    previous = rng.normal(size=(15, 4)).astype(np.float32)
    config = BidConfig(metric=metric, observation_steps=2)
    wanted = select(strong.astype(np.float64), weak.astype(np.float64), previous.astype(np.float64), config)
    np.testing.assert_array_equal(select(strong, weak, previous, config).total, wanted.total)


def test_inputs_are_not_changed():
    rng = np.random.default_rng(6)
    arrays = [*rng.normal(size=(2, 8, 16, 4)), rng.normal(size=(15, 4))]
    copies = [array.copy() for array in arrays]
    select(*arrays, BidConfig(weights=(1.0, 2.0, 3.0, 4.0)))
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


# --- Impossible configurations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("previous", [None, np.zeros((3, 2))])
@pytest.mark.parametrize("variant", ["reference_v1", "reference_v2", "corrected"])
def test_fewer_samples_than_two_modes_are_refused(variant, previous):
    strong = np.zeros((5, 4, 2))
    with pytest.raises(DecodingError, match=r"5 samples .* mode size 3; .* a mode size of at most 2$"):
        select(strong, strong, previous, BidConfig(variant))


def test_the_paper_variant_takes_few_samples():
    strong = np.arange(4.0).reshape(1, 2, 2)
    assert select(strong, strong, strong[0, 1:], BidConfig("paper")).index == 0


@pytest.mark.parametrize(
    ("strong", "weak", "previous", "settings", "message"),
    [
        ((8, 6), None, None, {}, r"^strong has shape \(8, 6\); valid is \(N, H, D\), none of them 0$"),
        ((0, 6, 2), None, None, {}, "strong has shape"),
        ((8, 6, 2), (7, 6, 2), None, {}, r"weak has shape \(7, 6, 2\)"),
        ((8, 6, 2), (8, 6, 3), None, {}, "weak has shape"),
        ((8, 6, 2), (8, 6), None, {}, r"^weak has shape \(8, 6\); valid is \(N, H, D\)"),
        ((8, 6, 2), None, (5,), {}, r"^previous has shape \(5,\); valid is \(H - e, D\), none of them 0$"),
        ((8, 6, 2), None, (6, 2), {}, r"previous has shape \(6, 2\); valid is \(5, 2\)"),
        ((8, 6, 2), None, (5, 3), {}, "previous has shape"),
        ((8, 6, 2), None, None, {"observation_steps": 7}, "observation_steps is 7"),
        ((8, 6, 2), None, None, {"weights": (1.0,)}, "1 weights"),
    ],
)
def test_shapes_that_disagree_are_refused(strong, weak, previous, settings, message):
    arrays = [None if shape is None else np.zeros(shape) for shape in (strong, weak, previous)]
    with pytest.raises(DecodingError, match=message):
        select(*arrays, BidConfig(**settings))


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_chunks_that_are_not_finite_are_refused(position, value):
    arrays = [np.zeros((8, 6, 2)), np.zeros((8, 6, 2)), np.zeros((5, 2))]
    arrays[position][..., -1, -1] = value
    name, count = [("strong", 8), ("weak", 8), ("previous", 1)][position]
    with pytest.raises(DecodingError, match=f"^{name} holds {count} values that are not finite$"):
        select(*arrays, BidConfig())


def test_every_row_of_a_chunk_may_be_an_observed_one_but_the_last():
    strong = np.random.default_rng(9).normal(size=(8, 6, 2))
    assert select(strong, None, None, BidConfig(observation_steps=6)).kept.all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variant": "v3"}, "variant is 'v3'; valid is one of paper, reference_v1"),
        ({"metric": "linf"}, "metric is 'linf'"),
        ({"terms": "all"}, "terms is 'all'"),
        ({"trim": "none"}, "trim is 'none'"),
        ({"trim": "nearest"}, "only variant 'paper'"),
        ({"mode_size": 0}, "mode_size is 0"),
        ({"mode_size": 2.5}, "mode_size is 2.5"),
        ({"executed": -1}, "executed is -1"),
        ({"observation_steps": 0}, "observation_steps is 0"),
        ({"decay": 0.0}, "decay is 0.0"),
        ({"decay": float("nan")}, "decay is nan"),
        ({"decay": 1.01}, "decay is 1.01"),
        ({"delay": -1}, "delay is -1; valid is a whole number, 0 or more$"),
        ({"weights": (1.0, -1.0)}, "weights are"),
        ({"weights": (0.0, 0.0)}, "weights are"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(DecodingError, match=message):
        BidConfig(**settings)


def test_a_decay_of_1_counts_every_step_alike():
    strong = np.random.default_rng(10).normal(size=(8, 6, 2))
    selection = select(strong, None, np.zeros((5, 2)), BidConfig(decay=1.0))
    np.testing.assert_allclose(selection.backward, np.linalg.norm(strong[:, :5], axis=-1).mean(axis=1))


def test_weights_are_kept_as_they_were_given():
    given = [1.0, 2.0]
    config = BidConfig(weights=given)
    given[0] = 5.0
    assert config.weights == (1.0, 2.0)
