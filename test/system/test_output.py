"""A line that is not taken is lost, and printing goes on."""

from __future__ import annotations

import os

from bid_ros.system.output import _unbroken


def test_a_full_pipe_that_does_not_block_loses_lines_and_nothing_else():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(writer, "w") as plain, os.fdopen(reader, "rb") as taken:
        stream = _unbroken(plain)
        for _ in range(3):
            print("x" * 1_000_000, file=stream, flush=True)
        assert taken.read1(1 << 20).startswith(b"xxx")
        print("later", file=stream, flush=True)
        assert b"later\n" in taken.read1(1 << 20)


def test_a_pipe_that_nobody_reads_loses_lines_and_nothing_else():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as plain:
        print("lost", file=_unbroken(plain), flush=True)
