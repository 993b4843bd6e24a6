"""The scene of each task's twin, by the name of the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bid_ros.errors import CameraError

if TYPE_CHECKING:
    import mujoco

PLACING: Final = "franka_place"
PICKING: Final = "ur5_pick"
SCENES: Final = (PLACING, PICKING)


def scene_model(task: str) -> mujoco.MjModel:
    """Compile the scene of a task's twin, with the ``qpos`` and mocap layout that the twin itself has.

    Raises:
        CameraError: if the task has no twin.
    """
    # Imported on demand: the placing scene needs franky-sim, which a system with a UR does not.
    if task == PLACING:
        from bid_ros.sim.scene import render_model

        return render_model()
    if task == PICKING:
        from bid_ros.sim.picking_scene import picking_model

        return picking_model()
    raise CameraError(f"the task '{task}' has no twin whose scene could be drawn; valid are {', '.join(SCENES)}")
