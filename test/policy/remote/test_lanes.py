"""Several connections carry each message: the same chunks, though one of them is held up, ends, or is refused."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from policy.remote.served import Detour, remote_bundle, serving
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from bid_ros.core.errors import RemoteError
from bid_ros.core.observation import Observation
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote import delivery
from bid_ros.policy.remote.link import Link
from bid_ros.policy.remote.parts import HEAD, HEADER, MOST, USUAL
from bid_ros.policy.remote.wire import pack, unpack

LIMIT_S = 20.0


@pytest.fixture
def server(policy, tiny, task):
    with serving(policy, load_bundle(tiny, task), task) as server:
        yield server


@pytest.fixture
def detour(server):
    with closing(Detour(server.port)) as detour:
        yield detour


@pytest.fixture
def remote(detour, task, tmp_path):
    return load_policy(remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{detour.port}", timeout_ms=9000), task)


@pytest.fixture
def noisy(observe, task):
    """Observations whose images compress badly, each of other ones."""
    rng = np.random.default_rng(0)

    def make():
        values = dict(observe().values)
        for item in task.cameras:
            values[item.name] = rng.integers(0, 256, values[item.name].shape, np.uint8)
        return Observation(1_000_000_000, values)

    return make


class Same:
    """Asks here and there; the answers are equal."""

    def __init__(self, policy, remote, seen):
        self._both, self._seen = (policy, remote), seen
        self._rngs = np.random.default_rng(5), np.random.default_rng(5)

    def __call__(self):
        seen = self._seen()
        found = [each.sample(each.encode(seen), 4, 4, rng) for each, rng in zip(self._both, self._rngs, strict=True)]
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def sockets(remote):
    return [connection.socket for connection in remote._link._lanes._all]


def lose(monkeypatch, is_lost):
    """Say of sockets that nothing of theirs is acknowledged, as if the network lost it again and again."""
    goal = delivery._goal
    monkeypatch.setattr(delivery, "_goal", lambda plain: 1 << 62 if is_lost(plain) else goal(plain))


def test_a_question_and_its_answer_go_over_several_connections(policy, remote, server, noisy):
    same = Same(policy, remote, noisy)
    same()
    same()
    assert len(sockets(remote)) == USUAL and len(server._sessions) == 1
    sizes = [delivery.told(each)[0] for each in sockets(remote)]
    assert min(sizes) > 0.15 * sum(sizes)


@pytest.mark.parametrize("way", ["questions", "answers"])
def test_a_connection_that_is_held_up_costs_no_answer(policy, remote, detour, noisy, monkeypatch, way):
    same = Same(policy, remote, noisy)
    same()
    client = sockets(remote)[2].getsockname()[1]

    def is_lost(plain):
        asked = plain.getsockname()[1] == client
        return asked if way == "questions" else detour.behind.get(plain.getpeername()[1]) == client

    lose(monkeypatch, is_lost)
    detour.hold((client, way))
    for _ in range(3):
        same()
    if way == "questions":
        assert len(remote._link._lanes._parts) == USUAL - 1, "the next questions leave it out"
    monkeypatch.undo()
    detour.hold()  # what it held up comes now, and is dropped
    for _ in range(3):
        same()


def test_a_connection_that_ended_is_replaced_with_the_others(policy, remote, server, noisy):
    same = Same(policy, remote, noisy)
    same()
    old = sockets(remote)
    old[3].shutdown(2)
    same()
    assert len(sockets(remote)) == USUAL and not set(sockets(remote)) & set(old)


def test_a_server_that_offers_no_more_gets_one_connection(policy, remote, noisy, tmp_path, task, server, monkeypatch):
    monkeypatch.setattr("bid_ros.policy.remote.session.Session.offer", lambda self: {})
    address = f"ws://127.0.0.1:{server.port}"
    other = load_policy(remote_bundle(tmp_path / "other", task, address, timeout_ms=9000), task)
    Same(policy, other, noisy)()
    assert len(sockets(other)) == 1


def test_a_bundle_may_ask_for_one_connection(policy, noisy, tmp_path, task, server):
    address = f"ws://127.0.0.1:{server.port}"
    pointer = remote_bundle(tmp_path / "other", task, address, timeout_ms=9000, connections=1)
    other = load_policy(pointer, task)
    Same(policy, other, noisy)()
    assert pointer.settings.connections == 1 and len(sockets(other)) == 1


@pytest.mark.parametrize("place", ["x", "0123456789abcdef0123456789abcdef 1", "{session} 0", f"{{session}} {MOST}"])
def test_who_does_not_know_a_session_or_its_places_does_not_join(server, place):
    with connect(server.address, compression=None) as first:
        session = unpack(first.recv(LIMIT_S))["bid"]["session"]
        with pytest.raises(InvalidStatus, match="404"):
            connect(server.address, compression=None, additional_headers={HEADER: place.format(session=session)})
        with connect(server.address, compression=None, additional_headers={HEADER: f"{session} 3"}) as joined:
            assert unpack(joined.recv(LIMIT_S)) == {}
            with pytest.raises(InvalidStatus, match="404"):  # that place is taken
                connect(server.address, compression=None, additional_headers={HEADER: f"{session} 3"})


def test_what_is_no_part_ends_the_session_and_nothing_else(server, remote, policy, noisy):
    with connect(server.address, compression=None) as first:
        session = unpack(first.recv(LIMIT_S))["bid"]["session"]
        with connect(server.address, compression=None, additional_headers={HEADER: f"{session} 1"}) as joined:
            joined.recv(LIMIT_S)
            first.send(HEAD.pack(1, 5, 2))
            for connection in (first, joined):
                with pytest.raises(ConnectionClosed):
                    connection.recv(LIMIT_S)
            assert "part 5 of 2" in first.protocol.close_rcvd.reason
    Same(policy, remote, noisy)()


def test_what_is_wrong_with_a_question_is_said_over_the_first_connection(server):
    link = Link(server.address, 1_000_000, lambda said: None, connections=USUAL)
    with pytest.raises(RemoteError, match=r"observation '.*' is missing or no array"):
        link.ask(lambda: [pack({"bid": {"n": 1}})], LIMIT_S)


@pytest.mark.parametrize("part", [b"short", HEAD.pack(9, 3, 2)])
def test_an_answer_that_is_no_part_is_refused(remote, server, noisy, monkeypatch, part):
    monkeypatch.setattr("bid_ros.policy.remote.session.cut", lambda answer, number, count: [part] * count)
    with pytest.raises(RemoteError, match=r"policy server .* sent (5 bytes over one|part 3 of 2)"):
        remote.sample(remote.encode(noisy()), 1, 0, np.random.default_rng(0))
    assert remote._link._lanes is None
