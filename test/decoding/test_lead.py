"""The lead decoders: what they estimate of a target's motion, and how far they shift."""

import numpy as np
import pytest

from bid_ros.decoding import DecoderConfig, DecodeRequest, DecodingError, LeadConfig, build_decoder

DT, H, D, TO, N = 100_000_000, 16, 4, 2, 8
VELOCITY = np.array([0.06, -0.02])


def chunks(decision, random=None, spread=0.0):
    """Samples (N, H, D) that aim at a place which moves; column 2 changes too, but is no column of a lead."""
    aim = np.zeros((N, H, D))
    aim[..., :2] = 0.5 + VELOCITY * decision * DT * 1e-9
    aim[..., 2] = 0.01 * decision
    return aim if random is None else aim + random.normal(0.0, spread, (N, 1, D))


def decide(name, lead, decisions=60, random=None, spread=0.0):
    decoder = build_decoder(name, DecoderConfig(samples=N, lead=lead))
    for k in range(decisions):
        samples = chunks(k, random, spread)
        if decoder.propose(DecodeRequest(k * DT, DT, TO, H, D)).strong == 1:
            samples = samples[:1]
        choice = decoder.choose(DecodeRequest(k * DT, DT, TO, H, D), samples, None)
    return decoder, samples, choice


@pytest.mark.parametrize("name", ["lead", "bid+lead"])
def test_a_decision_is_shifted_to_where_the_target_will_be(name):
    decoder, samples, choice = decide(name, LeadConfig(time_s=0.2))
    np.testing.assert_allclose(decoder.velocity, VELOCITY, rtol=1e-4)
    shifted = samples[choice.index].copy()
    shifted[TO - 1 :, :2] += 0.2 * VELOCITY
    np.testing.assert_allclose(choice.actions, shifted, atol=1e-5)


def test_the_memory_is_not_shifted():
    choice = decide("lead", LeadConfig(time_s=0.2), decisions=2)[2]
    np.testing.assert_allclose(choice.previous, chunks(0)[0, 1:])


@pytest.mark.parametrize("name", ["lead", "bid+lead"])
def test_a_lead_of_nothing_is_the_plain_decoder(name):
    _, samples, choice = decide(name, LeadConfig(time_s=0.0), random=np.random.default_rng(1), spread=0.01)
    np.testing.assert_array_equal(choice.actions, samples[choice.index])


def test_the_velocity_comes_in_with_the_time_constant():
    decoder, _, _ = decide("lead", LeadConfig(filter_s=0.5), decisions=6)
    np.testing.assert_allclose(decoder.velocity, VELOCITY * (1 - np.exp(-0.5 / 0.5)), rtol=1e-6)


def test_a_decision_that_still_goes_far_says_nothing_about_the_target():
    found = {}
    for length in (0.0, 0.01, 0.02, 0.5):
        decoder = build_decoder("lead", DecoderConfig(lead=LeadConfig(settled=0.02)))
        for k in range(60):
            on_the_way = chunks(k)[:1]
            on_the_way[0, TO - 1 :, 0] += np.linspace(-length, 0.0, H - TO + 1)
            decoder.choose(DecodeRequest(k * DT, DT, TO, H, D), on_the_way, None)
        found[length] = float(np.linalg.norm(decoder.velocity))
    assert found[0.0] == pytest.approx(np.linalg.norm(VELOCITY), rel=1e-4)
    assert 0.1 * found[0.0] < found[0.01] < found[0.0] and found[0.02] == found[0.5] == 0.0


def test_the_velocity_is_that_of_all_samples():
    decoder, random = build_decoder("bid+lead", DecoderConfig(samples=N, lead=LeadConfig())), np.random.default_rng(2)
    offsets = random.normal(0.0, 0.02, (N, 1, D))
    for k in range(60):
        samples = chunks(k) + random.permutation(offsets)
        decoder.choose(DecodeRequest(k * DT, DT, TO, H, D), samples, None)
    np.testing.assert_allclose(decoder.velocity, VELOCITY, rtol=1e-4)


def test_no_shift_crosses_the_bounds_and_what_is_outside_stays():
    inside = LeadConfig(time_s=1.0, columns=(0, 1), low=(0.0, 0.0), high=(0.56, 1.0))
    decoder, samples, choice = decide("lead", inside, decisions=9)
    assert samples[0, -1, 0] < 0.56 < samples[0, -1, 0] + decoder.velocity[0]
    np.testing.assert_array_equal(choice.actions[TO - 1 :, 0], 0.56)
    outside = LeadConfig(time_s=1.0, columns=(0, 1), low=(0.0, 0.0), high=(0.5, 1.0))
    _, samples, choice = decide("lead", outside, decisions=9)
    np.testing.assert_array_equal(choice.actions[:, 0], samples[0, :, 0])


@pytest.mark.parametrize("high", [None, (1.0, 1.0)])
def test_the_lower_bounds_hold_too(high):
    inside = LeadConfig(time_s=1.0, columns=(0, 1), low=(0.0, 0.48), high=high)
    decoder, samples, choice = decide("lead", inside, decisions=9)
    assert samples[0, -1, 1] > 0.48 > samples[0, -1, 1] + decoder.velocity[1]
    np.testing.assert_array_equal(choice.actions[TO - 1 :, 1], 0.48)
    np.testing.assert_allclose(choice.actions[TO - 1 :, 0], samples[0, TO - 1 :, 0] + decoder.velocity[0])
    outside = LeadConfig(time_s=1.0, columns=(0, 1), low=(0.0, 0.6), high=high)
    _, samples, choice = decide("lead", outside, decisions=9)
    np.testing.assert_array_equal(choice.actions[:, 1], samples[0, :, 1])


@pytest.mark.parametrize("name", ["lead", "bid+lead"])
def test_what_is_executed_counts_as_the_decision_and_its_motion(name):
    """As if the policy had sampled what was executed. What is executed of another decision changes nothing."""
    offset = np.array([0.002, -0.001, 0.0, 0.0])
    random = np.random.default_rng(7)
    samples = [chunks(k, random, 0.01)[: 1 if name == "lead" else N] for k in (0, 1)]
    found = []
    for executed, added in ((True, 0.0), (False, offset)):
        decoder = build_decoder(name, DecoderConfig(samples=N))
        first = decoder.choose(DecodeRequest(0, DT, TO, H, D), samples[0] + added, None)
        if executed:
            decoder.executed(0, lambda rows: rows + offset)
            decoder.executed(DT, lambda rows: rows + 9.0)
        choice = decoder.choose(DecodeRequest(DT, DT, TO, H, D), samples[1], None)
        found.append((first.actions + offset - added, choice.previous, choice.actions, decoder.velocity))
    for executed, sampled in zip(*found, strict=True):
        np.testing.assert_allclose(executed, sampled, atol=1e-12)
    np.testing.assert_allclose(found[0][1], found[0][0][1:])


def test_samples_of_single_precision_are_averaged_in_double():
    random, found = np.random.default_rng(8), []
    narrow = [(chunks(k) + random.normal(0.0, 0.001, (N, 1, D))).astype(np.float32) for k in range(3)]
    for kind in (np.float32, np.float64):
        decoder = build_decoder("bid+lead", DecoderConfig(samples=N))
        for k, samples in enumerate(narrow):
            decoder.choose(DecodeRequest(k * DT, DT, TO, H, D), samples.astype(kind), None)
        found.append(decoder.velocity)
    assert found[0].all()
    np.testing.assert_array_equal(*found)


def test_no_target_is_taken_to_be_faster_than_the_setting():
    decoder, _, _ = decide("lead", LeadConfig(fastest=0.02))
    assert np.linalg.norm(VELOCITY) > 0.02
    np.testing.assert_allclose(decoder.velocity, 0.02 * VELOCITY / np.linalg.norm(VELOCITY), rtol=1e-4)


def test_a_reset_and_a_pause_forget_the_motion():
    decoder, _, _ = decide("lead", LeadConfig())
    decoder.reset()
    assert decoder.velocity is None
    for pause in (H - TO + 1, 900):  # steps, of which the first leaves only a row of the past
        decoder, samples, _ = decide("lead", LeadConfig())
        late = decoder.choose(DecodeRequest((59 + pause) * DT, DT, TO, H, D), samples, None)
        assert decoder.velocity is None
        np.testing.assert_array_equal(late.actions, samples[0])


def test_no_motion_is_known_before_the_second_decision():
    assert build_decoder("lead").velocity is None
    decoder, samples, choice = decide("lead", LeadConfig(), decisions=1)
    assert decoder.velocity is None
    np.testing.assert_array_equal(choice.actions, samples[0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"time_s": 2.0}, "time_s is 2.0; valid is .* 0 to 1"),
        ({"low": (0.0,), "columns": (0, 1)}, r"lead: low is \(0.0,\); valid is one for each of the columns \(0, 1\)"),
        ({"high": (1.0, 1.0)}, r"lead: high is \(1.0, 1.0\); valid is one for each of the columns None"),
    ],
)
def test_bad_settings_are_refused(values, message):
    with pytest.raises(DecodingError, match=message):
        LeadConfig(**values)


@pytest.mark.parametrize("column", [D, 7])
def test_columns_that_the_action_lacks_are_refused(column):
    with pytest.raises(DecodingError, match=rf"lead columns are \(0, {column}\); valid are 0 to 3"):
        decide("lead", LeadConfig(columns=(0, column)), decisions=1)


def test_the_last_column_of_an_action_may_be_led():
    aim = np.zeros((1, H, D))
    decoder = build_decoder("lead", DecoderConfig(lead=LeadConfig(columns=(D - 1,))))
    for k in range(2):
        decoder.choose(DecodeRequest(k * DT, DT, TO, H, D), aim + 0.001 * k, None)
    assert decoder.velocity.shape == (1,) and decoder.velocity[0] > 0
