"""Reaching a policy server: its address, its name in the network, and a connection within a time limit."""

import socket
import ssl
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

from bid_ros.core.errors import BundleError, RemoteError
from bid_ros.policy.remote.tcp import tune

PORTS: Final = {"ws": 80, "wss": 443}
VALID: Final = "valid is HOST:PORT, ws://HOST:PORT or wss://HOST:PORT"


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
        congestion: congestion control of the last connection, as :func:`bid_ros.policy.remote.tcp.tune` returns it.
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
