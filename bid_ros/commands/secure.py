"""``bid secure``: write the policy of least privilege of a system, for DDS Security."""

import argparse
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.robot import NAMESPACE
from bid_ros.core.files import replace_text
from bid_ros.system.folder import find_system

STEPS: Final = """\
wrote {file}: {count} nodes, each with its own rights. On Ubuntu's ROS 2, with the ROS_DOMAIN_ID of the run:
  ros2 security generate_artifacts -k KEYSTORE -p {file}
  chmod -R go= KEYSTORE
  export ROS_SECURITY_KEYSTORE=KEYSTORE ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce
The wheels' Fast DDS is built without security: nothing starts there with these variables."""


def add_parser(verbs: Any) -> None:
    """Add ``secure``."""
    parser = verbs.add_parser(
        "secure",
        help="write the SROS2 policy of a system: what each node may publish and hear",
        description="Write the policy of least privilege of a system for DDS Security (SROS2): one enclave a node, "
        "with what that node publishes, hears, offers and calls. A program without the key of an enclave sees and "
        "moves nothing. It needs Ubuntu's ROS 2.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("file", help="policy file to write, such as policy.xml")
    parser.add_argument("--twin", action="store_true", help="write the policy of the twin, not of the robot")
    parser.add_argument("--namespace", default="", help=NAMESPACE)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the policy and say what follows."""
    from bid_ros.system.endpoints import endpoints_of
    from bid_ros.system.security import policy_xml

    nodes = endpoints_of(find_system(options.system), options.twin)
    file = Path(options.file)
    replace_text(file, policy_xml(nodes, options.namespace))
    print(STEPS.format(file=file, count=len(nodes)))
    return 0
