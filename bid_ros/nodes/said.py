"""What other nodes of a system say of themselves in their diagnostics: why they cannot go on."""

from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from bid_ros.core.topics import DIAGNOSTICS
from bid_ros.nodes.base import BidNode


class Said:
    """Keeps the newest problem of each node. Nothing is decided by it: it only explains what is decided elsewhere.

    Args:
        node: listens.
        names: of the nodes to listen to.
    """

    def __init__(self, node: BidNode, names: Sequence[str]) -> None:
        space = node.get_namespace().strip("/")
        self._node = node
        self._names = {f"bid_ros: {space}/{name}" if space else f"bid_ros: {name}": name for name in names}
        self._problems: dict[str, str] = {}
        node.subscribe(DIAGNOSTICS, self._take, patient=True)

    def problem(self, name: str) -> str:
        """Return what a node says that is wrong with it; empty if nothing is, or it was not heard."""
        return self._problems.get(name, "")

    def _take(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = self._names.get(status.name)
            if name is not None and status.hardware_id == self._node.hardware_id:
                self._problems[name] = status.message if status.level == DiagnosticStatus.ERROR else ""
