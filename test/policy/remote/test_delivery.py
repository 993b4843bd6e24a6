"""What is sent behind a message: pongs in packets of their own, both ways; and which part of it is late."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving
from websockets.frames import Opcode
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote import delivery
from bid_ros.policy.remote.delivery import Delivery, told, unhindered, unsent
from bid_ros.policy.remote.wire import pack

LIMIT_S = 20.0


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
    assert client.came[:5] == [Opcode.BINARY, Opcode.BINARY, Opcode.PONG, Opcode.BINARY, Opcode.PONG]


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


def test_what_the_kernel_has_not_sent_is_counted():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        sender = socket.create_connection(listener.getsockname())
        taker, _ = listener.accept()
        with closing(sender), closing(taker):
            assert unsent(sender) == 0
            sender.setblocking(False)
            with pytest.raises(BlockingIOError):
                while True:  # nobody takes it
                    sender.send(bytes(1 << 20))
            left = unsent(sender)
            assert left > 0
            watch = Delivery([sender])
            assert watch.waiting() == [0] and watch.pongs() == [] and not watch.is_done, "a pong would share a packet"
            end = time.monotonic() + LIMIT_S
            while unsent(sender) == left and time.monotonic() < end:
                taker.recv(1 << 20)
            assert unsent(sender) < left
        assert unsent(sender) == 0  # closed
        assert watch.waiting() == []


@pytest.fixture
def pairs():
    """Three connections of TCP, each as its two ends."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        found = [(socket.create_connection(listener.getsockname()), listener.accept()[0]) for _ in range(3)]
        yield found
        for pair in found:
            for end in pair:
                end.close()


def until(holds):
    end = time.monotonic() + LIMIT_S
    while not holds() and time.monotonic() < end:
        time.sleep(0.001)
    assert holds()


def test_a_message_is_watched_until_it_is_acknowledged(pairs):
    sender, _ = pairs[0]
    before, trip_s = told(sender)
    sender.sendall(bytes(1000))
    watch = Delivery([sender])
    until(lambda: not watch.waiting())
    assert told(sender)[0] == before + 1000 and 0 < trip_s < LIMIT_S
    assert not watch.is_done and watch.pongs() == [0]
    assert watch.is_done and watch.pongs() == [] and watch.late() == []


def test_a_part_that_is_late_goes_over_the_next_connection_that_has_delivered(pairs, monkeypatch):
    """Only the kernel of another computer can leave something unacknowledged, so it is said of the first and second."""
    sockets = [sender for sender, _ in pairs]
    monkeypatch.setattr(delivery, "_goal", lambda plain: 0 if plain is sockets[2] else 1 << 62)
    now = [100.0]
    monkeypatch.setattr(delivery, "time", SimpleNamespace(monotonic=lambda: now[0]))
    watch = Delivery(sockets)
    assert watch.waiting() == [0, 1] and watch.late() == [] and watch.pongs() == [0, 1, 2]
    assert watch.pongs() == []
    now[0] += delivery.AGAIN_S
    assert watch.late() == [] and watch.pongs() == [0, 1]
    now[0] += delivery.LATE_S + delivery.LATE_TRIPS * max(told(plain)[1] for plain in sockets)
    assert watch.late() == [(0, 2), (1, 2)] and watch.late() == [], "each once"
    assert unhindered("abc", sockets, [watch]) == ["c"] and unhindered("ab", sockets[:2], [watch]) == ["a", "b"]


def test_where_the_kernel_tells_nothing_one_pong_is_sent_and_nothing_is_late():
    one, other = socket.socketpair()  # no TCP
    with closing(one), closing(other):
        watch = Delivery([one])
        assert watch.waiting() == [] and watch.pongs() == [0] and watch.pongs() == [] and watch.is_done
