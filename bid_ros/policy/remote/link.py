"""The connection to a policy server. Whatever goes wrong ends it, so no late answer is ever taken for a new one."""

import logging
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from bid_ros.core.errors import BundleError, RemoteError
from bid_ros.core.extras import extra
from bid_ros.policy.remote.wire import unpack

PORTS: Final = {"ws": 80, "wss": 443}
LONGEST_TEXT: Final = 200  # characters of what a server says that are shown
CLOSE_S: Final = 0.1  # for a goodbye
TOO_BIG: Final = 1009  # status with which an end of a websocket refuses a message (RFC 6455, 7.4.1)


def parse_address(text: str) -> str:
    """Return an address as ``ws://HOST:PORT``; ``HOST:PORT`` will do. Raises BundleError for another text."""
    address = text if "://" in text else f"ws://{text}"
    try:
        url = urlsplit(address)
        good = url.scheme in PORTS and bool(url.hostname) and not url.path.strip("/") and (url.port is None or url.port)
    except ValueError:
        good = False
    if not good:
        raise BundleError(f"address is '{text}'; valid is HOST:PORT, ws://HOST:PORT or wss://HOST:PORT")
    return address.rstrip("/")


class Link:
    """Asks a server, one question or several at once. It connects when it is needed. One thread only.

    Args:
        address: of the server, ``ws://HOST:PORT``.
        largest: bytes of the largest message that is taken.
        greet: gets what a server says of itself, each time that it is connected to. It raises RemoteError if the
            server is not the right one.
    """

    def __init__(self, address: str, largest: int, greet: Callable[[Mapping[str, Any]], None]) -> None:
        self._address, self._largest, self._greet = parse_address(address), largest, greet
        self._socket: Any = None
        self._quiet = logging.getLogger("bid_ros.remote")
        self._quiet.setLevel(logging.CRITICAL)  # a broken connection is said in one sentence, not in a traceback

    def connect(self, limit_s: float) -> None:
        """Connect, if there is no connection. Raises RemoteError as :meth:`ask`."""
        self._guarded(self._connected, limit_s)

    def ask(self, questions: Sequence[bytes], limit_s: float) -> list[dict[str, Any]]:
        """Send questions and return their answers, in order.

        Args:
            questions: packed maps.
            limit_s: time for everything, connecting included, s.

        Raises:
            RemoteError: the server cannot be reached, is not the right one, or did not give a map for each question in
                time. The connection is closed then.
        """
        answers: list[dict[str, Any]] = self._guarded(lambda end: self._asked(questions, end), limit_s)
        return answers

    def close(self) -> None:
        """End the connection, at once."""
        ended, self._socket = self._socket, None
        if ended is not None:
            with suppress(OSError):  # its threads end with the socket; nothing waits for the other end
                ended.socket.shutdown(socket.SHUT_RDWR)

    def refuse(self, what: str) -> RemoteError:
        """Close the connection; return the error that the server sent ``what``."""
        self.close()
        return RemoteError(f"policy server {self._address} sent {what}")

    def _guarded(self, work: Callable[[float], Any], limit_s: float) -> Any:
        """Do something until an end in s of the steady clock. Turn what goes wrong into one sentence."""
        with extra("remote", "a policy elsewhere"):
            from websockets.exceptions import ConnectionClosed, WebSocketException
        server, end = f"policy server {self._address}", time.monotonic() + limit_s
        late = f"{server} did not answer within {1000 * limit_s:.0f} ms"
        try:
            return work(end)
        except TimeoutError:
            problem = late
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == TOO_BIG and not error.rcvd_then_sent:
                problem = f"{server} sent a message of more than {self._largest} bytes"
            elif time.monotonic() >= end:  # a question could not be sent to its end
                problem = late
            else:
                problem = f"{server} ended the connection{_reason(error)}"
        except WebSocketException as error:
            problem = f"{server} is no websocket server: {_line(str(error))}"
        except OSError as error:
            problem = f"{server} cannot be reached: {_line(error.strerror or str(error))}"
        except RemoteError:
            self.close()
            raise
        self.close()
        raise RemoteError(problem)

    def _connected(self, end: float) -> Any:
        """Return the websocket."""
        if self._socket is not None:
            return self._socket
        from websockets.sync.client import connect

        url = urlsplit(self._address)
        left = _left(end)
        plain = socket.create_connection((url.hostname, url.port or PORTS[url.scheme]), timeout=left)
        try:
            plain.settimeout(None)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = connect(
                self._address,
                sock=plain,
                proxy=None,
                compression=None,
                max_size=self._largest,
                open_timeout=_left(end),
                close_timeout=CLOSE_S,
                logger=self._quiet,
            )
        except BaseException:
            plain.close()
            raise
        self._greet(self._answer(self._socket, end))
        return self._socket

    def _asked(self, questions: Sequence[bytes], end: float) -> list[dict[str, Any]]:
        connection = self._connected(end)
        with suppress(TimeoutError):
            connection.recv(timeout=0)
            raise self.refuse("a message before it was asked")
        left = _left(end)
        # A full buffer of a dead connection would hold up the sender for minutes.
        limit = struct.pack("ll", int(left), int(left % 1 * 1e6) + 1)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        for question in questions:
            connection.send(question)
        return [self._answer(connection, end) for _ in questions]

    def _answer(self, connection: Any, end: float) -> dict[str, Any]:
        message = connection.recv(timeout=_left(end))
        if isinstance(message, str):
            raise self.refuse(f"no answer but a text: {_line(message)}")
        try:
            return unpack(message)
        except RemoteError as error:
            raise self.refuse(str(error)) from error


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _line(text: str) -> str:
    """Return the last line of a text, which names the error in a traceback, shortened."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return lines[-1][:LONGEST_TEXT] if lines else "nothing"


def _reason(error: Any) -> str:
    return f": {_line(error.rcvd.reason)}" if error.rcvd is not None and error.rcvd.reason else ""
