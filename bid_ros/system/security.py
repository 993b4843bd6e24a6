"""DDS Security (SROS2): the policy of least privilege of a system, and what must hold before a node starts with keys.

The wheels' Fast DDS is built without security, that of Ubuntu's ROS packages has it.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from bid_ros.core.errors import BidError
from bid_ros.core.topics import check_namespace
from bid_ros.system.middleware import FAST_DDS

if TYPE_CHECKING:
    from bid_ros.system.endpoints import Endpoints  # what it reads takes a while to import

ENABLE: Final = "ROS_SECURITY_ENABLE"
STRATEGY: Final = "ROS_SECURITY_STRATEGY"
KEYSTORE: Final = "ROS_SECURITY_KEYSTORE"
ENFORCE: Final = "Enforce"
NUMBER: Final = r"_\d+$"
FORMAT: Final = "0.2.0"  # of SROS2's policies
LIBRARY: Final = Path("lib", "librmw_fastrtps_shared_cpp.so")
WITHOUT: Final = b"-DSECURITY=ON"  # its advice to build Fast DDS with security, which only one without it holds
FILES: Final = (
    *("identity_ca.cert.pem", "cert.pem", "key.pem"),
    *("permissions_ca.cert.pem", "governance.p7s", "permissions.p7s"),
)
"""What ROS reads of an enclave."""
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def enclave_of(node: str, namespace: str = "") -> str:
    """Return the path of the enclave of a node, each of which has its own keys and rights.

    Nodes that a number at the end of the name tells apart, as that of a process, share one.
    """
    return f"/bid{check_namespace(namespace)}/{re.sub(NUMBER, '', node)}"


def enclave_arguments(node: str, namespace: str, given: Mapping[str, str] = os.environ) -> list[str]:
    """Return the arguments of ROS with which a node starts in its enclave; none without DDS Security."""
    return ["--enclave", enclave_of(node, namespace)] if is_secured(given) else []


def is_secured(given: Mapping[str, str] = os.environ) -> bool:
    """Whether ROS is asked for DDS Security, in the words that ROS takes."""
    return given.get(ENABLE) == "true"


def policy_xml(nodes: "Mapping[str, Endpoints]", namespace: str = "") -> str:
    """Return SROS2's policy of a system: one enclave a node, with what it publishes, hears, offers and calls.

    ``ros2 security generate_artifacts -k KEYSTORE -p FILE`` makes keys and permissions of it.

    Args:
        nodes: ends of each node.
        namespace: of the system.
    """
    policy = ElementTree.Element("policy", version=FORMAT)
    enclaves = ElementTree.SubElement(policy, "enclaves")
    for node, ends in nodes.items():
        enclave = ElementTree.SubElement(enclaves, "enclave", path=enclave_of(node, namespace))
        profiles = ElementTree.SubElement(enclave, "profiles")
        profile = ElementTree.SubElement(profiles, "profile", ns=check_namespace(namespace) or "/", node=node)
        for kind, right, names in (
            ("topic", "publish", ends.publish),
            ("topic", "subscribe", ends.subscribe),
            ("service", "reply", ends.serve),
            ("service", "request", ends.call),
        ):
            if names:
                group = ElementTree.SubElement(profile, f"{kind}s", {right: "ALLOW"})
                for name in sorted(names):
                    ElementTree.SubElement(group, kind).text = name
    ElementTree.indent(policy)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(policy, encoding="unicode")}\n'


def check_security(enclaves: Iterable[str] = (), given: Mapping[str, str] = os.environ) -> None:
    """Hold what starts against DDS Security, if the environment asks for that.

    Args:
        enclaves: of the nodes that start.
        given: the environment.

    Raises:
        BidError: the strategy lets nodes without keys in, the middleware is built without security, or the keystore is
            missing, incomplete, or can be read by others.
    """
    if not is_secured(given):
        return
    if given.get(STRATEGY) != ENFORCE:
        raise BidError(
            f"{STRATEGY} is '{given.get(STRATEGY, '')}' beside {ENABLE}=true; valid is {ENFORCE}: otherwise a node "
            "without keys runs in the open"
        )
    if given.get("RMW_IMPLEMENTATION", FAST_DDS) == FAST_DDS and _built_without(given):
        raise BidError(
            f"{ENABLE} is true, and Fast DDS of this installation is built without security, as in the wheels; valid "
            f"is Ubuntu's ROS 2, or to unset {ENABLE}"
        )
    _check_keystore(given.get(KEYSTORE, ""), enclaves)


def _built_without(given: Mapping[str, str]) -> bool:
    """Whether the middleware says that it has no security. The first one that is found is the one in use."""
    folders = [*filter(None, given.get("AMENT_PREFIX_PATH", "").split(":")), sys.prefix]
    found = next((library for folder in folders if (library := Path(folder) / LIBRARY).is_file()), None)
    return found is not None and WITHOUT in found.read_bytes()


def _check_keystore(named: str, enclaves: Iterable[str]) -> None:
    keystore = Path(named)
    if not named or not keystore.is_dir():
        raise BidError(f"{KEYSTORE} is '{named}'; valid is the folder of a keystore: bid secure says how to make one")
    about = keystore.stat()
    if about.st_mode & OTHERS:
        raise BidError(f"others can read the keystore {keystore}; valid is one of yours alone: chmod -R go= {keystore}")
    if about.st_uid not in (os.getuid(), 0):
        raise BidError(f"the keystore {keystore} belongs to user {about.st_uid}; valid is one of yours")
    for enclave in enclaves:
        folder = keystore / "enclaves" / enclave.lstrip("/")
        if missing := [name for name in FILES if not (folder / name).is_file()]:
            raise BidError(
                f"enclave {enclave} of the keystore {keystore} lacks {', '.join(missing)}; valid is one that was made "
                "from the policy of bid secure"
            )
