"""One connection carries the questions of a client: in order, replaced when it ended, and nobody is held up by it."""

from __future__ import annotations

import socket
import threading
import time

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving
from websockets.frames import Opcode
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from bid_ros.core.errors import RemoteError
from bid_ros.core.observation import Observation
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.link import Link
from bid_ros.policy.remote.server import CLIENTS, PolicyServer
from bid_ros.policy.remote.wire import pack

LIMIT_S = 20.0


@pytest.fixture
def server(policy, tiny, task):
    with serving(policy, load_bundle(tiny, task), task) as server:
        yield server


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


def test_several_questions_at_once_are_answered_in_order(server, noisy):
    link, seen = Link(server.address, 1_000_000, lambda said: None), noisy().values
    numbers = range(1, 6)
    answers = link.ask(lambda: [pack({**seen, "bid": {"number": number}}) for number in numbers], LIMIT_S)
    assert [answer["bid"]["number"] for answer in answers] == list(numbers)
    assert server._clients == 1


def test_what_is_wrong_with_a_question_is_said(server):
    link = Link(server.address, 1_000_000, lambda said: None)
    with pytest.raises(RemoteError, match=r"observation '.*' is missing or no array"):
        link.ask(lambda: [pack({"bid": {"n": 1}})], LIMIT_S)


def test_a_connection_that_ended_costs_no_decision_and_no_other_noise(policy, server, noisy, task, tmp_path):
    remote = load_policy(remote_bundle(tmp_path / "remote", task, server.address, timeout_ms=9000), task)
    here, there = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(3):
        seen = noisy()
        ours = policy.sample(policy.encode(seen), 4, 4, here)
        theirs = remote.sample(remote.encode(seen), 4, 4, there)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
        remote._link._connection.socket.shutdown(socket.SHUT_RDWR)


def test_a_client_that_takes_nothing_holds_up_neither_its_place_nor_the_end(server, monkeypatch):
    monkeypatch.setattr("bid_ros.policy.remote.server.SEND_S", 0.2)
    monkeypatch.setattr("bid_ros.policy.remote.server.CLOSE_S", 0.2)
    monkeypatch.setattr(PolicyServer, "_answer", lambda *_: bytes(64 * 1024 * 1024))
    with connect(server.address, compression=None, max_size=None) as first:
        first.recv(LIMIT_S)
        first.send(b"question")
        end = time.monotonic() + LIMIT_S
        while server._clients and time.monotonic() < end:  # its queue is full of one message that nobody takes
            time.sleep(0.01)
    assert server._clients == 0 < CLIENTS


def test_a_bundle_of_several_connections_is_still_read(server, task, tmp_path):
    """Bundles said so while a policy could have several."""
    folder = remote_bundle(tmp_path / "old", task, server.address, timeout_ms=9000).path
    manifest = folder / "bundle.yaml"
    text = manifest.read_text()
    assert "  address:" in text
    manifest.write_text(text.replace("  address:", "  connections: 4\n  address:"))
    old = load_bundle(folder, task)
    assert old.settings.timeout_ms == 9000
    load_policy(old, task).warm_up(1)
    manifest.write_text(text.replace("  address:", "  connexions: 4\n  address:"))
    with pytest.raises(Exception, match="unknown field 'connexions'"):
        load_bundle(folder, task)


def listening(kind):
    """A connection that keeps which frames came, and says when a pong did."""

    class Listening(kind):
        def __init__(self, *given, **named):
            self.came, self.followed = [], threading.Event()
            super().__init__(*given, **named)

        def process_event(self, event):
            if getattr(event, "opcode", None) is not None:
                self.came.append(event.opcode)
                if event.opcode is Opcode.PONG:
                    self.followed.set()
            super().process_event(event)

    return Listening


def test_an_answer_is_followed_by_a_pong(policy, tiny, task, observe):
    question = pack(observe().values)
    with (
        serving(policy, load_bundle(tiny, task), task) as server,
        connect(server.address, create_connection=listening(ClientConnection), compression=None) as client,
    ):
        client.recv(LIMIT_S)
        for _ in range(2):
            client.followed.clear()
            client.send(question)
            assert isinstance(client.recv(LIMIT_S), bytes)
            assert client.followed.wait(LIMIT_S)
    assert client.came[:3] == [Opcode.BINARY, Opcode.BINARY, Opcode.PONG]
    assert client.came.count(Opcode.PONG) >= 2


def test_a_question_is_followed_by_a_pong(task, observe, tmp_path):
    chunk = np.zeros((task.horizon - task.observation_steps + 1, task.action_dim))
    seen = []

    def answer(connection):
        seen.append(connection)
        connection.send(pack({}))
        for _ in connection:
            if connection.followed.wait(LIMIT_S):  # or there is no answer
                connection.send(pack({"actions": chunk}))

    created = listening(ServerConnection)
    server = serve(answer, "127.0.0.1", 0, create_connection=created, compression=None, max_size=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        policy = load_policy(remote_bundle(tmp_path / "remote", task, address, timeout_ms=1000 * LIMIT_S), task)
        chunks, _ = policy.sample(policy.encode(observe()), 1, 0, np.random.default_rng(0))
    finally:
        server.shutdown()
        thread.join()
    assert chunks.shape == (1, task.horizon, task.action_dim)
    assert seen[-1].came[:2] == [Opcode.BINARY, Opcode.PONG]
