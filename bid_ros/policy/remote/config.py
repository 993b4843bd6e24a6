"""The section ``remote`` of a bundle: where the policy is, and how to ask it."""

from typing import Annotated, Final

from pydantic import Field

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import Count, settings

REMOTE: Final = "remote"
TIMEOUT_MS: Final = 250.0  # below 300 ms, after which a policy node's heartbeat pauses by itself


@settings(error=BundleError)
class RemoteConfig:
    """Where the policy is, and how to ask it.

    Attributes:
        address: of the server, ``ws://HOST:PORT`` or ``wss://HOST:PORT``.
        timeout_ms: a decision may take this long, from the question to the last byte of the answer, ms. Then it is
            given up.
        serves: sha256 of the bundle that ``bid serve`` serves there. A server with another one is refused. Empty: a
            server that only speaks openpi's protocol.
        keys: for such a server, what it calls each feature that it gets; empty: all features, by their own names.
        prompt: for such a server, the instruction, until the policy node is given another; empty: none.
        starts: whether sampling there may start from a chunk, as ``bid serve`` told. Elsewhere it never may.
        gradients: whether samples there may be drawn towards a chunk, as ``bid serve`` told. Elsewhere they never may.
        most_samples: largest number of samples of a decision, as ``bid serve`` told. None: any.
        api_key_file: path of a file with the key that the server asks for; empty: the variable BID_API_KEY, and no key
            without that. The key itself is never in a bundle.
        certificate: of ``wss://``, path of a file with the certificate that the server's must be, or be signed by;
            empty: one that this computer trusts.
    """

    address: Annotated[str, Field(pattern=r"^wss?://[^\s/]+$")]
    timeout_ms: Annotated[float, Field(ge=1, le=60_000)] = TIMEOUT_MS
    serves: str = ""
    keys: dict[str, str] = Field(default_factory=dict)
    prompt: str = ""
    starts: bool = True
    gradients: bool = False
    most_samples: Count | None = None
    api_key_file: str = ""
    certificate: str = ""
