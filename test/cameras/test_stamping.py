import pytest

from bid_ros.cameras.stamping import PAUSE_NS, CameraClock
from bid_ros.core.errors import CameraError

S = 1_000_000_000
NOW = 1_800_000_000 * S
JUMP = 4_294_967_296_000  # of a counter of 32 bits, in us


@pytest.mark.parametrize("age_ns", [-50_000_000, 0, 40_000_000, 2 * S])
def test_stamps_of_this_computers_clock_stay(age_ns):
    clock = CameraClock("wrist")
    assert clock.stamp_ns(NOW - age_ns, NOW) == NOW - age_ns
    assert not clock.notice


@pytest.mark.parametrize(("stamp_ns", "words"), [(3 * NOW, "s ahead"), (5, "1800000000.0 s behind")])
def test_a_clock_that_is_wrong_from_the_begin_is_replaced_at_once_and_said(stamp_ns, words):
    clock = CameraClock("wrist")
    assert clock.stamp_ns(stamp_ns, NOW) == NOW
    assert clock.notice.startswith("camera 'wrist': its images are stamped ") and words in clock.notice
    assert clock.notice.endswith("; they have the time of their arrival from now on")
    assert clock.stamp_ns(NOW + 7, NOW + 9) == NOW + 9, "nobody trusts it again"


@pytest.mark.parametrize("jump_ns", [-JUMP, JUMP])
def test_a_clock_that_jumps_is_replaced_after_a_pause_with_the_reason(jump_ns):
    clock, delay_ns = CameraClock("wrist"), 40_000_000
    assert clock.stamp_ns(NOW - delay_ns, NOW) == NOW - delay_ns
    for later_ns in (33_000_000, PAUSE_NS // 2, PAUSE_NS + 32_000_000):
        with pytest.raises(
            CameraError, match=r"camera 'wrist': its images are stamped 429\d\.. s .*: its clock has jumped"
        ):
            clock.stamp_ns(NOW + later_ns + jump_ns, NOW + later_ns)
    later_ns = PAUSE_NS + 33_000_000
    assert clock.stamp_ns(NOW + later_ns + jump_ns, NOW + later_ns) == NOW + later_ns - delay_ns, "the usual delay"


def test_a_pause_ends_although_this_computers_clock_is_set_back():
    clock = CameraClock("wrist")
    clock.stamp_ns(NOW, NOW)
    with pytest.raises(CameraError):
        clock.stamp_ns(NOW + JUMP, NOW)
    assert clock.stamp_ns(NOW, NOW - 60 * S) == NOW - 60 * S
