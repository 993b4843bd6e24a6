"""Nodes that move several arms are one process with one more node in the namespace of each arm.

So each arm's own nodes hear the same as in a system of one arm: heartbeats, grants, chunks, decisions and diagnostics
in their namespace, all of their own robot.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rclpy.parameter import Parameter as Value

from bid_ros.core.errors import BidError
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.joints import ARM_CONFIG, TWIN
from bid_ros.nodes.parameters import Parameter

PARAMETERS: Final = (
    Parameter("name", "", "name of the joint task"),
    Parameter("arms", [""], "names of the arms, which are their namespaces below that of this node"),
    Parameter("tasks", [""], "path of each arm's task file, in the same order"),
    Parameter("arm_configs", [""], "path of each arm's robot file, in the same order"),
)
OF_ARM: Final = (Parameter("task", "", "path of the arm's task file"), ARM_CONFIG, TWIN)


def values_of(host: BidNode) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters of each arm's node by its name. Raises BidError unless there are as many of each."""
    arms, tasks, configs = (list(host.value(name)) for name in ("arms", "tasks", "arm_configs"))
    if not len(arms) == len(tasks) == len(configs):
        raise BidError(f"arms are {', '.join(arms)}, with {len(tasks)} tasks and {len(configs)} arm_configs")
    twin = bool(host.value("twin"))
    named = zip(arms, tasks, configs, strict=True)
    return {arm: {"task": task, "arm_config": config, "twin": twin} for arm, task, config in named}


def placed_at(host: BidNode, arm: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what makes a node that of an arm: :attr:`bid_ros.nodes.base.BidNode.placed`."""
    given = [Value(name, value=value) for name, value in values.items()]
    space = f"{host.get_namespace().rstrip('/')}/{arm}"
    # The arguments of the process name the host alone.
    return {"namespace": space, "use_global_arguments": False, "parameter_overrides": given}


class Sides:
    """Keeps the arms' nodes with their host: in its executor, from its begin to its end.

    Args:
        host: the node of the process.
        nodes: of the arms.
    """

    def __init__(self, host: BidNode, nodes: Sequence[BidNode]) -> None:
        self._host, self._nodes = host, nodes

    def open(self) -> None:
        """Let the executor serve them too, and begin their heartbeats."""
        for node in self._nodes:
            self._host.executor.add_node(node)
            node.heartbeat.start()

    def worked(self) -> None:
        """Note a step of the work that the host does for all."""
        for node in self._nodes:
            node.worked()

    def close(self) -> None:
        """End their heartbeats and leave the graph in order."""
        for node in self._nodes:
            node.heartbeat.stop()
            self._host.executor.remove_node(node)
            node.destroy_node()
