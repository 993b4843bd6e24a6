"""Who may ask a server: keys, certificates, places for clients; and what strangers send to its port."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from contextlib import ExitStack
from http.client import HTTPConnection

import numpy as np
import pytest
from policy.remote.served import deaf, remote_bundle, serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bid_ros.core.errors import BundleError, RemoteError
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.dial import VARIABLE, read_key
from bid_ros.policy.remote.link import Link
from bid_ros.policy.remote.server import CLIENTS
from bid_ros.policy.remote.wire import pack, unpack
from bid_ros.teleop.page_server import own_certificate

LIMIT_S = 20.0


@pytest.fixture
def bundle(tiny, task):
    return load_bundle(tiny, task)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this computer and its key."""
    return own_certificate(tmp_path_factory.mktemp("certificate"))


def encrypted(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def answers(task, address, folder, **settings):
    """Whether a policy there samples."""
    remote = load_policy(remote_bundle(folder, task, address, timeout_ms=5000.0, **settings), task)
    remote.warm_up(1)
    return True


def test_the_key_comes_from_a_file_or_the_environment(policy, bundle, task, tmp_path, monkeypatch):
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("key-1\n")
    wrong.write_text("key-2\n")
    monkeypatch.delenv(VARIABLE, raising=False)
    with serving(policy, bundle, task, key="key-1") as server:
        address = f"ws://127.0.0.1:{server.port}"
        assert answers(task, address, tmp_path / "file", api_key_file=str(right))
        assert "key-1" not in (tmp_path / "file" / "bundle.yaml").read_text()
        with pytest.raises(RemoteError, match="refuses the connection: it asks for a key; valid is a file with"):
            answers(task, address, tmp_path / "none")
        with pytest.raises(RemoteError, match="refuses the connection: the key is not its own"):
            answers(task, address, tmp_path / "wrong_key", api_key_file=str(wrong))
        monkeypatch.setenv(VARIABLE, "key-1")
        assert answers(task, address, tmp_path / "environment")
        asked = HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S)
        asked.request("GET", "/healthz")
        assert asked.getresponse().status == 200  # as openpi's: a supervisor has no key


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff\xfe", b"x" * 5000, b"line\nline"])
def test_a_key_that_is_none_is_refused_and_not_shown(tmp_path, content):
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(RemoteError, match="holds no key; valid is one word of 1 to 4096") as caught:
        read_key(str(file))
    assert "words" not in str(caught.value) and "xxx" not in str(caught.value)
    with pytest.raises(RemoteError, match="cannot be read: No such file"):
        read_key(str(tmp_path / "absent"))


def test_an_encrypted_server_is_trusted_by_its_certificate(policy, bundle, task, tmp_path, certificate):
    with serving(policy, bundle, task, tls=encrypted(certificate), key="k") as server:
        assert server.address == f"wss://127.0.0.1:{server.port}"
        (tmp_path / "key").write_text("k")
        files = {"certificate": certificate[0], "api_key_file": str(tmp_path / "key")}
        assert answers(task, server.address, tmp_path / "trusting", **files)
        with pytest.raises(RemoteError, match=r"has no certificate that this computer trusts: .*self-signed"):
            answers(task, server.address, tmp_path / "strange")
        with pytest.raises(RemoteError, match=r"is no websocket server|ended the connection"):
            answers(task, server.address.replace("wss", "ws"), tmp_path / "plain")
    with (
        serving(policy, bundle, task) as server,
        pytest.raises(RemoteError, match=r"speaks no TLS: .*; an address without encryption begins with ws://"),
    ):
        answers(task, f"wss://127.0.0.1:{server.port}", tmp_path / "unencrypted", certificate=certificate[0])


def test_a_certificate_that_is_none_is_refused(tmp_path):
    (tmp_path / "text").write_text("no certificate")
    for file, words in (("text", "holds no certificate; valid is a file in PEM form"), ("absent", "cannot be read")):
        with pytest.raises(RemoteError, match=words):
            Link("wss://a:1", 1000, lambda said: None, certificate=str(tmp_path / file))


@pytest.mark.parametrize("address", ["ws://user:word@host:1", "ws://host:1?key=word", "ws://host:1#part"])
def test_an_address_has_no_key_in_it(address):
    with pytest.raises(BundleError, match="valid is HOST:PORT"):
        Link(address, 1000, lambda said: None)


def test_a_server_takes_so_many_clients_and_says_so_to_the_next(policy, bundle, task):
    with serving(policy, bundle, task) as server, ExitStack() as stack:
        for _ in range(CLIENTS):
            stack.enter_context(connect(f"ws://127.0.0.1:{server.port}")).recv()
        link = Link(f"127.0.0.1:{server.port}", 1_000_000, lambda said: None)
        with pytest.raises(RemoteError, match=f"HTTP 503: all {CLIENTS} places for clients are taken"):
            link.connect(LIMIT_S)
        stack.close()
        end = time.monotonic() + LIMIT_S
        while True:  # the server learns of a goodbye a little later
            try:
                link.connect(LIMIT_S)
                break
            except RemoteError:
                assert time.monotonic() < end


@pytest.mark.parametrize("place", ["ws://127.0.0.1:9/", "ws://[/"])
def test_an_answer_that_points_elsewhere_is_not_followed(place):
    """As a proxy gives it. The key is for this server alone, and a policy node must get its own kind of error."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            with listening.accept()[0] as plain:
                plain.recv(65536)
                plain.sendall(f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())

        threading.Thread(target=answer, daemon=True).start()
        link = Link(f"127.0.0.1:{listening.getsockname()[1]}", 1000, lambda said: None, key="k")
        with pytest.raises(RemoteError, match=f"HTTP 302 to {re.escape(place)}; valid is the address of the policy"):
            link.connect(LIMIT_S)


class Slow:
    """A policy that samples when it may."""

    def __init__(self, policy) -> None:
        self._policy, self.runtime, self.has_weak = policy, policy.runtime, policy.has_weak
        self.capabilities = policy.capabilities
        self.began, self.go = threading.Event(), threading.Event()
        self.encode = policy.encode

    def sample(self, *arguments):
        """Wait, and sample."""
        self.began.set()
        assert self.go.wait(LIMIT_S)
        return self._policy.sample(*arguments)


def test_a_server_that_samples_is_well_and_drops_questions_of_clients_that_are_gone(policy, bundle, task, observe):
    """Else the questions that robots have given up would be answered before those that they wait for."""
    slow, question = Slow(policy), pack({**observe().values})
    with serving(slow, bundle, task) as server:
        address = f"ws://127.0.0.1:{server.port}"
        with connect(address, max_size=None) as first, connect(address, max_size=None) as second:
            first.recv(), second.recv()
            first.send(question)
            assert slow.began.wait(LIMIT_S)
            second.send(question)
            asked = HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S)
            asked.request("GET", "/healthz")
            assert asked.getresponse().status == 200
            assert first.ping().wait(LIMIT_S), "a client took the server for dead"
            second.close()
            slow.go.set()
            assert "actions" in unpack(first.recv(LIMIT_S))
            first.send(question)
            assert "actions" in unpack(first.recv(LIMIT_S))
        assert (server.answered, server.refused, server.dropped) == (2, 0, 1)


def stranger(port, *sent):
    """Send bytes to a port; return what comes back until the other end closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as plain:
        for data in sent:
            plain.sendall(data)
        found = b""
        while data := plain.recv(65536):
            found += data
        return found


def test_what_strangers_send_ends_their_connection_alone(policy, bundle, task, observe):
    rng = np.random.default_rng(0)
    with serving(policy, bundle, task) as server, connect(f"ws://127.0.0.1:{server.port}", max_size=None) as good:
        good.recv()
        assert stranger(server.port, b"\x16\x03\x01" + rng.bytes(200) + b"\r\n\r\n")[:12] in (b"", b"HTTP/1.1 400")
        assert b"HTTP/1.1 4" in stranger(server.port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert stranger(server.port, b"GET /" + b"a" * 100_000 + b"\r\n")[:9] in (b"", b"HTTP/1.1 ")
        with connect(f"ws://127.0.0.1:{server.port}", max_size=None) as bad:
            bad.recv()
            for _ in range(50):
                bad.send(rng.bytes(int(rng.integers(0, 300))))
                assert isinstance(bad.recv(LIMIT_S), str)
            for length in range(1, 60, 7):  # a question that is cut off
                bad.send(pack(observe().values)[:-length])
                assert "no msgpack" in bad.recv(LIMIT_S)
            with pytest.raises(ConnectionClosed, match="1009"):
                bad.send(bytes(server._service.largest + 1))
                bad.recv(LIMIT_S)
        good.send(pack(observe().values))
        assert "actions" in unpack(good.recv(LIMIT_S))
        assert server.answered == 1


def test_an_encrypted_server_that_never_reads_holds_nobody_up(certificate):
    with deaf(encrypted(certificate)) as address:
        link = Link(address, 1000, lambda said: None, certificate=str(certificate[0]))
        link.connect(LIMIT_S)
        begin = time.monotonic()
        with pytest.raises(RemoteError, match="did not answer within 300 ms"):
            link.ask(lambda: [bytes(16 * 1024 * 1024)], 0.3)
        assert time.monotonic() - begin < 3.0
