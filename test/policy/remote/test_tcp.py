"""A TCP connection sends small messages at once, and uses BBR where the kernel lets it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bid_ros.policy.remote import dial

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
