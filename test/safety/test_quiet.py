import pytest

from bid_ros.safety.quiet import PAUSE_S, Quiet

S = 1_000_000_000
AT = round(PAUSE_S * S)


@pytest.fixture
def quiet():
    """A source that may move the arm since 1 s, and has sent nothing."""
    quiet = Quiet()
    quiet.allowed(True, S)
    return quiet


def test_silence_counts_from_the_grant_and_from_half_a_second_on(quiet):
    quiet.allowed(True, S + 1)
    assert quiet.silent_s(S + AT) == 0.0
    assert quiet.silent_s(2 * S) == pytest.approx(1.0)


def test_each_chunk_ends_it(quiet):
    quiet.heard(2 * S)
    assert quiet.silent_s(2 * S + AT) == 0.0 and quiet.silent_s(3 * S) == pytest.approx(1.0)


def test_who_may_not_move_the_arm_is_not_silent(quiet):
    quiet.allowed(False, 2 * S)
    quiet.heard(2 * S)
    assert quiet.silent_s(9 * S) == 0.0
    quiet.allowed(True, 9 * S)
    assert quiet.silent_s(9 * S + AT) == 0.0
