"""The websocket server of ``bid serve``, in a thread of its own. It speaks openpi's protocol.

A client is told the metadata first. Then each of its binary messages is a question, and gets one answer: a map in
msgpack, or a text, one sentence about what is wrong. ``GET /healthz`` answers OK. Questions wait for each other, but
pings and connections do not wait for questions.

Source: Physical Intelligence, openpi, ``websocket_policy_server.py``.
"""

import asyncio
import contextlib
import hmac
import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.policy.remote.dial import HEADER, PONG_S, PONGS, authorization, tune
from bid_ros.policy.remote.frames import KeptFrames
from bid_ros.policy.remote.service import PolicyService
from bid_ros.policy.remote.wire import inflated, pack, unpack

START_S: Final = 10.0
KEPT: Final = 100_000  # times of answers
CLIENTS: Final = 16  # at once
WAITING: Final = 4  # messages of one client that are in memory, besides the one that is answered
OPEN_S: Final = 5.0  # for the opening of a connection
SEND_S: Final = 5.0  # for an answer
CLOSE_S: Final = 1.5  # for an orderly end


class PolicyServer:
    """Serves a policy until it is closed. Questions of all clients are answered one after the other.

    Args:
        service: answers.
        host, port: where; port 0 is any free one.
        seed: of the noise for clients that send none: each client has a stream of its own.
        say: takes a sentence when a client comes or goes.
        key: that clients have to send; empty: anybody may ask.
        tls: certificate of the server and its key, for ``wss://``; None: not encrypted.

    Attributes:
        host, port: where it serves.
        answered, refused: questions so far.
        dropped: questions of clients that were gone before their turn.
        times_ms: what the last answers took, from the whole question to the answer, ms.

    Raises:
        BidError: the address cannot be served.
    """

    def __init__(
        self,
        service: PolicyService,
        host: str,
        port: int,
        seed: int = 0,
        say: Callable[[str], object] = lambda text: None,
        key: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        with extra("remote", "a policy server"):
            import msgpack  # noqa: F401
            import websockets  # noqa: F401
        self.host, self.port = host, port
        self.answered = self.refused = self.dropped = 0
        self.times_ms: deque[float] = deque(maxlen=KEPT)
        self._service, self._seed, self._say = service, seed, say
        if tls is not None:
            # A ticket comes behind the handshake. A client that reads it in one thread while it writes in another, as
            # websockets' does, uses one state of OpenSSL twice at once: one of 300 connections never opened.
            tls.num_tickets = 0
        self._expected, self._tls = authorization(key).encode() if key else b"", tls
        self._numbers, self._clients = count(), 0
        self._ready = threading.Event()
        self._error: OSError | None = None
        self._loop = asyncio.new_event_loop()
        self._end, self._turn = asyncio.Event(), asyncio.Lock()
        self._sampling = ThreadPoolExecutor(1, "policy-sampling")
        self._thread = threading.Thread(target=self._run, name="policy-server", daemon=True)
        self._thread.start()
        self._ready.wait(START_S)
        if self._error is not None:
            raise BidError(f"the policy cannot be served at {host} port {port}: {self._error.strerror}")

    @property
    def address(self) -> str:
        """Where it serves, as clients say it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'wss' if self._tls else 'ws'}://{host}:{self.port}"

    def close(self) -> None:
        """End the server and its connections."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def report(self) -> dict[str, Any]:
        """Return questions answered and refused, and percentiles of the times of the answers, ms."""
        found: dict[str, Any] = {"answered": self.answered, "refused": self.refused, "dropped": self.dropped}
        if self.times_ms:
            p50, p99 = np.percentile(list(self.times_ms), [50, 99])
            found |= {"answer_ms_p50": round(float(p50), 2), "answer_ms_p99": round(float(p99), 2)}
        return found

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._error = error
        finally:
            self._ready.set()
            self._loop.close()
            self._sampling.shutdown()

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        quiet = logging.getLogger("bid_ros.serve")
        quiet.setLevel(logging.CRITICAL)  # a client that goes away is no error
        async with serve(
            self._client,
            self.host,
            self.port,
            compression=None,
            max_size=self._service.largest,
            origins=[None],  # no page of a browser
            process_request=self._admit,
            ssl=self._tls,
            open_timeout=OPEN_S,
            close_timeout=1.0,
            max_queue=WAITING,
            logger=quiet,
        ) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._ready.set()
            await self._end.wait()

    def _admit(self, connection: Any, request: Any) -> Any:
        """Return an answer in HTTP to what is not to become a websocket; None to what is."""
        if request.path == "/healthz":
            return connection.respond(HTTPStatus.OK, "OK\n")
        sent = " ".join(request.headers.get_all(HEADER)).encode("utf-8", "replace")
        if self._expected and not hmac.compare_digest(sent, self._expected):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "this server asks for its key\n")
        if self._clients >= CLIENTS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"all {CLIENTS} places for clients are taken\n")
        return None

    async def _client(self, connection: Any) -> None:
        """Answer the questions of one client until it goes, or takes no answers."""
        from websockets.exceptions import ConnectionClosed

        number, frames = next(self._numbers), KeptFrames()
        rng = np.random.default_rng((self._seed, number))
        congestion = tune(connection.transport.get_extra_info("socket"))
        self._say(f"client {number} came from {connection.remote_address[0]} ({congestion or 'TCP'})")
        self._clients += 1
        following: asyncio.Task[None] | None = None
        try:
            with contextlib.suppress(ConnectionClosed, TimeoutError):
                await connection.send(pack(self._service.metadata()))
                async for message in connection:
                    if (answer := await self._answered(connection, message, rng, frames)) is not None:
                        async with asyncio.timeout(SEND_S):
                            await connection.send(answer)
                        following = asyncio.create_task(_follow(connection))
        finally:
            self._clients -= 1
            if following is not None:
                following.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await connection.close()
            connection.transport.abort()  # one that took nothing any more would never end
            self._say(f"client {number} went")

    async def _answered(
        self, connection: Any, message: Any, rng: np.random.Generator, frames: KeptFrames
    ) -> bytes | str | None:
        """Return the answer to a question when it is its turn. None: its client is gone by then."""
        from websockets.protocol import State

        async with self._turn:
            if connection.state is not State.OPEN:
                self.dropped += 1
                return None
            begin = time.monotonic()
            answer = await self._loop.run_in_executor(self._sampling, self._answer, message, rng, frames)
            self.times_ms.append(1000 * (time.monotonic() - begin))
            return answer

    def _answer(self, message: Any, rng: np.random.Generator, frames: KeptFrames) -> bytes | str:
        try:
            if isinstance(message, str):
                raise BidError("a question was a text; valid is a map in msgpack")
            content = inflated(unpack(message), self._service.largest)
            answer = pack(self._service.answer(content, rng, frames))
        except Exception as error:  # of a policy of another package, say: a question must not end the server
            self.refused += 1
            return str(error) if isinstance(error, BidError) else f"{type(error).__name__}: {error}"
        self.answered += 1
        return answer


async def _follow(connection: Any) -> None:
    """Send pongs behind an answer, see :mod:`bid_ros.policy.remote.dial`."""
    from websockets.exceptions import ConnectionClosed

    with contextlib.suppress(ConnectionClosed):
        for _ in range(PONGS):
            await asyncio.sleep(PONG_S)
            await connection.pong()
