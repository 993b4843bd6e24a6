"""Names that pin one setting of BID are BID with that setting, and leave the others alone."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder
from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.pinned import pinned

DT = 100_000_000
OTHER = {"samples": 8, "decay": 0.7, "metric": "l1", "action_horizon": 2, "weights": (1.0, 2.0, 0.5)}
PINNED = [
    ("bid-backward", {"terms": "backward"}),
    ("bid-positive", {"terms": "positive"}),
    ("bid-negative", {"terms": "negative"}),
    ("bid-contrast", {"terms": "contrast"}),
    ("bid-paper", {"variant": "paper"}),
    ("bid-paper-nearest", {"variant": "paper", "trim": "nearest"}),
    ("bid-reference-v1", {"variant": "reference_v1"}),
    ("bid-reference-v2", {"variant": "reference_v2"}),
    ("bid-corrected", {"variant": "corrected"}),
]


def totals(name: str, config: DecoderConfig, seed: int) -> np.ndarray:
    """What two decisions in a row minimise, and how many weak samples they ask for."""
    return totals_of(build_decoder(name, config), seed)


def totals_of(decoder: Decoder, seed: int) -> np.ndarray:
    rng, values = np.random.default_rng(seed), []
    for step in (0, 2):
        request = DecodeRequest(step * DT, DT, 2, 16, 3)
        proposal = decoder.propose(request)
        strong, weak = rng.normal(size=(2, proposal.strong, 16, 3))
        choice = decoder.choose(request, strong, weak if proposal.weak else None)
        values.append([proposal.weak, choice.index, *choice.selection.total])
    return np.array(values)


@pytest.mark.parametrize(("name", "settings"), PINNED)
def test_a_name_is_bid_with_that_setting(name, settings):
    wanted = totals("bid", DecoderConfig(**OTHER, **settings), 3)
    np.testing.assert_array_equal(totals(name, DecoderConfig(**OTHER), 3), wanted)


def test_every_name_decides_on_something_else():
    seen = {totals(name, DecoderConfig(**OTHER), 3).tobytes() for name, _ in PINNED}
    assert len(seen) == len(PINNED)


def test_a_pinned_name_overrides_the_settings():
    config = DecoderConfig(**OTHER, variant="paper", trim="nearest", terms="backward")
    wanted = DecoderConfig(**OTHER, variant="reference_v1", terms="backward")
    np.testing.assert_array_equal(totals("bid-reference-v1", config, 3), totals("bid", wanted, 3))


@pytest.mark.parametrize(
    "settings",
    [{"terms": "backward"}, {"variant": "paper", "trim": "nearest"}, {"metric": "cosine", "mode_size": 2}],
)
def test_a_name_of_one_s_own_may_pin_any_setting(settings):
    decoder = pinned(**settings)("mine", DecoderConfig(**OTHER))
    assert decoder.name == "mine"
    np.testing.assert_array_equal(totals_of(decoder, 3), totals("bid", DecoderConfig(**(OTHER | settings)), 3))
