"""A message is cut into parts and put together again, whatever way they came."""

from __future__ import annotations

import random

import pytest

from bid_ros.core.errors import RemoteError
from bid_ros.policy.remote.parts import HEAD, MARK, MOST, Assembly, cut, is_part
from bid_ros.policy.remote.wire import pack

LARGEST = 1000


@pytest.mark.parametrize("length", [0, 1, 3, 4, 999, 1000])
@pytest.mark.parametrize("count", [1, 2, 4, MOST])
def test_parts_in_any_order_give_the_message(length, count):
    message = random.Random(length).randbytes(length)
    assembly = Assembly(LARGEST)
    for number in (1, 2):
        parts = cut(message, number, count)
        sizes = [len(part) for part in parts]
        assert len(parts) == count and max(sizes) - min(sizes) <= 1
        random.Random(number).shuffle(parts)
        assert [assembly.take(part) for part in parts] == [None] * (count - 1) + [message]


def test_what_came_already_and_what_is_old_is_dropped():
    assembly = Assembly(LARGEST)
    old, new = cut(b"old message", 1, 3), cut(b"new message", 2, 2)
    assert [assembly.take(old[0]), assembly.take(old[0]), assembly.take(new[1]), assembly.take(old[1])] == [None] * 4
    assert assembly.take(new[0]) == b"new message"
    assert [assembly.take(part) for part in (*new, *old)] == [None] * 5


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (b"\xc1234567", "a part of a message of 7 bytes; valid are 9 or more"),
        (HEAD.pack(MARK, 1, 2, 2), "part 2 of 2 of a message; valid are up to 8, numbered from 0"),
        (HEAD.pack(MARK, 1, 0, 9), "part 0 of 9"),
        (HEAD.pack(MARK, 1, 0, 2) + bytes(LARGEST + 1), "a message of more than 1000 bytes"),
    ],
)
def test_what_is_no_part_is_refused(part, words):
    with pytest.raises(RemoteError, match=words):
        Assembly(LARGEST).take(part)


def test_parts_that_disagree_about_their_number_are_refused():
    assembly = Assembly(LARGEST)
    assembly.take(HEAD.pack(MARK, 1, 0, 3))
    with pytest.raises(RemoteError, match="part 1 of 4"):
        assembly.take(HEAD.pack(MARK, 1, 1, 4))


def test_a_part_is_told_from_a_whole_message():
    assert is_part(cut(b"message", 1, 2)[0])
    assert not any(is_part(message) for message in (b"", pack({}), pack({str(i): i for i in range(100)})))
