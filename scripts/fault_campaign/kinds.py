"""Every fault of the campaign, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from fault_campaign.clocks import clocks
from fault_campaign.fault import Fault
from fault_campaign.images import images
from fault_campaign.killing import busy, pairs, single, stalls
from fault_campaign.links import links
from fault_campaign.resources import resources
from fault_campaign.robots import robots
from fault_campaign.strangers import strangers

GROUPS: Final = (
    "processes",
    "pairs",
    "strangers",
    "stalls",
    "load",
    "images",
    "links",
    "clocks",
    "resources",
    "robots",
)


def faults(number: int, seed: int) -> list[Fault]:
    """Return all faults; ``number`` and ``seed`` are those of the random pairs."""
    found = [*single(), *pairs(number, seed), *strangers(), *stalls(), *busy()]
    return [*found, *images(), *links(), *clocks(), *resources(), *robots()]
