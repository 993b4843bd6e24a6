"""Signatures of policy bundles: an OpenSSH signature of ``bundle.yaml``, which holds the hash of every other file.

OpenSSH makes and checks it (``ssh-keygen -Y``). It is installed on most computers, keeps keys in files, agents and
hardware tokens, and no package of the locks signs. Whoever trains signs the bundle::

    ssh-keygen -Y sign -f ~/.ssh/id_ed25519 -n bid_ros BUNDLE/bundle.yaml

That writes ``bundle.yaml.sig``. Only a system whose ``system.yaml`` names a public key (``policy: signed_by``) asks
for it.
"""

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BundleError
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import MANIFEST

SIGNATURE: Final = f"{MANIFEST}.sig"
NAMESPACE: Final = "bid_ros"  # a signature that was made for something else does not count
SIGNER: Final = "signer"
KINDS: Final = ("ssh-ed25519", "ecdsa-sha2-", "sk-ssh-ed25519", "sk-ecdsa-sha2-", "ssh-rsa", "rsa-sha2-")
VERIFY_S: Final = 10.0


def check_signature(bundle: Bundle, key: str | Path) -> None:
    """Hold a bundle against its signature.

    Args:
        bundle: as it was loaded.
        key: file of an OpenSSH public key, or of several, one a line: one of them must have signed.

    Raises:
        BundleError: the key cannot be used, the bundle is not signed by it or was changed since, or ``ssh-keygen`` is
            not installed.
    """
    signers = _signers(Path(key))
    folder = bundle.path
    text = (folder / MANIFEST).read_bytes()
    if hashlib.sha256(text).hexdigest() != bundle.sha256:
        raise BundleError(f"bundle {folder} is being changed: its {MANIFEST} is not the one that was loaded")
    if not (folder / SIGNATURE).is_file():
        how = f"ssh-keygen -Y sign -f KEY -n {NAMESPACE} {folder / MANIFEST}"
        raise BundleError(
            f"bundle {folder} is not signed, and {key} must have signed it; valid is one signed by: {how}"
        )
    if not _verified(text, folder / SIGNATURE, signers):
        raise BundleError(
            f"bundle {folder} was changed after it was signed, or another key than {key} signed it; valid is its "
            f"{MANIFEST} as that key signed it"
        )


def _signers(key: Path) -> str:
    """Return the public keys of a file as OpenSSH's list of allowed signers."""
    try:
        lines = [line.split() for line in key.read_text().splitlines() if line.strip() and line[0] != "#"]
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BundleError(f"signed_by names {key}, which cannot be read: {problem}; valid is a public key") from error
    if not lines or any(len(line) < 2 or not line[0].startswith(KINDS) for line in lines):
        raise BundleError(f"signed_by names {key}, which is no OpenSSH public key; valid is a file like id_ed25519.pub")
    return "".join(f'{SIGNER} namespaces="{NAMESPACE}" {line[0]} {line[1]}\n' for line in lines)


def _verified(text: bytes, signature: Path, signers: str) -> bool:
    """Return whether one of the signers signed a text. Raises BundleError without ``ssh-keygen``."""
    with tempfile.NamedTemporaryFile("w", suffix=".signers") as allowed:
        allowed.write(signers)
        allowed.flush()
        command = ["ssh-keygen", "-Y", "verify", "-f", allowed.name, "-I", SIGNER]
        command += ["-n", NAMESPACE, "-s", str(signature)]
        try:
            done = subprocess.run(command, input=text, capture_output=True, timeout=VERIFY_S, check=False)
        except FileNotFoundError as error:
            raise BundleError(
                "a signature is required, and ssh-keygen is not installed; valid: apt install openssh-client"
            ) from error
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0
