"""What goes over the wire: as openpi writes it, back again without loss, and nothing else is taken."""

from __future__ import annotations

import zlib

import msgpack
import numpy as np
import pytest

from bid_ros.core.errors import RemoteError
from bid_ros.policy.remote.wire import (
    checked,
    deflated,
    generator_of,
    generator_words,
    inflated,
    pack,
    take_words,
    unpack,
)


def test_arrays_come_back_bit_for_bit():
    sent = {
        "image": np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
        "state": np.array([[0.1, -0.0, 1e-300]]),
        "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "number": np.float32(0.1),
        "prompt": "place it",
    }
    got = unpack(pack(sent))
    for name in ("image", "state", "turned", "number"):
        assert got[name].dtype == sent[name].dtype and got[name].tobytes() == sent[name].tobytes(), name
    assert got["turned"].shape == (3, 2) and got["prompt"] == "place it"


def test_an_array_is_written_as_openpi_writes_it():
    """Its client and server use binary keys, NumPy's name of the type with its byte order, and a list as the shape."""
    raw = msgpack.unpackb(pack({"actions": np.array([[1.0, 2.0]])}))
    data = np.array([1.0, 2.0]).tobytes()
    assert raw == {"actions": {b"__ndarray__": True, b"data": data, b"dtype": "<f8", b"shape": [1, 2]}}
    raw = msgpack.unpackb(pack({"x": np.int64(3)}))
    assert raw == {"x": {b"__npgeneric__": True, b"data": 3, b"dtype": "<i8"}}


def array(**changes):
    names = {"data": b"\0" * 8, "dtype": "<f8", "shape": [1], **changes}
    return msgpack.packb({"a": {b"__ndarray__": True, **{name.encode(): value for name, value in names.items()}}})


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        msgpack.packb([1, 2]),
        msgpack.packb({}) + b"x",
        array(dtype="O"),
        array(dtype="V8"),
        array(dtype="{'"),
        array(shape=[2]),
        array(shape=[-1, 3]),
        array(shape=[2**62, 2**62]),
        array(data=None),
        array(shape=None),
        b"\x81" * 5000,
        msgpack.packb({"a": {b"__ndarray__": True}}),
    ],
)
def test_a_message_that_is_none_is_refused_in_one_sentence(message):
    with pytest.raises(RemoteError) as caught:
        unpack(message)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_sent_says_so():
    with pytest.raises(TypeError, match="valid are arrays of numbers"):
        pack({"a": np.array([object()])})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing as 'x'; valid is an array of shape"),
        ("text", "a str as 'x'"),
        (np.zeros((3, 2)), r"'x' of shape \(3, 2\); valid is \(2, 3\)"),
        (np.array([[0, 1, 2], [3, np.nan, 5]]), "not finite"),
        (np.array([[0, 1, 2], [3, np.inf, 5]]), "not finite"),
    ],
)
def test_an_array_that_is_not_as_it_should_be_is_refused(value, words):
    with pytest.raises(RemoteError, match=words):
        checked({"x": value}, "x", (2, 3))


def test_a_generator_goes_over_the_wire_and_goes_on():
    rng = np.random.default_rng((3, 4))
    rng.standard_normal(5, dtype=np.float32)
    rng.integers(0, 2**16, dtype=np.uint16)  # leaves half a word
    words = unpack(pack({"seed": generator_words(rng)}))["seed"]
    other = generator_of(words)
    np.testing.assert_array_equal(rng.standard_normal(9), other.standard_normal(9))
    take_words(rng, generator_words(other))
    assert rng.bit_generator.state == other.bit_generator.state
    assert generator_of(7).random() == np.random.default_rng(7).random()


@pytest.mark.parametrize("seed", [-1, "7", None, [1, 2], [0, 0, 0, 0, 0, 2**64], [0, 0, 0, 0, 2, 0], [True] * 6, 1.0])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(RemoteError, match="seed that is no state"):
        generator_of(seed)


def test_another_generator_is_refused():
    with pytest.raises(RemoteError, match="valid is PCG64"):
        generator_words(np.random.Generator(np.random.MT19937(0)))


def test_a_message_goes_over_the_wire_in_fewer_bytes():
    sent = {"image": np.arange(3000, dtype=np.uint16) // 100, "number": 3}
    message = pack(sent)
    small = deflated(message)
    assert len(small) < len(message) / 2
    got = inflated(unpack(small), len(message))
    np.testing.assert_array_equal(got["image"], sent["image"])
    assert got["number"] == 3 and inflated(got, 10) is got


def test_a_message_that_cannot_be_smaller_stays_as_it_is():
    message = pack({"noise": np.random.default_rng(0).integers(0, 256, 5000, np.uint8)})
    assert deflated(message) is message


@pytest.mark.parametrize(
    ("held", "largest", "words"),
    [
        (zlib.compress(pack({"a": 1})), 2, "cut off, or of more than 2 bytes"),
        (zlib.compress(bytes(50_000_000)), 1000, "cut off, or of more than 1000 bytes"),
        (zlib.compress(pack({"a": 1}))[:-3], 1000, "cut off, or of more than 1000 bytes"),
        (b"no zlib", 1000, "bytes under 'deflated' that are not of zlib"),
        (zlib.compress(b"\xc1"), 1000, "that are no msgpack"),
    ],
)
def test_what_holds_no_message_is_refused(held, largest, words):
    with pytest.raises(RemoteError, match=words):
        inflated({"deflated": held}, largest)
