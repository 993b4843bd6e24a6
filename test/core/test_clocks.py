import time

import pytest

from bid_ros.core.clocks import (
    AHEAD_NS,
    BEHIND_NS,
    JUMP_NS,
    NEAR_NS,
    ClockWatch,
    Instant,
    foreign_stamp,
    jump_text,
    newer,
    read_clocks,
)

S = 1_000_000_000
NOW = 1_700_000_000 * S


class Held:
    """Clocks of a process that is held up between two readings of them, by so many ns a time."""

    def __init__(self, *held_ns: int) -> None:
        self.steady, self._held = 5 * S, list(held_ns)
        self.tries = 0

    def monotonic_ns(self) -> int:
        self.steady += 100
        return self.steady

    def wall(self) -> int:
        self.tries += 1
        self.steady += self._held.pop(0) if self._held else 0
        return NOW + self.steady


def test_a_hold_up_between_the_two_clocks_makes_nothing_look_older(monkeypatch):
    held = Held(300_000_000, 2_000_000)
    monkeypatch.setattr(time, "monotonic_ns", held.monotonic_ns)
    found = read_clocks(held.wall)
    assert held.tries == 3, "the third reading was the first that was near enough"
    assert abs(found.wall_ns - NOW - found.steady_ns) <= NEAR_NS


def test_of_readings_that_are_all_held_up_the_nearest_counts(monkeypatch):
    held = Held(*[5_000_000] * 5, 1_000_000, *[5_000_000] * 5)
    monkeypatch.setattr(time, "monotonic_ns", held.monotonic_ns)
    found = read_clocks(held.wall)
    assert 0 <= found.wall_ns - NOW - found.steady_ns <= 1_000_000


def test_the_clocks_of_this_computer_are_read_as_they_are():
    found = read_clocks()
    assert abs(found.wall_ns - time.time_ns()) < S and abs(found.steady_ns - time.monotonic_ns()) < S


@pytest.mark.parametrize("jump_ns", [3600 * S, -3600 * S, JUMP_NS + 1])
def test_a_clock_that_is_set_is_noticed_once(jump_ns):
    watch = ClockWatch(Instant(NOW, 0))
    assert watch.jumped_ns(Instant(NOW + 10_000, 10_000)) == 0
    assert watch.jumped_ns(Instant(NOW + S + jump_ns, S)) == jump_ns
    assert watch.jumped_ns(Instant(NOW + 2 * S + jump_ns, 2 * S)) == 0


def test_a_time_service_that_pulls_a_clock_sets_nothing():
    watch = ClockWatch(Instant(NOW, 0))
    for step in range(1, 1000):
        assert watch.jumped_ns(Instant(NOW + step * (10_000_000 + 5_000), step * 10_000_000)) == 0


def test_the_sentences_say_the_difference_and_who_may_have_made_it():
    assert jump_text(-3600 * S) == "the clock of this computer was set back by 3600.0 s"
    ahead = foreign_stamp("images of 'wrist'", NOW + 3600 * S, NOW)
    assert ahead == (
        "images of 'wrist' are stamped 3600.0 s ahead of this computer's clock: "
        "the clock of one of the two computers was set"
    )
    assert "3600.0 s behind" in foreign_stamp("images of 'wrist'", NOW - 3600 * S, NOW)


@pytest.mark.parametrize("ahead_ns", [AHEAD_NS, 0, -BEHIND_NS])
def test_what_a_delay_may_explain_is_no_matter_of_clocks(ahead_ns):
    assert not foreign_stamp("images of 'wrist'", NOW + ahead_ns, NOW)


def test_a_stamp_is_newer_if_it_is_later_or_its_clock_was_set_back():
    assert newer(11, 10) and not newer(10, 10)
    assert not newer(NOW - S, NOW) and newer(NOW - S - 1, NOW)
