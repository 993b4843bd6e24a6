import pytest

from bid_ros.core.deadline import Deadlines, Expired

MS = 1_000_000


def test_silence_longer_than_the_limit_expires_and_a_beat_revives():
    watch = Deadlines({"policy": 0.3, "safety": 0.3})
    watch.beat("policy", 0)
    watch.beat("safety", 0)
    assert watch.expired(300 * MS) is None
    watch.beat("safety", 250 * MS)
    assert watch.expired(301 * MS) == Expired("policy", 0.301, 0.3)
    watch.beat("policy", 301 * MS)
    assert watch.expired(302 * MS) is None


def test_a_name_never_heard_counts_only_once_armed():
    watch = Deadlines({"policy": 0.3, "safety": 0.3})
    watch.beat("safety", 900 * MS)
    assert watch.expired(1000 * MS) is None
    assert watch.ages(1000 * MS) == {"safety": pytest.approx(0.1)}
    watch.arm(1000 * MS)
    watch.beat("safety", 1300 * MS)
    assert watch.expired(1300 * MS) is None
    assert watch.expired(1301 * MS).name == "policy"


def test_the_one_furthest_over_its_limit_is_named():
    watch = Deadlines({"fast": 0.1, "slow": 1.0})
    watch.beat("fast", 0)
    watch.beat("slow", 0)
    assert watch.expired(1050 * MS).name == "fast"
    assert "fast is 1050 ms old; the limit is 100 ms" in str(watch.expired(1050 * MS))


def test_a_late_message_does_not_make_a_name_older():
    watch = Deadlines({"policy": 0.3})
    watch.beat("policy", 500 * MS)
    watch.beat("policy", 100 * MS)
    assert watch.expired(700 * MS) is None


@pytest.mark.parametrize("limits", [{}, {"policy": 0.0}, {"policy": -1.0}, {"policy": float("nan")}])
def test_limits_are_checked(limits):
    with pytest.raises(ValueError, match="valid is"):
        Deadlines(limits)


def test_an_unwatched_name_is_refused():
    with pytest.raises(KeyError, match="'camera' is not watched"):
        Deadlines({"policy": 0.3}).beat("camera", 0)
