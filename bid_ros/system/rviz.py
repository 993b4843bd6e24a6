"""The command that shows a system in RViz."""

import shutil
from typing import Final

from bid_ros.core.topics import check_namespace
from bid_ros.system.description import NodeSpec
from bid_ros.system.folder import System
from bid_ros.system.run import RunArguments

NO_RVIZ: Final = "RViz is not installed, so only the monitor starts"


def rviz_arguments(system: System, arguments: RunArguments, replay: NodeSpec | None = None) -> list[str]:
    """Return the arguments of RViz: the system's layout, in its namespace and frames.

    Args:
        system: whose layout.
        arguments: with the namespace.
        replay: a node of a replay, which has the recorded frames and topics of its own. None: the system is live.
    """
    layout, namespace = ["-d", str(system.file("view.rviz"))], check_namespace(arguments.namespace)
    if not namespace:
        return layout
    prefix = f"{namespace[1:]}/" if replay is None else replay.parameters["frame_prefix"]
    words = [*layout, "-f", f"{prefix}{system.task.base_frame}", "--ros-args", "-r", f"__ns:={namespace}"]
    remapped = {} if replay is None else replay.remapped
    return [*words, *(word for name, other in remapped.items() for word in ("-r", f"{name}:={other}"))]


def rviz_command(system: System, arguments: RunArguments, replay: NodeSpec | None = None) -> list[str]:
    """Return the command of RViz, which ends with whoever starts it; empty if RViz is not installed.

    The arguments are those of :func:`rviz_arguments`.
    """
    rviz = shutil.which("rviz2")
    return ["setpriv", "--pdeathsig", "TERM", rviz, *rviz_arguments(system, arguments, replay)] if rviz else []
