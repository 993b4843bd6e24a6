"""Reaching a server whose name stands for several addresses."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from bid_ros.policy.remote import dial
from bid_ros.policy.remote.dial import Dialler

LIMIT_S = 0.6


def test_an_address_that_gives_no_answer_leaves_time_for_the_next(monkeypatch):
    """As where a name has an address of a network that is not connected."""
    with ExitStack() as stack:
        silent, good = (stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=n)) for n in (0, 8))
        for _ in range(4):  # they fill its queue; what comes then is not answered
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        known = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", item.getsockname()) for item in (silent, good)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: known)
        dialler = Dialler("ws://robot:1")
        for _ in range(2):
            begin = time.monotonic()
            with dialler.connected(begin + LIMIT_S) as plain:
                assert plain.getpeername() == good.getsockname()
        assert time.monotonic() - begin < LIMIT_S / 2, "it is asked first from then on"


ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
USUAL = Path("/proc/sys/net/ipv4/tcp_congestion_control")


@pytest.fixture
def plain():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as plain:
        yield plain


def test_the_congestion_control_is_bbr_where_it_may_be(plain):
    found = dial.tune(plain)
    if dial.WANTED in ALLOWED.read_text().split():
        assert found == dial.WANTED
    assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode() == found
    assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_one_that_the_kernel_does_not_have_leaves_the_usual_one(plain, monkeypatch):
    monkeypatch.setattr(dial, "WANTED", "none_such")
    assert dial.tune(plain) == USUAL.read_text().strip()


def test_a_system_without_the_option_is_taken_as_it_is(plain, monkeypatch):
    monkeypatch.delattr(socket, "TCP_CONGESTION")
    assert dial.tune(plain) == ""
    assert plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
