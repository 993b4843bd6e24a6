"""What a recorder counts."""

from __future__ import annotations

import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.recording.counters import Counters, Disk

S = 1_000_000_000


def test_gaps_in_the_numbers_of_the_only_publisher_are_losses():
    counters = Counters()
    counters.take("image", 10, 40)
    counters.watch(["image"])
    for number in (42, 43, 47, None, 49):
        counters.take("image", 10, number)
    assert counters.lost == {"image": 3}, "what was before the first look is not known"
    assert counters.received == {"image": 6}


def test_numbers_of_several_publishers_and_of_one_that_began_anew_are_no_losses():
    counters = Counters()
    counters.watch(["status"])
    for number in (5, 6, 7, 1, 2, 3):
        counters.take("status", 1, number)
    for number in (9, 90, 10, 91):
        counters.take("heartbeat", 1, number)
    assert not counters.lost
    # The second publisher ends, while the numbers of the first went on.
    counters.watch(["status", "heartbeat"])
    for number in (20, 21):
        counters.take("heartbeat", 1, number)
    assert not counters.lost


def test_a_message_that_was_only_late_is_no_loss():
    counters = Counters()
    counters.watch(["status"])
    for number in (1, 4, 2, 5, 6):
        counters.take("status", 1, number)
    assert counters.lost == {"status": 1}
    counters.take("status", 1, 3)
    assert not +counters.lost


def test_rates_are_those_since_the_last_call():
    counters = Counters()
    assert counters.rates(S) == ({}, 0.0, 0.0)
    for _ in range(30):
        counters.take("image", 100_000, None)
    rates, megabytes, share = counters.rates(3 * S)
    assert rates == {"image": 15.0} and megabytes == pytest.approx(1.5) and share >= 0
    assert counters.rates(4 * S)[0] == {"image": 0.0}


def test_a_disk_with_too_little_left_is_refused(tmp_path):
    Disk(tmp_path, 0).check()
    with pytest.raises(RecordingError, match=r"MB left; valid is 1000000000 MB or more"):
        Disk(tmp_path, 10**9).check()
    assert Disk(tmp_path / "gone", 0).free() == 0


def test_the_disk_lasts_as_long_as_the_file_grows_as_it_did(tmp_path):
    file = tmp_path / "bag.mcap"
    assert Disk(tmp_path, 0).seconds_left(None, S) == float("inf")
    disk = Disk(tmp_path, 0)
    file.write_bytes(bytes(1000))
    disk.seconds_left(file, 2 * S)
    file.write_bytes(bytes(1_001_000))
    assert disk.seconds_left(file, 4 * S) == pytest.approx(disk.free() / 500_000, rel=0.01)
