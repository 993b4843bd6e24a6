"""Styles and ways of the scripted picking demonstrations."""

from dataclasses import dataclass

from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.tasks.picking.geometry import GRASP_TOOL_HEIGHT, RIM_Z, SAUCER_HEIGHT
from bid_ros.tasks.scripted import RECOVER, STYLES, Miss, ScriptedConfig


@dataclass(frozen=True)
class PickingConfig(ScriptedConfig):
    """How the scripted teleoperator picks; :class:`bid_ros.tasks.scripted.ScriptedConfig` has the rest.

    Its ways lead to the cup and to the saucer. Misses are where the way to the cup ends, on the descent until the
    fingertips reach the rim, and on either side of the cup; and where the way to the saucer ends. Pauses are before the
    way to the cup, in the middle of it, over the cup and over the saucer.

    Attributes:
        lift: of the cup's foot over the saucer's top on the way there, m.
        release_gap: of the cup's foot over the saucer where the gripper has opened, m: a cup that is pressed down on
            the saucer is pushed up between the pads.
        approach_speed, descend_speed: peaks of a clean demonstration, m/s.
        close_lead: s before the end of the descent at which the gripper is told to close, as ``release_lead``.
        grasp: s at rest between the end of the descent and the lift. It and ``release`` are just long enough for the
            fingers, so that what the width shows, not how long the tool has been at rest, says when to go on.
    """

    lift: float = 0.060
    release_gap: float = 0.002
    retreat: float = 0.120
    approach_speed: float = 0.22
    descend_speed: float = 0.16
    carry_speed: float = 0.22
    retreat_speed: float = 0.18
    max_speed: float = 0.26
    close_lead: float = 0.15
    grasp: float = 0.30
    release_lead: float = 0.10
    release: float = 0.30
    pauses: tuple[float, float] = (0.2, 0.8)
    styles: tuple[str, ...] = (*STYLES, RECOVER)
    detours: tuple[tuple[float, float], ...] = ((0.05, 0.11), (0.03, 0.08))
    misses: tuple[Miss, ...] = (*ScriptedConfig.misses, Miss(0.6, 0.008, 0.030))
    open_width: float = MAX_OPENING
    reach_min: tuple[float, float, float] = (0.34, -0.28, 0.05)
    reach_max: tuple[float, float, float] = (0.64, 0.30, 0.44)

    @property
    def above_z(self) -> float:
        """Height in m of the tool over the cup before the descent, base frame."""
        return RIM_Z + self.clearance

    @property
    def clear_z(self) -> float:
        """Height in m of the tool at which closed fingers are well over the rim, base frame."""
        return RIM_Z + 0.25 * self.clearance

    @property
    def release_z(self) -> float:
        """Height in m of the tool at which the cup is let go over the saucer, base frame."""
        return GRASP_TOOL_HEIGHT + SAUCER_HEIGHT + self.release_gap

    @property
    def carry_z(self) -> float:
        """Height in m of the tool that carries the cup over to the saucer, base frame."""
        return GRASP_TOOL_HEIGHT + SAUCER_HEIGHT + self.lift
