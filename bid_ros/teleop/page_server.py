"""Serves one page, and the websocket of the one browser that drives, with a certificate of this computer's own."""

import contextlib
import hashlib
import hmac
import json
import logging
import os
import select
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra

SELF: Final = "self"  # in place of a file
DAYS: Final = 825  # longer ones are refused by phones
AWAY: Final = ("192.0.2.1", 9)  # a documentation address: nothing is sent to it


def own_address() -> str:
    """Return the address of this computer in its network; that of the loopback if it is in none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(AWAY)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def own_certificate(folder: Path | None = None) -> tuple[str, str]:
    """Return the files of a self-signed certificate and its key, made once for the names of this computer.

    Args:
        folder: where they are kept; None: in the user's data (``XDG_DATA_HOME``, or ``~/.local/share``).

    Raises:
        BidError: openssl is not installed, or it cannot make one.
    """
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    folder = folder or home / "bid_ros" / "page"
    names = f"DNS:{socket.gethostname()},DNS:localhost,IP:127.0.0.1,IP:{own_address()}"
    # The names are part of the file's: in another network the computer has another address.
    stem = hashlib.sha256(names.encode()).hexdigest()[:12]
    certificate, key = folder / f"{stem}.crt", folder / f"{stem}.key"
    if not (certificate.exists() and key.exists()):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(certificate, key, names)
    return str(certificate), str(key)


def fingerprint(certificate: str) -> str:
    """Return the SHA-256 of a certificate, as browsers show it."""
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(Path(certificate).read_text()))
    return digest.digest().hex(":").upper()


def _make(certificate: Path, key: Path, names: str) -> None:
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-days", str(DAYS), "-subj", "/CN=bid_ros", "-addext", f"subjectAltName={names}"]
    words += ["-keyout", str(key), "-out", str(certificate)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        needed = "a certificate of this computer's own needs openssl; install it with: apt-get install openssl"
        raise BidError(needed) from error
    if done.returncode:
        raise BidError(f"openssl made no certificate: {done.stderr.strip().splitlines()[-1]}")
    key.chmod(0o600)


SHOWN_S: Final = 0.07  # between two rounds of images and news
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
QUALITY: Final = 80  # of JPEG
LONGEST: Final = 4096  # bytes of a message of the page
UNSEEN: Final = 2  # images of a camera on their way: a slow network shows fewer, not older ones
WATCHERS: Final = 3  # browsers that watch beside the one that drives
LAST_S: Final = 0.5  # in which a browser takes the last news
RETRY_S: Final = 0.1  # after a connection that could not be accepted


class _Listener:
    """A listening socket that a failed connection does not end: websockets' loop takes any error for its end.

    A browser that goes away too soon is such an error, and so are too many open files.
    """

    def __init__(self, socket: Any, closing: threading.Event) -> None:
        self._socket, self._closing = socket, closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def accept(self) -> Any:
        """Accept the next connection. Raises OSError once the server is closing."""
        while True:
            try:
                return self._socket.accept()
            except OSError:
                if self._closing.wait(RETRY_S):
                    raise
                while not self._closing.is_set() and not select.select([self._socket], [], [], RETRY_S)[0]:
                    pass  # this thread must not wait in accept, where nobody could end it


class PageServer:
    """An HTTP and websocket server in threads of its own. One browser drives at a time; a few others may watch.

    Args:
        page: the HTML page.
        host, port: where.
        token: the query of every request must carry it; empty: none.
        take: gets each message of the driver, and None when the driver is gone. It returns why it refuses, or nothing.
        news: returns what a page shows, for the driver's (True) or for that of somebody who watches.
        tls: files of certificate and key; None: no TLS.

    Raises:
        BidError: the address cannot be served, or the certificate cannot be read.
    """

    def __init__(
        self,
        page: bytes,
        host: str,
        port: int,
        token: str,
        take: Callable[[str | None], str],
        news: Callable[[bool], Mapping[str, Any]],
        tls: tuple[str, str] | None = None,
    ) -> None:
        with extra("teleop", "the page"):
            from websockets.sync.server import serve
        self._page, self._token, self._take, self._news = page, token, take, news
        self._images: dict[str, Any] = {}
        self._packed: dict[str, tuple[Any, bytes]] = {}
        self._driving, self._driver = threading.Lock(), ""
        self._watching = threading.Semaphore(WATCHERS)
        self._starting = threading.Lock()
        self._shows: set[threading.Thread] = set()
        self._closing = threading.Event()
        quiet = logging.getLogger("bid_ros.page")
        quiet.setLevel(logging.CRITICAL)  # a browser that goes away is no error
        try:
            self._server = serve(
                self._serve, host, port, process_request=self._answer, ssl=_context(tls), max_size=LONGEST, logger=quiet
            )
        except OSError as error:
            raise BidError(f"the page cannot be served at {host} port {port}: {error.strerror}") from error
        listener: Any = _Listener(self._server.socket, self._closing)
        self._server.socket = listener
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)
        self._thread.start()

    def show(self, camera: str, message: Any) -> None:
        """Keep the newest ``sensor_msgs/Image`` (rgb8) or ``CompressedImage`` (JPEG) of a camera until it is shown."""
        self._images[camera] = message

    def close(self) -> None:
        """Send the last news, and end the server and its connections."""
        self._closing.set()
        with self._starting:
            shows = list(self._shows)
        for thread in shows:
            thread.join(timeout=LAST_S)
        self._server.shutdown()
        self._thread.join(timeout=2.0)

    def _answer(self, connection: Any, request: Any) -> Any:
        """Answer a request of the page itself. A websocket goes on, unless it is a stranger's."""
        url = urlsplit(request.path)
        given = parse_qs(url.query).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return connection.respond(HTTPStatus.FORBIDDEN, "the address lacks the token that the program printed\n")
        host = request.headers.get("Host", "")
        if not self._token and urlsplit(f"//{host}").hostname not in LOOPBACK:
            # Another site's name may be made to lead to this computer.
            return connection.respond(HTTPStatus.FORBIDDEN, f"valid hosts are {', '.join(LOOPBACK)}, not {host}\n")
        origin = request.headers.get("Origin", "")
        if url.path == "/drive" and origin and urlsplit(origin).netloc != host:
            return connection.respond(HTTPStatus.FORBIDDEN, f"a page of {origin} may not drive\n")
        if url.path == "/drive":
            return None
        if url.path != "/":
            return connection.respond(HTTPStatus.NOT_FOUND, "the page is at /\n")
        response = connection.respond(HTTPStatus.OK, "")
        response.body = self._page
        for name in ("Content-Type", "Content-Length"):
            del response.headers[name]
        response.headers["Content-Type"] = "text/html; charset=utf-8"
        response.headers["Content-Length"] = str(len(self._page))
        return response

    def _serve(self, socket: Any) -> None:
        """Serve one websocket until it ends."""
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            who = _who(socket)
            if self._driving.acquire(blocking=False):
                try:
                    self._driver = who
                    self._converse(socket, drives=True)
                finally:
                    self._take(None)
                    self._driver = ""
                    self._driving.release()
            elif self._watching.acquire(blocking=False):
                try:
                    self._converse(socket, drives=False)
                finally:
                    self._watching.release()
            else:
                socket.send(json.dumps({"refused": f"somebody drives, and {WATCHERS} others watch already"}))

    def _converse(self, socket: Any, drives: bool) -> None:
        """Show the run to one browser, and take what it says if it drives. Return when it is refused."""
        seen: Counter[str] = Counter()
        shower = threading.Thread(target=self._show, args=(socket, seen, drives), name="page-images", daemon=True)
        with self._starting:  # nobody can wait for the end of a thread that has not begun
            self._shows.add(shower)
            shower.start()
        for text in socket:
            if isinstance(text, bytes):  # the page has got an image of the camera that it names
                seen[text.decode(errors="replace")] += 1
            elif drives and (refusal := self._take(text)):
                socket.send(json.dumps({"refused": refusal}))
                return

    def _show(self, socket: Any, seen: Counter[str], drives: bool) -> None:
        """Send news and new images until the connection ends. ``seen``: how many images of each camera have arrived."""
        from websockets.exceptions import ConnectionClosed

        shown: dict[str, Any] = {}
        sent: Counter[str] = Counter()
        with contextlib.suppress(ConnectionClosed):
            while not self._closing.wait(SHOWN_S):
                socket.send(json.dumps({**self._news(drives), "drives": drives, "driver": self._driver}))
                for camera, message in list(self._images.items()):
                    if shown.get(camera) is message or sent[camera] - seen[camera] >= UNSEEN:
                        continue
                    shown[camera] = message
                    with contextlib.suppress(BidError):  # no image
                        socket.send(bytes([len(camera)]) + camera.encode() + self._jpeg(camera, message))
                        sent[camera] += 1
            socket.send(json.dumps(self._news(drives)))
        self._shows.discard(threading.current_thread())

    def _jpeg(self, camera: str, message: Any) -> bytes:
        """Return an image as JPEG, packed once for all who see it. Raises CameraError if it is damaged."""
        packed = self._packed.get(camera)
        if packed is None or packed[0] is not message:
            packed = self._packed[camera] = message, _jpeg(message)
        return packed[1]


def _who(socket: Any) -> str:
    """Return whose browser it is, in words."""
    try:
        address = str(socket.remote_address[0])
    except OSError:  # it is gone already
        return "somewhere"
    return "this computer" if address in LOOPBACK else address


def _jpeg(message: Any) -> bytes:
    if hasattr(message, "format"):
        return bytes(message.data)
    import cv2  # takes a tenth of a second

    from bid_ros.cameras.depth import read_picture

    _, data = cv2.imencode(".jpg", read_picture(message)[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return bytes(data)


def _context(tls: tuple[str, str] | None) -> ssl.SSLContext | None:
    """Return the TLS context of certificate and key. Raises BidError if they cannot be read."""
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A ticket comes while a client that reads in one thread already writes in another. In Python's ssl its first
    # request was lost then, in 3 of 25 connections on a busy computer.
    context.num_tickets = 0
    try:
        context.load_cert_chain(*tls)
    except OSError as error:  # ssl.SSLError is one
        raise BidError(f"certificate {tls[0]} and key {tls[1]} cannot be used: {error}") from error
    return context
