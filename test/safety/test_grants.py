import pytest

from bid_ros.core.errors import BidError
from bid_ros.core.margins import Margins
from bid_ros.safety.grants import Grants

S = 1_000_000_000
HALF = S // 2


def granted(*sources, at=0, granter="episode", grants=None):
    grants = grants or Grants()
    grants.renew(granter, sources, HALF, at)
    return grants


def test_nobody_may_move_the_arm_without_a_grant():
    grants = Grants()
    assert not any(grants.live(source, 0) for source in ("teleop", "episode", "policy"))
    assert grants.lapsed(100 * S) is None


def test_a_grant_counts_from_its_arrival_to_its_end_for_its_sources_only():
    grants = granted("policy", at=3 * S)
    assert grants.live("policy", 3 * S) and grants.live("policy", 3 * S + HALF)
    assert not grants.live("policy", 3 * S + HALF + 1)
    assert not grants.live("teleop", 3 * S)


def test_a_grant_that_is_renewed_in_time_never_lapses():
    grants = granted("policy")
    for step in range(1, 50):
        grants.use("policy")
        granted("policy", at=step * S // 5, grants=grants)
        assert grants.lapsed((step + 1) * S // 5) is None
        assert grants.live("policy", (step + 1) * S // 5)


def test_a_grant_in_use_that_nobody_renews_lapses_once_and_names_who_and_how_long():
    grants = granted("policy")
    grants.use("policy")
    assert grants.lapsed(HALF) is None
    lapse = grants.lapsed(HALF + 1)
    assert (lapse.source, lapse.granter, lapse.limit_s) == ("policy", "episode", 0.5)
    assert str(lapse).startswith("nobody renewed the grant of 'policy' for 0.50 s")
    assert grants.lapsed(HALF + 2) is None


def test_use_is_remembered_over_renewals():
    grants = granted("policy")
    grants.use("policy")
    granted("policy", at=HALF, grants=grants)
    assert grants.lapsed(S + 1).source == "policy"


def test_a_grant_that_was_not_used_ends_without_a_lapse():
    assert granted("policy").lapsed(HALF + 1) is None
    grants = granted("policy", "teleop")
    grants.use("teleop")
    assert grants.lapsed(S).source == "teleop"


def test_a_release_ends_a_grant_at_once_and_is_no_lapse():
    grants = granted("policy")
    grants.use("policy")
    grants.renew("episode", (), 0, S // 10)
    assert not grants.live("policy", S // 10)
    assert grants.lapsed(10 * S) is None


def test_a_hand_over_ends_the_one_and_begins_the_other():
    grants = granted("episode")
    grants.use("episode")
    granted("policy", at=S // 10, grants=grants)
    assert grants.live("policy", S // 10) and not grants.live("episode", S // 10)
    assert grants.lapsed(S // 2) is None
    # What moved the arm under the former grant does not count for the new one.
    assert grants.lapsed(10 * S) is None


def test_every_granter_has_a_grant_of_its_own():
    grants = granted("policy")
    granted("teleop", at=S // 10, granter="pedal", grants=grants)
    for source in ("policy", "teleop"):
        grants.use(source)
    grants.renew("pedal", (), 0, S // 5)
    assert grants.live("policy", S // 5) and not grants.live("teleop", S // 5)
    assert grants.lapsed(S).granter == "episode"


def test_what_another_granter_still_grants_has_not_lapsed():
    grants = granted("policy")
    grants.use("policy")
    granted("policy", at=HALF, granter="pedal", grants=grants)
    assert grants.lapsed(HALF + 1) is None and grants.live("policy", HALF + 1)


@pytest.mark.parametrize(
    ("sources", "duration", "words"),
    [
        (("joystick",), HALF, "'joystick'; valid are teleop, episode, policy"),
        (("policy",), 0, "for 0 s; valid is above 0, up to 1 s"),
        (("policy",), -1, "valid is above 0, up to 1 s"),
        (("policy",), 3600 * S, "for 3600 s; valid is above 0, up to 1 s"),
    ],
)
def test_a_grant_that_is_not_valid_is_refused_and_changes_nothing(sources, duration, words):
    grants = granted("policy")
    with pytest.raises(BidError, match=words):
        grants.renew("episode", sources, duration, S // 10)
    assert grants.live("policy", HALF) and not grants.live("policy", HALF + 1)


def test_the_margin_of_a_grant_in_use_is_its_age_over_its_length():
    grants, margins = granted("policy", at=3 * S), Margins()
    grants.note(margins, 3 * S + HALF // 2)
    assert not margins, "nobody has moved the arm under it"
    grants.use("policy")
    grants.note(margins, 3 * S + HALF // 2)
    assert margins == {"grant of episode": 0.5}
