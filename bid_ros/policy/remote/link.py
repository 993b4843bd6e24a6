"""The connection to a policy server. Whatever goes wrong ends it, so no late answer is ever taken for a new one."""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from bid_ros.core.errors import RemoteError
from bid_ros.core.extras import extra
from bid_ros.policy.remote.dial import (
    HEADER,
    PONG_S,
    VARIABLE,
    Dialler,
    authorization,
    parse_address,
    seconds_left,
    trusting,
)
from bid_ros.policy.remote.wire import unpack

LONGEST_TEXT: Final = 200  # characters of what a server says that are shown
CLOSE_S: Final = 0.1  # for a goodbye
PING_S: Final = 20.0  # a router forgets a connection that is silent
TOO_BIG: Final = 1009  # status with which an end of a websocket refuses a message (RFC 6455, 7.4.1)


class Link:
    """Asks a server, one question or several at once. It connects when it is needed. One thread only.

    Args:
        address: of the server, ``ws://HOST:PORT``.
        largest: bytes of the largest message that is taken.
        greet: gets what a server says of itself, each time that it is connected to. It raises RemoteError if the
            server is not the right one.
        key: that the server asks for; empty: none.
        certificate: see :func:`bid_ros.policy.remote.dial.trusting`.

    Attributes:
        asked_bytes: of the last questions.

    Raises:
        RemoteError: the certificate is none.
    """

    def __init__(
        self,
        address: str,
        largest: int,
        greet: Callable[[Mapping[str, Any]], None],
        key: str = "",
        certificate: str = "",
    ) -> None:
        self._address, self._largest, self._greet = parse_address(address), largest, greet
        self._key = key
        self._tls = trusting(certificate) if self._address.startswith("wss:") else None
        self._dialler = Dialler(self._address)
        self._connection: Any = None
        self.asked_bytes = 0
        self._quiet = logging.getLogger("bid_ros.remote")
        self._quiet.setLevel(logging.CRITICAL)  # a broken connection is said in one sentence, not in a traceback

    @property
    def congestion(self) -> str:
        """Congestion control of the connection, such as ``bbr``; empty if the system names none."""
        return self._dialler.congestion

    def connect(self, limit_s: float) -> None:
        """Connect, if there is no connection. Raises RemoteError as :meth:`ask`."""
        self._guarded(self._connected, limit_s)

    def ask(self, questions: Callable[[], Sequence[bytes]], limit_s: float) -> list[dict[str, Any]]:
        """Send questions and return their answers, in order.

        A connection that ended since the last questions, because the server was started again, say, is replaced once.

        Args:
            questions: returns packed maps. It is called when there is a connection, after ``greet``.
            limit_s: time for everything, connecting included, s.

        Raises:
            RemoteError: the server cannot be reached, is not the right one, or did not give a map for each question in
                time. The connection is closed then.
        """
        answers: list[dict[str, Any]] = self._guarded(lambda end: self._asked_twice(questions, end), limit_s)
        return answers

    def close(self) -> None:
        """End the connection, at once."""
        ended, self._connection = self._connection, None
        if ended is not None:
            _end(ended)

    def refuse(self, what: str) -> RemoteError:
        """Close the connection; return the error that the server sent ``what``."""
        self.close()
        return RemoteError(f"policy server {self._address} sent {what}")

    def _guarded(self, work: Callable[[float], Any], limit_s: float) -> Any:
        """Do something until an end in s of the steady clock. Turn what goes wrong into one sentence."""
        with extra("remote", "a policy elsewhere"):
            from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
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
        except InvalidStatus as error:
            problem = f"{server} refuses the connection: {self._refusal(error.response)}"
        except WebSocketException as error:
            hint = "" if self._tls else "; the address of an encrypted one begins with wss://"
            problem = f"{server} is no websocket server: {_line(str(error))}{hint}"
        except ssl.SSLCertVerificationError as error:
            problem = f"{server} has no certificate that this computer trusts: {_line(error.verify_message)}"
        except ssl.SSLError as error:
            problem = f"{server} speaks no TLS: {_line(str(error))}; an address without encryption begins with ws://"
        except OSError as error:
            problem = f"{server} cannot be reached: {_line(error.strerror or str(error))}"
        except ValueError as error:
            if not isinstance(error.__context__, InvalidStatus):
                self.close()
                raise
            problem = f"{server} refuses the connection: {_redirection(error.__context__.response)}"
        except BaseException:  # of RemoteError, too: nothing may come of this connection any more
            self.close()
            raise
        self.close()
        raise RemoteError(problem)

    def _refusal(self, response: Any) -> str:
        """Return the reason for which a server did not open a websocket."""
        if response.status_code == 401:
            valid = f"valid is a file with the server's key, or the variable {VARIABLE}"
            return f"the key is not its own; {valid}" if self._key else f"it asks for a key; {valid}"
        body = response.body.decode("utf-8", "replace") if response.body else ""
        return f"HTTP {response.status_code}" + (f": {_line(body)}" if body.strip() else "")

    def _connected(self, end: float) -> Any:
        """Return the connection, greeted."""
        if self._connection is None:
            self._connection = self._opened(end)
            self._greet(self._answer(end))
        return self._connection

    def _opened(self, end: float) -> Any:
        from websockets.sync.client import connect

        plain = self._dialler.connected(end)
        try:
            return connect(
                self._address,
                sock=plain,
                ssl=self._tls,
                proxy=None,
                compression=None,
                additional_headers={HEADER: authorization(self._key)} if self._key else None,
                max_size=self._largest,
                open_timeout=seconds_left(end),
                close_timeout=CLOSE_S,
                ping_interval=PING_S,
                ping_timeout=None,  # a server that compiles a network answers no ping; questions have time limits
                logger=self._quiet,
            )
        except BaseException:
            plain.close()
            raise

    def _asked_twice(self, questions: Callable[[], Sequence[bytes]], end: float) -> list[dict[str, Any]]:
        from websockets.exceptions import ConnectionClosed

        old = self._connection is not None
        try:
            return self._asked(questions, end)
        except ConnectionClosed as error:
            ended_here = error.sent is not None and not error.rcvd_then_sent  # what came was no valid message
            if not old or ended_here or time.monotonic() >= end:
                raise
        self.close()
        return self._asked(questions, end)

    def _asked(self, questions: Callable[[], Sequence[bytes]], end: float) -> list[dict[str, Any]]:
        connection = self._connected(end)
        with suppress(TimeoutError):
            connection.recv(timeout=0)
            raise self.refuse("a message before it was asked")
        messages = questions()
        self.asked_bytes = sum(map(len, messages))
        # Sending over a dead connection would take minutes.
        limit = threading.Timer(seconds_left(end), _end, [connection])
        limit.start()
        try:
            for message in messages:
                connection.send(message)
            return [self._answer(end) for _ in messages]
        finally:
            limit.cancel()

    def _answer(self, end: float) -> dict[str, Any]:
        message = self._received(end)
        if not isinstance(message, bytes):
            raise self.refuse(f"no answer but a text: {_line(message)}")
        try:
            return unpack(message)
        except RemoteError as error:
            raise self.refuse(str(error)) from error

    def _received(self, end: float) -> bytes | str:
        """Return the next message. Meanwhile send pongs, see :mod:`bid_ros.policy.remote.dial`."""
        from websockets.exceptions import ConnectionClosed
        from websockets.protocol import State

        while True:
            left = seconds_left(end)
            with suppress(TimeoutError):
                message: bytes | str = self._connection.recv(timeout=min(PONG_S, left))
                return message
            # A pong into a connection that ends closes it at once, with the server's last words still unread.
            if self._connection.protocol.state is State.OPEN:
                with suppress(ConnectionClosed):
                    self._connection.pong()


def _end(connection: Any) -> None:
    """End a connection at once. Any thread may do it."""
    with suppress(OSError):  # its threads end with the socket; nothing waits for the other end
        connection.socket.shutdown(socket.SHUT_RDWR)


def _line(text: str) -> str:
    """Return the last line of a text, which names the error in a traceback, shortened."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return lines[-1][:LONGEST_TEXT] if lines else "nothing"


def _redirection(response: Any) -> str:
    """Return where an HTTP answer sends the client. It is not followed: the key is for this server alone."""
    place = _line(response.headers.get("Location", ""))
    return f"HTTP {response.status_code} to {place}; valid is the address of the policy server itself"


def _reason(error: Any) -> str:
    return f": {_line(error.rcvd.reason)}" if error.rcvd is not None and error.rcvd.reason else ""
