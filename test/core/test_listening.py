from bid_ros.core.listening import GRACE_NS, HELD_UP_NS, REST_NS, Listening

MS = 1_000_000


def looked(until_ms: int) -> Listening:
    """One that looked every 10 ms and heard every 40 ms, from 1 s on."""
    listening = Listening()
    for ms in range(1000, until_ms + 1, 10):
        if ms % 40 == 0:
            listening.heard(ms * MS)
        assert listening.judged_ns(ms * MS) == ms * MS
    return listening


def test_who_looks_in_time_judges_by_now():
    looked(2000)


def test_after_a_hold_up_silence_is_judged_by_what_was_heard_before_it_for_a_moment():
    listening = looked(2000)
    assert listening.judged_ns(2600 * MS) == 2000 * MS
    listening.heard(2610 * MS)
    assert listening.judged_ns(2620 * MS) == 2000 * MS, "what waits may still be in the socket"
    for ms in range(2630, 2700, 10):
        assert listening.judged_ns(ms * MS) == 2000 * MS
    end = 2600 * MS + GRACE_NS
    assert listening.judged_ns(end) == end, "then silence is silence"


def test_who_hears_first_after_a_hold_up_has_not_heard_all_of_it():
    listening = looked(2000)
    listening.heard(2600 * MS)
    assert listening.judged_ns(2601 * MS) == 2000 * MS


def test_a_process_that_is_held_up_again_and_again_still_finds_silence():
    listening, judged = looked(2000), []
    step = (HELD_UP_NS + 10 * MS) // MS
    for ms in range(2000 + step, 4000, step):
        judged.append(ms * MS - listening.judged_ns(ms * MS))
        listening.heard(ms * MS)
    assert max(judged) < GRACE_NS + REST_NS + 2 * step * MS
    assert judged.count(0) > len(judged) / 2


def test_a_late_look_is_no_hold_up():
    listening = looked(2000)
    late = 2000 * MS + HELD_UP_NS
    assert listening.judged_ns(late) == late


def test_who_has_heard_nothing_yet_judges_by_now():
    listening = Listening()
    assert listening.judged_ns(5 * MS) == 5 * MS
    assert listening.judged_ns(900 * MS) == 900 * MS
