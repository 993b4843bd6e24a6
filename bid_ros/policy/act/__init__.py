"""ACT policies: one chunk for one observation, of each checkpoint in the bundle."""

from functools import partial

from bid_ros.core.settings import parse_settings
from bid_ros.policy.act.policy import ActPolicy
from bid_ros.policy.act.settings import MOST_MEMBERS, ActSettings, member_role
from bid_ros.policy.base import PolicyFamily

FAMILY = PolicyFamily(
    "act",
    ("encoder",),
    partial(parse_settings, ActSettings, where="act"),
    ActPolicy,
    optional=(
        "frames",
        *(member_role(role, number) for number in range(2, MOST_MEMBERS + 1) for role in ("frames", "encoder")),
    ),
    denoises=False,
    most_samples=lambda settings: settings.members,
)
