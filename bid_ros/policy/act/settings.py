"""Settings of a policy that predicts a chunk, and draws none."""

from typing import Annotated, Final

from pydantic import Field

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import settings

MOST_MEMBERS: Final = 16


@settings(error=BundleError)
class ActSettings:
    """How many chunks a decision has.

    Attributes:
        members: checkpoints in the bundle, a chunk each.

    Raises:
        BundleError: a value is outside its range.
    """

    members: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = 1


def member_role(role: str, number: int) -> str:
    """Return the role of a member's graph: the first has ``role`` itself, the second ``role_2`` and so on."""
    return role if number == 1 else f"{role}_{number}"
