"""Servers for tests: the real one in a thread, and one that answers as it is told."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.remote.config import RemoteConfig
from bid_ros.policy.remote.pointing import ask_metadata, write_remote_bundle
from bid_ros.policy.remote.server import PolicyServer
from bid_ros.policy.remote.service import PolicyService
from bid_ros.policy.remote.wire import own_words, pack, unpack


@contextmanager
def serving(policy: Policy, bundle: Bundle, task: Task, port: int = 0, **settings: Any) -> Iterator[PolicyServer]:
    """A real server on loopback."""
    server = PolicyServer(PolicyService(policy, bundle, task), "127.0.0.1", port, **settings)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def talking(*says: Callable[[Any], Any] | bytes | str) -> Iterator[str]:
    """A server that says its first message on connection, and the others to one question each; yield its address.

    A message may also be a function of the connection.
    """

    def client(connection: Any) -> None:
        with suppress(ConnectionClosed):
            for number, message in enumerate(says):
                if number:
                    connection.recv()
                if callable(message):
                    message(connection)
                else:
                    connection.send(message)
            connection.recv()

    server = serve(client, "127.0.0.1", 0, compression=None, max_size=None)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


def holding(task: Task, asked: list[str]) -> Callable[[Any], None]:
    """A message of :func:`talking`: a server as those of openpi, that holds the tool and keeps the texts it reads."""

    def serve(connection: Any) -> None:
        connection.send(pack({}))
        while True:
            seen = unpack(connection.recv())
            asked.append(seen["prompt"])
            rows = np.concatenate([seen[item.name] for item in task.action])[None].repeat(task.horizon, 0)
            connection.send(pack({"actions": rows}))

    return serve


@contextmanager
def deaf(tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that greets, and never reads again; yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def greet() -> None:
        client, _ = listener.accept()
        client = tls.wrap_socket(client, server_side=True) if tls else client
        taken.append(client)
        key = re.search(rb"Sec-WebSocket-Key: (\S+)", client.recv(65536))
        assert key is not None
        digest = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        head = b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        client.sendall(head + base64.b64encode(digest) + b"\r\n\r\n\x82\x01\x80")  # and an empty map

    thread = threading.Thread(target=greet, daemon=True)
    thread.start()
    try:
        yield f"{'wss' if tls else 'ws'}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        for each in (*taken, listener):
            each.close()
        thread.join()


def remote_bundle(folder: Path, task: Task, address: str, **settings: Any) -> Bundle:
    """Write the bundle that points to a server, as ``bid remote`` does."""
    config = RemoteConfig(address, **settings)
    return write_remote_bundle(folder, task, config, own_words(ask_metadata(config, 5.0)))
