"""What a robot does by itself: a reflex, a protective stop, an emergency stop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fault_campaign.fault import Fault, Scene


def robots() -> Iterator[Fault]:
    """Yield the stops of the twins, which they make as their robots do."""
    for name, what, button, task in (
        ("reflex", "reflex of the Franka", "reflex", "franka_place"),
        ("protective-stop", "protective stop of the UR", "protective stop", "ur5_pick"),
        ("emergency-stop", "emergency stop of the UR", "emergency stop", "ur5_pick"),
    ):
        yield Fault(name, "robots", what, partial(_press, button), lambda _: 0.0, tasks=(task,))


def _press(button: str, scene: Scene) -> None:
    scene.press(button)
