"""The websocket server of ``bid serve``, in a thread of its own. It speaks openpi's protocol.

A client is told the metadata first. Then each of its binary messages is a question, and gets one answer: a map in
msgpack, or a text, one sentence about what is wrong. ``GET /healthz`` answers OK.

Source: Physical Intelligence, openpi, ``websocket_policy_server.py``.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.policy.remote.service import PolicyService
from bid_ros.policy.remote.wire import pack, unpack

START_S: Final = 10.0
KEPT: Final = 100_000  # times of answers


class PolicyServer:
    """Serves a policy until it is closed. Questions of all clients are answered one after the other.

    Args:
        service: answers.
        host, port: where; port 0 is any free one.
        seed: of the noise for clients that send none: each connection has a stream of its own.
        say: takes a sentence when a client comes or goes.

    Attributes:
        host, port: where it serves.
        answered, refused: questions so far.
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
    ) -> None:
        with extra("remote", "a policy server"):
            import msgpack  # noqa: F401
            import websockets  # noqa: F401
        self.host, self.port = host, port
        self.answered = self.refused = 0
        self.times_ms: deque[float] = deque(maxlen=KEPT)
        self._service, self._seed, self._say = service, seed, say
        self._numbers = count()
        self._ready = threading.Event()
        self._error: OSError | None = None
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="policy-server", daemon=True)
        self._thread.start()
        self._ready.wait(START_S)
        if self._error is not None:
            raise BidError(f"the policy cannot be served at {host} port {port}: {self._error.strerror}")

    def close(self) -> None:
        """End the server and its connections."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def report(self) -> dict[str, Any]:
        """Return questions answered and refused, and percentiles of the times of the answers, ms."""
        found: dict[str, Any] = {"answered": self.answered, "refused": self.refused}
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
            process_request=_health,
            close_timeout=1.0,
            logger=quiet,
        ) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._ready.set()
            await self._end.wait()

    async def _client(self, connection: Any) -> None:
        """Answer the questions of one client until it goes."""
        from websockets.exceptions import ConnectionClosed

        number = next(self._numbers)
        rng = np.random.default_rng((self._seed, number))
        self._say(f"client {number} came from {connection.remote_address[0]}")
        with contextlib.suppress(ConnectionClosed):
            await connection.send(pack(self._service.metadata()))
            async for message in connection:
                begin = time.monotonic()
                answer = self._answer(message, rng)
                self.times_ms.append(1000 * (time.monotonic() - begin))
                await connection.send(answer)
        self._say(f"client {number} went")

    def _answer(self, message: Any, rng: np.random.Generator) -> bytes | str:
        try:
            if isinstance(message, str):
                raise BidError("a question was a text; valid is a map in msgpack")
            answer = pack(self._service.answer(unpack(message), rng))
        except Exception as error:  # of a policy of another package, say: a question must not end the server
            self.refused += 1
            return str(error) if isinstance(error, BidError) else f"{type(error).__name__}: {error}"
        self.answered += 1
        return answer


def _health(connection: Any, request: Any) -> Any:
    return connection.respond(HTTPStatus.OK, "OK\n") if request.path == "/healthz" else None
