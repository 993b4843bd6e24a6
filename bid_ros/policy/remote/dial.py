"""Reaching a policy server: its address and name in the network, the key that it may ask for, and a tuned connection.

TCP's usual congestion control, cubic, takes a lost packet for a full link and then sends few packets at once. BBR
measures the link instead. Linux offers it to everybody where ``tcp_bbr`` is loaded and allowed.

The receiver reports a gap when a later packet arrives. Behind the last packet of a message nothing comes, and Linux
waits for more than 200 ms before it sends that one again. So both ends send empty pongs behind each message. Every end
of a websocket ignores those that come unasked.

Sources: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016; Cheng et al., "The RACK-TLP
Loss Detection Algorithm for TCP", RFC 8985; Fette & Melnikov, "The WebSocket Protocol", RFC 6455, Section 5.5.3.

The key comes from a file or the environment, never from the command line.
"""

import os
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bid_ros.core.errors import BundleError, RemoteError

WANTED: Final = "bbr"
PONG_S, PONGS = 0.01, 4  # between two pongs; number of pongs behind an answer
NAME_BYTES: Final = 16  # of a congestion control, TCP_CA_NAME_MAX of Linux
VARIABLE: Final = "BID_API_KEY"
HEADER, SCHEME = "Authorization", "Api-Key"  # as openpi's client sends it
LONGEST: Final = 4096  # characters
PORTS: Final = {"ws": 80, "wss": 443}
VALID: Final = "valid is HOST:PORT, ws://HOST:PORT or wss://HOST:PORT"


def tune(plain: Any) -> str:
    """Set up a connected TCP socket; return its congestion control, such as ``bbr``, empty if the system names none."""
    with suppress(OSError):  # it has ended already
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    option = getattr(socket, "TCP_CONGESTION", None)  # Linux and FreeBSD have it
    if option is None:
        return ""
    with suppress(OSError):  # not there, or not allowed: the system's own stays
        plain.setsockopt(socket.IPPROTO_TCP, option, WANTED.encode())
    with suppress(OSError):
        name: bytes = plain.getsockopt(socket.IPPROTO_TCP, option, NAME_BYTES)
        return name.split(b"\0")[0].decode()
    return ""


def read_key(file: str) -> str:
    """Return the key: the content of a file; without one, the variable BID_API_KEY; without both, nothing.

    Raises:
        RemoteError: the file cannot be read, or the key is not one word of visible ASCII characters.
    """
    if not file:
        found, where = os.environ.get(VARIABLE, ""), f"the variable {VARIABLE}"
        return _checked(found, where) if found else ""
    try:
        found = Path(file).expanduser().read_bytes()[: LONGEST + 2].decode("ascii", "replace")
    except OSError as error:
        raise RemoteError(f"the file of the key, {file}, cannot be read: {error.strerror}") from error
    return _checked(found, f"the file {file}")


def authorization(key: str) -> str:
    """Return the value of the header that a client with this key sends."""
    return f"{SCHEME} {key}"


def _checked(text: str, where: str) -> str:
    """Return a key without white space around it. What is refused is not shown: it may be the key."""
    key = text.strip()
    if not key or len(key) > LONGEST or not all("!" <= character <= "~" for character in key):
        raise RemoteError(f"{where} holds no key; valid is one word of 1 to {LONGEST} visible ASCII characters")
    return key


def parse_address(text: str) -> str:
    """Return an address as ``ws://HOST:PORT``; ``HOST:PORT`` will do. Raises BundleError for another text."""
    address = text if "://" in text else f"ws://{text}"
    try:
        url = urlsplit(address)
        good = url.scheme in PORTS and bool(url.hostname) and (url.port is None or bool(url.port))
        good = good and not url.path.strip("/") and "@" not in url.netloc and not url.query and not url.fragment
    except ValueError:
        good = False
    if not good:
        raise BundleError(f"address is '{text}'; {VALID}")
    return address.rstrip("/")


def seconds_left(end: float) -> float:
    """Return the seconds until a time of the steady clock. Raises TimeoutError if it has passed."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def trusting(certificate: str) -> ssl.SSLContext:
    """Return the settings of TLS that trust the certificates of a file; empty: those that this computer trusts.

    Raises:
        RemoteError: the file cannot be read, or is no certificate.
    """
    try:
        return ssl.create_default_context(cafile=certificate or None)
    except ssl.SSLError as error:
        raise RemoteError(f"{certificate} holds no certificate; valid is a file in PEM form") from error
    except OSError as error:
        raise RemoteError(f"the certificate {certificate} cannot be read: {error.strerror}") from error


class Dialler:
    """Connects to a server. It keeps the addresses that the server's name stood for, until one fails.

    Args:
        address: of the server, as :func:`parse_address` returns it.

    Attributes:
        congestion: congestion control of the last connection, as :func:`bid_ros.policy.remote.dial.tune` returns it.
    """

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        self._host, self._port = url.hostname or "", url.port or PORTS[url.scheme]
        self._known: list[Any] = []
        self.congestion = ""

    def connected(self, end: float) -> socket.socket:
        """Return a connection. Each address gets an equal share of the time that is left.

        Raises:
            TimeoutError: there was none in time.
            OSError: no address of the server takes one, or its name is not known.
        """
        known = self._known = self._known or self._found(end)
        problem: OSError = TimeoutError()
        for number, (family, kind, protocol, _, address) in enumerate(known):
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(seconds_left(end) / (len(known) - number))
                plain.connect(address)
                plain.settimeout(None)
                self.congestion = tune(plain)
                self._known = known[number:]  # those before it give no answer
                return plain
            except OSError as error:
                plain.close()
                problem = error
        self._known = []
        raise problem

    def _found(self, end: float) -> list[Any]:
        """Ask for the addresses of the name. A name server that does not answer would hold up the asker for long."""
        found: list[Any] = []
        problems: list[OSError] = []

        def ask() -> None:
            try:
                found.extend(socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM))
            except OSError as error:
                problems.append(error)
            except UnicodeError:
                problems.append(OSError(f"'{self._host}' is no name of a computer"))

        asking = threading.Thread(target=ask, name="name of the policy server", daemon=True)
        asking.start()
        asking.join(seconds_left(end))
        if asking.is_alive():
            raise TimeoutError
        if problems:
            raise problems[0]
        return found
