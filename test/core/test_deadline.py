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


def test_a_reason_names_the_silence_and_the_limit():
    watch = Deadlines({"arm": 2.0})
    watch.beat("arm", 0)
    assert str(watch.expired(2500 * MS)) == "heartbeat of arm is 2500 ms old; the limit is 2000 ms"


def test_an_age_is_never_negative_and_begins_at_0():
    watch = Deadlines({"policy": 0.3})
    watch.beat("policy", 500 * MS)
    assert watch.ages(500 * MS) == watch.ages(400 * MS) == {"policy": 0.0}


def test_a_late_message_does_not_make_a_name_older():
    watch = Deadlines({"policy": 0.3})
    watch.beat("policy", 500 * MS)
    watch.beat("policy", 100 * MS)
    assert watch.expired(700 * MS) is None


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_limit_is_positive_and_finite(limit):
    with pytest.raises(ValueError) as error:
        Deadlines({"policy": limit})
    assert str(error.value) == f"deadlines: the limit of 'policy' is {limit} s; valid is a positive finite number"


def test_nobody_to_watch_is_refused():
    with pytest.raises(ValueError, match=r"^deadlines: no name is watched; valid is one or more$"):
        Deadlines({})


def test_an_unwatched_name_is_refused():
    with pytest.raises(KeyError, match="'camera' is not watched; valid are policy, arm"):
        Deadlines({"policy": 0.3, "arm": 0.2}).beat("camera", 0)


def test_all_but_one_may_fall_silent():
    watch = Deadlines({"policy": 0.3, "arm": 0.3})
    watch.arm(0)
    watch.keep("arm")
    assert watch.expired(400 * MS) == Expired("arm", 0.4, 0.3)
    watch.beat("arm", 350 * MS)
    assert watch.expired(400 * MS) is None and set(watch.ages(400 * MS)) == {"arm"}
    with pytest.raises(KeyError):
        watch.keep("camera")
