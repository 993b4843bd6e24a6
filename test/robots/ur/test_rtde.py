"""The frame of RTDE packages."""

import random

import pytest

from bid_ros.robots.ur.rtde import PackageError, PackageReader, PackageType, package


def test_packages_survive_any_cut():
    sent = [(PackageType.DATA_PACKAGE, b"\x01abc"), (PackageType.START, b""), (PackageType.SETUP_INPUTS, b"x" * 300)]
    stream = b"".join(package(*item) for item in sent)
    for cut in range(len(stream)):
        reader = PackageReader()
        assert [*reader.feed(stream[:cut]), *reader.feed(stream[cut:])] == sent
    assert stream[:3] == bytes([0, 7, ord("U")])


@pytest.mark.parametrize("header", [b"\x00\x00U", b"\x00\x02U", b"\x00\x03Z", b"\xff\xff\x00"])
def test_header_that_cannot_be_one_is_an_error(header):
    with pytest.raises(PackageError, match=r"an RTDE package of (size [02]|type (90|0)); valid"):
        list(PackageReader().feed(header))


def test_reader_survives_random_bytes():
    generator = random.Random(7)
    valid = package(PackageType.DATA_PACKAGE, bytes(30)) + package(PackageType.REQUEST_PROTOCOL_VERSION, b"\x00\x02")
    for _ in range(3000):
        data = bytearray(valid if generator.random() < 0.7 else generator.randbytes(40))
        for _ in range(generator.randrange(4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        reader = PackageReader()
        try:
            for kind, payload in reader.feed(bytes(data[: generator.randrange(len(data))])):
                assert isinstance(kind, PackageType) and len(payload) <= len(data)
        except PackageError as error:
            assert "valid" in str(error)
