"""Receives grants of motion from their topic. Every node that starts motion publishes there."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from bid_msgs.msg import Grant
from bid_ros.core.errors import BidError
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.topics import GRANT
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.sole_publishers import SolePublishers
from bid_ros.safety.grants import Grants


def subscribe_grants(
    node: BidNode,
    changed: Callable[[], None] = lambda: None,
    lock: AbstractContextManager[object] | None = None,
    patient: bool = False,
    sole: SolePublishers | None = None,
) -> Grants:
    """Return the grants of motion, which are kept up to date. One that is not valid is refused with a warning.

    Args:
        node: the subscriber.
        changed: called after each grant, with the lock held.
        lock: lock of the grants. None: only the executor's thread uses it.
        patient: grants wait for a timer of the node, and are taken before it: so those that arrived while the node was
            held up count before their end does.
        sole: lets only the grants of one publisher pass; None: those of all.
    """
    grants = Grants()

    def take(message: Grant) -> None:
        with lock or nullcontext():
            try:
                grants.renew(message.granter, message.sources, stamp_to_ns(message.duration), node.arrived_ns())
            except BidError as error:
                node.get_logger().warning(f"refused a grant: {error}", throttle_duration_sec=1.0)
                return
            changed()

    node.subscribe(GRANT, take if sole is None else sole.guarded(GRANT, take), patient=patient)
    return grants
