"""Several connections carry each message: the same chunks, though one of them is held up, ends, or is refused."""

from __future__ import annotations

import time
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
from bid_ros.policy.remote.parts import HEAD, HEADER, MARK, MOST, USUAL
from bid_ros.policy.remote.server import PolicyServer
from bid_ros.policy.remote.session import Session
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


def widened(remote):
    """Wait until a new link has opened its other connections."""
    for thread in remote._link._widening:
        thread.join(LIMIT_S)


def test_a_connection_that_ended_is_replaced_and_its_answer_waits_for_one_alone(policy, remote, noisy):
    same = Same(policy, remote, noisy)
    same()
    old = sockets(remote)
    old[3].shutdown(2)
    same()
    widened(remote)
    same()
    assert len(sockets(remote)) == USUAL and not set(sockets(remote)) & set(old)


@pytest.mark.parametrize("greeted", [False, True])
def test_a_connection_that_cannot_be_opened_is_missed_and_no_answer(
    policy, server, noisy, task, tmp_path, monkeypatch, greeted
):
    """It is refused, or it is not greeted in time."""
    if greeted:
        monkeypatch.setattr(Session, "has_place", lambda self, index: index != 2)
    else:

        async def silent(self, connection, index):
            await connection.wait_closed()

        monkeypatch.setattr(Session, "join", silent)
        monkeypatch.setattr("bid_ros.policy.remote.lanes.GREETED_S", 0.05)
    pointer = remote_bundle(tmp_path / "other", task, f"ws://127.0.0.1:{server.port}", timeout_ms=9000)
    other = load_policy(pointer, task)
    Same(policy, other, noisy)()
    widened(other)
    Same(policy, other, noisy)()
    assert len(sockets(other)) == (USUAL - 1 if greeted else 1)


def test_what_is_opened_after_the_end_is_ended(remote):
    lanes, opened = remote._link._lanes, []
    remote._link.close()
    lanes._open("", lambda headers: opened.append(remote._link._opened({}, time.monotonic() + LIMIT_S)) or opened[0])
    with pytest.raises(ConnectionClosed):
        opened[0].recv(LIMIT_S)


def test_several_questions_at_once_go_over_one_connection(server, noisy):
    link, seen = Link(server.address, 1_000_000, lambda said: None, connections=USUAL), noisy().values
    link.connect(LIMIT_S)
    numbers = range(1, 6)
    answers = link.ask(lambda: [pack({**seen, "bid": {"number": number}}) for number in numbers], LIMIT_S)
    assert [answer["bid"]["number"] for answer in answers] == list(numbers)


def test_a_connection_that_takes_nothing_holds_up_neither_its_place_nor_the_end(server, noisy, monkeypatch):
    monkeypatch.setattr("bid_ros.policy.remote.session.SEND_S", 0.2)
    monkeypatch.setattr("bid_ros.policy.remote.session.CLOSE_S", 0.2)
    monkeypatch.setattr(PolicyServer, "_answer", lambda *_: bytes(64 * 1024 * 1024))
    with connect(server.address, compression=None, max_size=None) as first:
        first.recv(LIMIT_S)
        first.send(b"question")
        end = time.monotonic() + LIMIT_S
        while server._sessions and time.monotonic() < end:  # its queue is full of one message that nobody takes
            time.sleep(0.01)
    assert not server._sessions


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
            first.send(HEAD.pack(MARK, 1, 5, 2))
            for connection in (first, joined):
                with pytest.raises(ConnectionClosed):
                    connection.recv(LIMIT_S)
            assert "part 5 of 2" in first.protocol.close_rcvd.reason
    Same(policy, remote, noisy)()


def test_what_is_wrong_with_a_question_is_said_over_the_first_connection(server):
    link = Link(server.address, 1_000_000, lambda said: None, connections=USUAL)
    with pytest.raises(RemoteError, match=r"observation '.*' is missing or no array"):
        link.ask(lambda: [pack({"bid": {"n": 1}})], LIMIT_S)


@pytest.mark.parametrize("part", [b"\xc1part", HEAD.pack(MARK, 9, 3, 2)])
def test_an_answer_that_is_no_part_is_refused(remote, server, noisy, monkeypatch, part):
    monkeypatch.setattr("bid_ros.policy.remote.session.cut", lambda answer, number, count: [part] * count)
    with pytest.raises(RemoteError, match=r"policy server .* sent (a part of a message of 5 bytes|part 3 of 2)"):
        remote.sample(remote.encode(noisy()), 1, 0, np.random.default_rng(0))
    assert remote._link._lanes is None
