"""What goes over the wire: maps in msgpack, with NumPy arrays as openpi's client and server write them.

An array is a map of ``__ndarray__``, ``data`` (its bytes, row by row), ``dtype`` and ``shape``, with binary keys. A
NumPy number is one of ``__npgeneric__``, ``data`` and ``dtype``.

Source: Physical Intelligence, openpi, package openpi-client, ``msgpack_numpy.py`` (after L. E. Givon, msgpack-numpy).
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RemoteError
from bid_ros.core.extras import extra

EXTENSION: Final = "bid"  # key of what openpi's protocol does not have
DEFLATED: Final = "deflated"  # only key of a message that holds another one
ACTIONS: Final = "actions"  # key of the one chunk (rows, D) that openpi's clients read
KINDS: Final = "biuf"  # of arrays: truth values, whole numbers and numbers
LEVEL: Final = 1  # of zlib: the fastest
WORTH: Final = 0.95  # of the bytes
WORDS: Final = 6  # of the state of a generator


def pack(content: Mapping[str, Any]) -> bytes:
    """Return a map in msgpack. Arrays and NumPy numbers may be anywhere in it."""
    with extra("remote", "a policy elsewhere"):
        import msgpack
    packed: bytes = msgpack.packb(content, default=_packed)
    return packed


def unpack(message: bytes) -> dict[str, Any]:
    """Return the map of a message. Its arrays cannot be written to.

    Raises:
        RemoteError: the message is no msgpack, no map, or holds an array that cannot be one.
    """
    with extra("remote", "a policy elsewhere"):
        import msgpack
    try:
        content = msgpack.unpackb(message, object_hook=_unpacked)
    except (
        ValueError,
        TypeError,
        KeyError,
        OverflowError,
        RecursionError,
        SyntaxError,
        msgpack.UnpackException,
    ) as error:
        why = " ".join(str(error).split())[:80] or type(error).__name__
        raise RemoteError(f"{len(message)} bytes that are no msgpack of arrays ({why})") from error
    if not isinstance(content, dict):
        raise RemoteError(f"a {type(content).__name__}; valid is a map")
    return content


def own_words(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a server of ``bid serve`` says beside openpi's protocol; empty for another server."""
    said = content.get(EXTENSION)
    return said if isinstance(said, dict) else {}


def deflated(message: bytes) -> bytes:
    """Return a message that holds another one in fewer bytes; that one itself if they are hardly fewer."""
    small = pack({DEFLATED: zlib.compress(message, LEVEL)})
    return small if len(small) < WORTH * len(message) else message


def inflated(content: dict[str, Any], largest: int) -> dict[str, Any]:
    """Return the map of the message that a map holds; the map itself if it holds none.

    Raises:
        RemoteError: it holds no message, or one of more than ``largest`` bytes.
    """
    held = content.get(DEFLATED)
    if len(content) != 1 or not isinstance(held, bytes):
        return content
    work = zlib.decompressobj()
    try:
        message = work.decompress(held, largest)
    except zlib.error as error:
        raise RemoteError(f"bytes under '{DEFLATED}' that are not of zlib: {error}") from error
    if not work.eof:
        raise RemoteError(f"under '{DEFLATED}' a message that is cut off, or of more than {largest} bytes")
    return unpack(message)


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(f"{type(value).__name__} cannot be sent; valid are arrays of numbers, numbers and texts")


def _unpacked(item: dict[Any, Any]) -> Any:
    if b"__ndarray__" in item:
        kind = _kind(item)
        return np.frombuffer(item[b"data"], dtype=kind).reshape([int(size) for size in item[b"shape"]])
    if b"__npgeneric__" in item:
        return _kind(item).type(item[b"data"])
    return item


def _kind(item: Mapping[Any, Any]) -> np.dtype[Any]:
    kind: np.dtype[Any] = np.dtype(item[b"dtype"])
    if kind.kind not in KINDS:
        raise ValueError(f"an array of {kind}")
    return kind


def checked(content: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a copy of the array ``name`` of a map, float64.

    Raises:
        RemoteError: it is missing, no array, of another shape, or holds a value that is not finite.
    """
    value = content.get(name)
    if not isinstance(value, np.ndarray):
        found = "nothing" if value is None else f"a {type(value).__name__}"
        raise RemoteError(f"{found} as '{name}'; valid is an array of shape {shape}")
    if value.shape != shape:
        raise RemoteError(f"'{name}' of shape {value.shape}; valid is {shape}")
    array = value.astype(np.float64)
    if not np.isfinite(array).all():
        raise RemoteError(f"a value in '{name}' that is not finite")
    return array


def generator_words(rng: np.random.Generator) -> list[int]:
    """Return the state of a generator as six whole numbers below 2^64, from which :func:`generator_of` makes it again.

    Raises:
        RemoteError: it is not PCG64, NumPy's default.
    """
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise RemoteError(f"a generator {state['bit_generator']}; valid is PCG64, of numpy.random.default_rng")
    inner, low = state["state"], 2**64
    numbers = [*divmod(inner["state"], low), *divmod(inner["inc"], low), state["has_uint32"], state["uinteger"]]
    return [int(number) for number in numbers]


def take_words(rng: np.random.Generator, words: Any) -> None:
    """Set a generator to a state. Raises RemoteError if the words are none."""
    good = isinstance(words, list) and len(words) == WORDS and all(type(word) is int for word in words)
    if not good or not all(0 <= word < 2**64 for word in words) or words[4] > 1 or words[5] >= 2**32:
        raise RemoteError(f"a seed that is no state of a generator; valid are {WORDS} whole numbers of PCG64")
    if rng.bit_generator.state["bit_generator"] != "PCG64":
        raise RemoteError("a state of PCG64 for another generator")
    inner = {"state": words[0] * 2**64 + words[1], "inc": words[2] * 2**64 + words[3]}
    rng.bit_generator.state = {"bit_generator": "PCG64", "state": inner, "has_uint32": words[4], "uinteger": words[5]}


def generator_of(seed: Any) -> np.random.Generator:
    """Return the generator of a seed: a whole number of at least 0, or the words of :func:`generator_words`.

    Raises:
        RemoteError: it is neither.
    """
    if type(seed) is int and seed >= 0:
        return np.random.default_rng(seed)
    rng = np.random.default_rng(0)
    take_words(rng, seed)
    return rng
