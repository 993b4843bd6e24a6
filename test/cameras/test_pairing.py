import pytest

from bid_ros.cameras.pairing import FramePairing, PairWatch
from bid_ros.core.errors import CameraError

MS = 1_000_000
NAMES = ("third_person", "wrist")


def feed(pairing, events):
    """Add (ms, name) events; return the pairs."""
    pairs = []
    for stamp, name in events:
        pairs += pairing.add(name, round(stamp * MS), (name, stamp))
    return pairs


def both(stamps, skew=0.0):
    return [(stamp + extra, name) for stamp in stamps for name, extra in zip(NAMES, (0.0, skew), strict=True)]


def test_frames_within_the_tolerance_make_a_pair_with_the_oldest_stamp():
    pairing = FramePairing(NAMES, 10, 0.02)
    assert pairing.add("wrist", 112 * MS, "w") == []
    (pair,) = pairing.add("third_person", 100 * MS, "t")
    assert pair.frames == {"third_person": "t", "wrist": "w"}
    assert (pair.stamp_ns, pair.skew_ns) == (100 * MS, 12 * MS)


def test_frames_beyond_the_tolerance_are_dropped_and_counted():
    pairing = FramePairing(NAMES, 10, 0.02)
    assert feed(pairing, [(100, "wrist"), (150, "third_person"), (155, "wrist")])[0].skew_ns == 5 * MS
    assert pairing.statistics()["dropped_wrist"] == 1
    assert pairing.statistics()["dropped_third_person"] == 0


def test_the_tolerance_is_inclusive():
    assert len(feed(FramePairing(NAMES, 10, 0.02), [(100, "wrist"), (120, "third_person")])) == 1
    assert not feed(FramePairing(NAMES, 10, 0.02), [(100, "wrist"), (120.001, "third_person")])


def test_the_nearest_waiting_frame_is_taken():
    pairs = feed(FramePairing(NAMES, 10, 0.02), [(85, "wrist"), (99, "wrist"), (115, "wrist"), (100, "third_person")])
    assert pairs[0].frames["wrist"] == ("wrist", 99)


def test_a_camera_that_delivers_late_still_finds_its_partner():
    early = [(i * 1000 / 60, "wrist") for i in range(20)]
    assert len(feed(FramePairing(NAMES, 10, 0.02), [*early, (2, "third_person")])) == 1


def test_one_camera_makes_pairs_alone():
    assert len(feed(FramePairing(["wrist"], 10, 0.0), [(100, "wrist"), (200, "wrist")])) == 2


def test_memory_is_bounded_while_a_camera_is_silent():
    pairing = FramePairing(NAMES, 10, 0.02)
    feed(pairing, [(i * 10, "wrist") for i in range(1000)])
    waiting = 1000 - pairing.statistics()["dropped_wrist"]
    assert 0 < waiting <= 64


@pytest.mark.parametrize("camera_rate", [15, 30, 60, 90])
def test_faster_cameras_are_thinned_to_the_rate(camera_rate):
    stamps = [i * 1000 / camera_rate for i in range(10 * camera_rate)]
    pairing = FramePairing(NAMES, 10, 0.005)
    pairs = feed(pairing, both(stamps))
    assert len(pairs) in (99, 100, 101)
    assert pairing.statistics()["thinned"] == len(stamps) - len(pairs)


def test_a_slightly_fast_or_jittering_camera_loses_nothing():
    fast = [i * 99.5 for i in range(600)]
    jittering = [i * 100 + (17 if i % 3 else -6) for i in range(1, 100)]
    assert len(feed(FramePairing(NAMES, 10, 0.02), both(fast))) == 600
    assert len(feed(FramePairing(NAMES, 10, 0.02), both(jittering))) == 99


def test_pairs_go_on_after_a_gap():
    pairs = feed(FramePairing(NAMES, 10, 0.02), both([0, 100, 5033, 5133]))
    assert [pair.stamp_ns for pair in pairs] == [0, 100 * MS, 5033 * MS, 5133 * MS]


def test_a_repeated_or_older_frame_is_dropped():
    pairing = FramePairing(NAMES, 10, 0.02)
    pairs = feed(pairing, [*both([100]), (100, "wrist"), (90, "wrist"), (100, "third_person")])
    assert len(pairs) == 1
    assert (pairing.statistics()["dropped_wrist"], pairing.statistics()["dropped_third_person"]) == (2, 1)


def test_a_clock_set_back_starts_anew():
    pairing = FramePairing(NAMES, 10, 0.02)
    assert len(feed(pairing, [*both([50_000]), (50_100, "wrist"), *both([100, 200])])) == 3


def test_reset_leaves_nothing_waiting():
    pairing = FramePairing(NAMES, 10, 0.02)
    pairing.add("wrist", 100 * MS, "old")
    pairing.reset()
    assert pairing.add("third_person", 100 * MS, "new") == []


def test_skew_statistics():
    pairing = FramePairing(NAMES, 10, 0.05)
    assert "skew_ms_p50" not in pairing.statistics()
    for i in range(100):
        feed(pairing, both([i * 100], skew=40.0 if i == 7 else 2.0))
    values = pairing.statistics()
    assert values["skew_ms_p50"] == 2.0
    assert values["skew_ms_max"] == 40.0
    assert 2.0 < values["skew_ms_p99"] < 40.0


def test_the_first_pair_may_take_longer_and_silent_cameras_are_named():
    watch = PairWatch(NAMES, 5.0, 10_000 * MS)
    watch.heard("wrist", 14_500 * MS)
    assert watch.problem(15_000 * MS) == ("", False)
    assert watch.problem(15_001 * MS) == ("no frame from third_person for 5 s", True)
    watch.paired(16_000 * MS)
    assert watch.problem(17_000 * MS) == ("", False)
    for name in NAMES:
        watch.heard(name, 17_000 * MS)
    assert watch.problem(17_900 * MS) == ("no frames within the tolerance for 2 s", False)
    assert watch.problem(18_001 * MS) == ("no frame from third_person, wrist for 2 s", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], 10, 0.1), "one or more different names"),
        ((["a", "a"], 10, 0.1), "one or more different names"),
        ((["a"], 0, 0.1), "rate of pairs is 0"),
        ((["a"], 10, -0.1), "tolerance of pairs is -0.1"),
        ((["a"], 10, float("nan")), "tolerance of pairs is nan"),
    ],
)
def test_refuses_impossible_settings(arguments, words):
    with pytest.raises(CameraError, match=words):
        FramePairing(*arguments)


def test_refuses_an_unknown_camera():
    with pytest.raises(CameraError, match="camera 'left' is not to be paired; valid are third_person, wrist"):
        FramePairing(NAMES, 10, 0.02).add("left", 0, None)
