"""A certificate of this computer's own, with which a page counts as secure for browsers."""

import hashlib
import os
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError

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
