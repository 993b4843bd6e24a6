from __future__ import annotations

import pytest
from tiny_scene import tiny_task

from bid_ros.bench.cell import BenchPlan, build_cells, make_cell, scene_seed, varying
from bid_ros.bench.summary import published_score
from bid_ros.core.errors import BidError

TASK = tiny_task()
LISTS = {"decoder": ["vanilla", "ema", "bid"], "horizon": ["1"], "metric": ["l2", "l1"], "ema_weight": [0.3, 0.5]}


def test_an_episode_of_another_length_has_no_published_score():
    cell = make_cell(TASK, decoder="vanilla", horizon=1)
    assert published_score(cell) == ".846" and published_score(cell, steps=400) == ""


def test_a_decoder_is_not_run_twice_for_settings_it_does_not_read():
    cells = build_cells(TASK, {**LISTS, "samples": [16], "variant": ["corrected"], "weak": [True]})
    assert [cell.decoder for cell in cells] == ["vanilla", "ema", "ema", "bid", "bid"]
    assert [cell.label(varying(cells)) for cell in cells] == [
        "vanilla",
        "ema, lambda 0.3",
        "ema, lambda 0.5",
        "bid, metric l2",
        "bid, metric l1",
    ]


def test_what_reads_only_samples_is_one_cell_for_all_else():
    lists = {"decoder": ["keystone"], "horizon": ["1"], "samples": [4], "weak": [True]}
    cells = build_cells(TASK, lists | {"variant": ["paper", "corrected"], "terms": ["bid", "backward"], "decay": [0.5]})
    assert [(cell.samples, cell.variant, cell.terms, cell.decay) for cell in cells] == [(4, None, None, None)]


def test_a_newer_setting_tells_from_the_decoder_without_it():
    decoders = ["bid", "bid:agreement=40", "ema:ensemble=0.1", "ema:ema_weight=1", "vanilla"]
    lists = {"decoder": decoders, "horizon": ["1"], "samples": [4], "weak": [True], "variant": ["corrected"]}
    cells = build_cells(TASK, lists)
    labels = ["bid", "bid, agreement 40", "ema, ensemble 0.1", "ema", "vanilla"]
    assert [cell.label(varying(cells)) for cell in cells] == labels


def test_the_mode_size_follows_the_samples_and_one_sample_needs_no_weak_policy():
    make = lambda n: make_cell(TASK, decoder="bid", horizon=1, samples=n, weak=True, variant="corrected")  # noqa: E731
    assert [make(n).mode_size for n in (1, 4, 8, 16)] == [None, 2, 3, 3]
    assert [make(n).needs_weak for n in (1, 4)] == [False, True]
    backward = make_cell(TASK, decoder="bid", horizon=1, samples=8, weak=True, variant="corrected", terms="backward")
    assert not backward.needs_weak and backward.weak is None


def test_the_weak_policy_is_withheld_on_request():
    cell = make_cell(TASK, decoder="bid", horizon=1, samples=8, weak=False, variant="corrected")
    assert cell.weak is False and cell.config().needed_weak_samples == 0 and not cell.needs_weak


@pytest.mark.parametrize(
    ("decoder", "weak", "variant", "terms"),
    [
        ("bid", True, "corrected", "bid"),
        ("bid+delay", True, "corrected", "bid"),
        ("bid:terms=backward", None, "corrected", "backward"),
        ("bid:terms=positive", None, "corrected", "positive"),
        ("bid:terms=negative", True, "corrected", "negative"),
        ("bid:variant=reference_v2", True, "reference_v2", "bid"),
        ("vanilla", None, None, None),
    ],
)
def test_every_decoder_keeps_the_settings_it_reads(decoder, weak, variant, terms):
    cell = make_cell(TASK, decoder=decoder, horizon=1, samples=8, weak=True, variant="corrected", terms="bid", delay=2)
    assert (cell.weak, cell.variant, cell.terms) == (weak, variant, terms)
    assert cell.config().delay == 2


def test_all_is_the_open_loop_and_a_jump_brings_the_cell_without_it():
    cells = build_cells(TASK, {"decoder": ["vanilla"], "horizon": ["all"], "jump": [60.0]})
    assert [(cell.horizon, cell.jump) for cell in cells] == [(15, 0.0), (15, 60.0)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decoder": "best"}, "decoder 'best' is unknown"),
        ({"horizon": 14, "delay": 2}, "at most the 15 executable rows"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"decoder": "bid", "samples": 4, "mode_size": 3, "variant": "corrected"}, "at most 2"),
        ({"decoder": "bid", "samples": 4, "metric": "max", "variant": "corrected"}, "metric is 'max'"),
        ({"samples": 257}, "samples is 257; valid is 1 to 256"),  # vanilla draws one whatever is asked for
        ({"samples": 0}, "samples is 0; valid is 1 to 256"),
        ({"variant": "newest"}, "variant is 'newest'"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(BidError, match=message):
        make_cell(TASK, **{"decoder": "vanilla", "horizon": 1, **settings})


def test_units_hold_what_is_missing_in_equal_parts():
    cell = make_cell(TASK, decoder="vanilla", horizon=1)
    units = BenchPlan(10, (1, 2), 300, batch=4).units([cell], {(cell.key, 1, index) for index in range(5)})
    assert [(unit.seed, sorted(unit.episodes)) for unit in units] == [
        (1, [5, 7, 9]),
        (1, [6, 8]),
        (2, [0, 3, 6, 9]),
        (2, [1, 4, 7]),
        (2, [2, 5, 8]),
    ]


@pytest.mark.parametrize("plan", [{"episodes": 0}, {"seeds": (1, 1)}, {"seeds": (0,)}, {"seeds": ()}, {"batch": 0}])
def test_an_impossible_plan_is_refused(plan):
    with pytest.raises(BidError, match="valid"):
        BenchPlan(**plan)


def test_the_first_seed_has_the_published_starts():
    assert [scene_seed(1, index) for index in range(2)] == [100_000, 100_001]


@pytest.mark.parametrize(
    ("changes", "published"),
    [
        ({}, ".870-.889"),
        ({"variant": "reference_v1"}, ".870-.889"),
        ({"variant": "paper"}, ""),
        ({"metric": "cosine"}, ""),
        ({"terms": "backward"}, ""),
        ({"samples": 8}, ""),
        ({"delay": 2}, ""),
        ({"decoder": "ema"}, ".822"),
        ({"decoder": "ema", "ema_weight": 0.3}, ""),
        ({"decoder": "warmstart"}, ""),
        ({"decoder": "warmstart", "warm_start": "clean"}, ".836"),
        ({"decoder": "warmstart:warm_start=clean"}, ".836"),
    ],
)
def test_published_numbers_stand_beside_what_they_were_measured_of_only(changes, published):
    settings = {"decoder": "bid", "samples": 16, "weak": True, "variant": "corrected", **changes}
    assert published_score(make_cell(TASK, horizon=1, noise=1.0, **settings)) == published
