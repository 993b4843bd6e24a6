"""A decoder with its settings in one text is that decoder with these settings, and former names stay readable."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import DecoderConfig, DecodeRequest, DecodingError, build_decoder, current_decoder, split_decoders
from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.written import BID_SETTINGS, read_decoder, settings_of, write_decoder

DT = 100_000_000
OTHER = {"samples": 8, "action_horizon": 2, "weights": (1.0, 2.0, 0.5)}
FORMER = [
    ("bid-backward", "bid:terms=backward", {"terms": "backward"}),
    ("bid-positive", "bid:terms=positive", {"terms": "positive"}),
    ("bid-negative", "bid:terms=negative", {"terms": "negative"}),
    ("bid-contrast", "bid:terms=contrast", {"terms": "contrast"}),
    ("bid-paper", "bid:variant=paper", {"variant": "paper"}),
    ("bid-paper-nearest", "bid:variant=paper,trim=nearest", {"variant": "paper", "trim": "nearest"}),
    ("bid-reference-v1", "bid:variant=reference_v1", {"variant": "reference_v1"}),
    ("bid-reference-v2", "bid:variant=reference_v2", {"variant": "reference_v2"}),
    ("bid-corrected", "bid:variant=corrected", {"variant": "corrected"}),
]
MORE = [
    ("bid:metric=l1", {"metric": "l1"}),
    ("bid:metric=cosine,mode_size=2", {"metric": "cosine", "mode_size": 2}),
    ("bid:terms=positive,decay=0.7", {"terms": "positive", "decay": 0.7}),
    ("bid+lead:variant=paper,terms=backward", {"variant": "paper", "terms": "backward"}),
]


def totals_of(decoder: Decoder, seed: int = 3) -> np.ndarray:
    """What two decisions in a row minimise, and how many weak samples they ask for."""
    rng, values = np.random.default_rng(seed), []
    for step in (0, 2):
        request = DecodeRequest(step * DT, DT, 2, 16, 3)
        proposal = decoder.propose(request)
        strong, weak = rng.normal(size=(2, proposal.strong, 16, 3))
        choice = decoder.choose(request, strong, weak if proposal.weak else None)
        values.append([proposal.weak, choice.index, *choice.selection.total])
    return np.array(values)


@pytest.mark.parametrize(("text", "settings"), [*(item[1:] for item in FORMER), *MORE])
def test_a_text_is_the_decoder_with_these_settings(text, settings):
    decoder = build_decoder(text, DecoderConfig(**OTHER))
    assert decoder.name == text
    wanted = build_decoder(text.partition(":")[0], DecoderConfig(**OTHER, **settings))
    np.testing.assert_array_equal(totals_of(decoder), totals_of(wanted))


def test_every_setting_decides_on_something_else():
    texts = {totals_of(build_decoder(text, DecoderConfig(**OTHER))).tobytes() for _, text, _ in FORMER}
    assert len(texts) == len(FORMER)


def test_the_text_overrides_the_settings_and_leaves_the_others():
    config = DecoderConfig(**OTHER, variant="paper", terms="backward", decay=0.7)
    wanted = DecoderConfig(**OTHER, variant="reference_v1", terms="backward", decay=0.7)
    found = totals_of(build_decoder("bid:variant=reference_v1", config))
    np.testing.assert_array_equal(found, totals_of(build_decoder("bid", wanted)))


@pytest.mark.parametrize(("name", "text"), [*(item[:2] for item in FORMER), ("receding", "vanilla")])
def test_a_former_name_says_how_it_is_written_now_and_is_read_where_it_was_recorded(name, text):
    with pytest.raises(DecodingError, match=f"^decoder '{name}' is now written '{text}'$"):
        build_decoder(name)
    assert current_decoder(name) == text == current_decoder(text) == build_decoder(current_decoder(name)).name


def test_the_published_warm_start_is_clean_whatever_the_settings_say():
    decoder = build_decoder(current_decoder("warmstart-clean"), DecoderConfig(warm_start="renoise"))
    assert decoder.name == "warmstart:warm_start=clean"
    request = DecodeRequest(0, DT, 2, 16, 3)
    decoder.choose(request, np.zeros((1, 16, 3)), None)
    assert decoder.propose(DecodeRequest(DT, DT, 2, 16, 3)).start_mode == "clean"


def test_the_same_settings_in_another_order_are_the_same_text():
    texts = ("bid:trim=nearest,variant=paper", "bid:variant=paper,trim=nearest")
    assert {build_decoder(text).name for text in texts} == {"bid:variant=paper,trim=nearest"}
    assert write_decoder(*read_decoder("bid:decay=.50,mode_size=2")) == "bid:mode_size=2,decay=0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vanilla:variant=paper", r"'variant=paper' as a setting of vanilla; valid are memory, each once"),
        (
            "bid:speed=2",
            "as a setting of bid; valid are variant, terms, metric, trim, mode_size, decay, agreement, memory, each",
        ),
        ("bid:variant", "'variant' as a setting of bid; valid are variant"),
        ("bid:", "'' as a setting of bid; valid are"),
        ("bid:decay=1,decay=0.5", "'decay=0.5' as a setting of bid; valid are .*, each once"),
        ("bid:decay=much", "decay 'much'; valid is a number"),
        ("bid:mode_size=2.5", "mode_size '2.5'; valid is a whole number"),
        ("bid:variant=paper=1", "variant is 'paper=1'; valid is one of paper"),
        ("bid:decay=0.5:mode_size=2", "decay '0.5:mode_size=2'; valid is a number"),
        ("bid:variant=best", "variant is 'best'; valid is one of paper"),
        ("bid:trim=nearest", "trim 'nearest' is asked of variant 'corrected'"),
        ("bid:mode_size=9", "mode_size is 9; valid with 16 samples is at most 8"),
        ("bird:variant=paper", "decoder 'bird' does not exist; valid are vanilla"),
    ],
)
def test_a_bad_text_is_one_sentence(text, message):
    with pytest.raises(DecodingError, match=message):
        build_decoder(text)


def test_a_list_keeps_the_commas_of_settings():
    found = split_decoders("vanilla, bid:variant=paper,trim=nearest,ema:ema_weight=.3,bid+lead")
    assert found == ("vanilla", "bid:variant=paper,trim=nearest", "ema:ema_weight=.3", "bid+lead")


def test_a_combination_has_the_settings_of_its_parts_and_a_foreign_one_all():
    assert settings_of("bid+ema") == (*BID_SETTINGS, "ema_weight", "ensemble", "memory")
    assert settings_of("lead") == ("memory",) and len(settings_of("bid-medoid")) == 11
