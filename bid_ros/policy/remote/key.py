"""The key that a policy server may ask for. It comes from a file or the environment, never from the command line."""

import os
from pathlib import Path
from typing import Final

from bid_ros.core.errors import RemoteError

VARIABLE: Final = "BID_API_KEY"
HEADER, SCHEME = "Authorization", "Api-Key"  # as openpi's client sends it
LONGEST: Final = 4096  # characters


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
