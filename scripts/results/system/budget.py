"""What each node may cost, so that the CPU is left to the policy."""

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True)
class Budget:
    """The most that a node may use.

    Attributes:
        cpu: CPU time in % of a core.
        messages_in, messages_out: messages a second.
    """

    cpu: float
    messages_in: float
    messages_out: float


BUDGETS: Final = {
    "twin": Budget(60, 5, 40),
    "camera": Budget(8, 15, 70),
    "policy": Budget(100, 200, 45),
    "teleop": Budget(10, 120, 45),
    "safety": Budget(12, 200, 60),
    "arm": Budget(30, 150, 120),
    "recorder": Budget(10, 350, 10),
    "monitor": Budget(40, 100, 60),
    "episode": Budget(7, 100, 40),
}
"""Budget by node, on a core of the computer of the published tables."""


def excess(node: str, used: Budget) -> list[str]:
    """Return a sentence for each part of its budget that a node exceeds. A node without a budget exceeds none."""
    if node not in BUDGETS:
        return []
    words = {"cpu": "% of a core", "messages_in": "messages in a second", "messages_out": "messages out a second"}
    parts = [(item.name, getattr(used, item.name), getattr(BUDGETS[node], item.name)) for item in fields(Budget)]
    return [f"{node} uses {have:.0f} {words[name]}, above its {most:g}" for name, have, most in parts if have > most]
