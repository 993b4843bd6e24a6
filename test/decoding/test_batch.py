"""`select_batch` against `select`, environment by environment; and tensors where arrays are taken."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import (
    METRICS,
    TERMS,
    VARIANTS,
    BidConfig,
    DecoderConfig,
    DecodeRequest,
    DecodingError,
    build_decoder,
    feature_weights,
    select,
    select_batch,
)

torch = pytest.importorskip("torch")  # of the extra train, which not every Python of the suite has
ENVIRONMENTS, SAMPLES, STEPS, VALUES = 5, 12, 9, 3
CRITERIA = ("backward", "forward", "total", "kept")


def samples(seed: int, executed: int = 2):
    """Strong and weak samples and previous decisions of all environments."""
    rng = np.random.default_rng(seed)
    strong, weak = rng.normal(size=(2, ENVIRONMENTS, SAMPLES, STEPS, VALUES))
    return strong, weak, rng.normal(size=(ENVIRONMENTS, STEPS - executed, VALUES))


def assert_equal(batch, strong, weak, previous, config):
    """Hold a batch against what `select` does with each environment's arrays, of which some may be None."""
    for number, own in enumerate(strong):
        wanted = select(own, None if weak is None else weak[number], previous[number], config)
        assert batch.index[number] == wanted.index
        for name in CRITERIA:
            np.testing.assert_allclose(
                getattr(batch, name)[number].numpy(), getattr(wanted, name), rtol=1e-12, atol=1e-12
            )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("terms", TERMS)
def test_every_environment_decides_as_alone(variant, metric, terms):
    config = BidConfig(
        variant=variant, metric=metric, terms=terms, executed=2, observation_steps=2, weights=(1.0, 0.5, 3)
    )
    strong, weak, previous = samples(VARIANTS.index(variant))
    strong[0, :, :, 0] = 0.0  # the cosine of a vector of zeros
    strong[1, 3] = strong[1, 4]
    for others in (weak, None):
        given = (None if array is None else torch.from_numpy(array) for array in (strong, others, previous))
        assert_equal(select_batch(*given, config), strong, others, previous, config)


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "paper", "trim": "nearest"},
        {"delay": 3, "observation_steps": 2},
        {"variant": "paper", "delay": 0},
        {"executed": 8, "observation_steps": 3},  # what is left of the previous decision is of the past
        {"mode_size": 6},
        {"variant": "paper", "mode_size": 20},  # more than there are samples
    ],
)
def test_every_setting_decides_as_alone(settings):
    config = BidConfig(**{"executed": 2, **settings})
    strong, weak, previous = samples(7, config.executed)
    batch = select_batch(*map(torch.from_numpy, (strong, weak, previous)), config)
    assert_equal(batch, strong, weak, previous, config)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_environment_that_was_reset_has_no_previous_decision(variant):
    config = BidConfig(variant=variant, executed=2)
    strong, weak, previous = samples(3)
    continues = torch.tensor([True, False, False, True, True])
    tensors = [torch.from_numpy(array) for array in (strong, weak, previous)]
    own = [array if there else None for array, there in zip(previous, continues, strict=True)]
    assert_equal(select_batch(*tensors, config, continues), strong, weak, own, config)
    for there in (continues | True, continues & False):
        own = [array if there[0] else None for array in previous]
        assert_equal(select_batch(*tensors, config, there), strong, weak, own, config)
    assert_equal(select_batch(*tensors[:2], None, config), strong, weak, [None] * ENVIRONMENTS, config)
    nothing_left = select_batch(*tensors[:2], tensors[2][:, :0], BidConfig(variant=variant, executed=9))
    assert torch.equal(nothing_left.index, select_batch(*tensors[:2], None, config).index)


def test_many_samples_decide_as_alone():
    """Here `select` computes distances as products of matrices."""
    strong = np.random.default_rng(0).normal(size=(2, 64, 16, 4))
    config = BidConfig()
    batch = select_batch(torch.from_numpy(strong), None, None, config)
    assert_equal(batch, strong, None, [None, None], config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strong": np.zeros((2, 6, 4, 1))}, "strong is of type ndarray; valid is a tensor of torch"),
        ({"strong": torch.zeros(6, 4, 1)}, "strong has shape (6, 4, 1); valid is (E, N, H, D), none of them 0"),
        ({"strong": torch.full((2, 6, 4, 1), torch.nan)}, "strong holds 48 values that are not finite"),
        ({"weak": torch.zeros(2, 5, 4, 1)}, "weak has shape (5, 4, 1); valid is that of strong, (6, 4, 1)"),
        ({"weak": torch.zeros(3, 6, 4, 1)}, "weak has 3 environments; valid is 2"),
        ({"previous": torch.zeros(2, 4, 1)}, "previous has shape (4, 1); valid is (3, 1): 4 rows less 1 executed"),
        ({"previous": torch.zeros(2, 3, 1), "continues": torch.ones(1)}, "continues has 1 environments"),
        ({"config": BidConfig(mode_size=4)}, "6 samples are fewer than twice the mode size 4"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(changes, message):
    given = {"strong": torch.zeros(2, 6, 4, 1), "weak": None, "previous": None, **changes}
    with pytest.raises(DecodingError) as error:
        select_batch(**given)
    assert message in str(error.value)


def test_tensors_decide_as_arrays_do():
    strong, weak, previous = (array[0].astype(np.float32) for array in samples(1))
    wanted = select(strong, weak, previous, BidConfig(executed=2))
    tensors = [torch.from_numpy(array) for array in (strong, weak, previous)]
    assert select(*tensors, BidConfig(executed=2)).index == wanted.index
    drawn = [torch.nn.Parameter(chunk) for chunk in tensors[0]]  # one at a time, with gradients
    np.testing.assert_array_equal(select(drawn, *tensors[1:], BidConfig(executed=2)).total, wanted.total)
    assert select(tensors[0].bfloat16(), None, None).backward.shape == (SAMPLES,)
    assert feature_weights(torch.tensor([0.5, 2.0])) == (2.0, 0.5)


@pytest.mark.parametrize("name", ["bid", "bid+ema", "bid+lead", "vanilla"])
def test_a_decoder_takes_tensors(name):
    strong, weak, _ = samples(2)
    decoders = [build_decoder(name, DecoderConfig(samples=SAMPLES)) for _ in range(2)]
    for step in range(3):
        request = DecodeRequest(step, 1, 1, STEPS, VALUES)
        arrays = strong[step], weak[step]
        wanted, found = (
            decoder.choose(request, *given)
            for decoder, given in zip(decoders, (arrays, tuple(map(torch.from_numpy, arrays))), strict=True)
        )
        np.testing.assert_array_equal(found.actions, wanted.actions)
        assert found.index == wanted.index
