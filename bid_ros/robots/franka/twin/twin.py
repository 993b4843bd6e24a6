"""The Franka twin: a libfranka server over the scene of a task, stepped at 1 kHz in its own thread."""

from collections.abc import Sequence
from typing import Final

from bid_ros.robots.franka.model import HOME_Q, build_simulator
from bid_ros.robots.franka.twin.controller import FrankaController
from bid_ros.sim.loop import StepLoop
from bid_ros.sim.twin import SceneState, SceneTwin, TwinScene

STEP_NS: Final = 1_000_000
CATCH_UP_NS: Final = 5_000_000  # backlog that is made up for; what is older is left out and counted


class FrankaTwin(SceneTwin):
    """A robot in the scene of a task, which a libfranka client cannot tell from the real thing.

    Args:
        scene: what stands around the robot.
        hostnames: loopback addresses to serve; the first free one is taken.
        initial_q: the arm's seven joint angles at the start, rad.

    Attributes:
        bodies: names of what the ground truth has the pose of.
        controller: serves the robot.
    """

    _state: SceneState  # there from the start of the twin on

    def __init__(self, scene: TwinScene, *hostnames: str, initial_q: Sequence[float] = HOME_Q) -> None:
        super().__init__(scene, StepLoop("the twin", STEP_NS, self._step, CATCH_UP_NS))
        self._simulator = build_simulator(scene, initial_q)
        self.controller = FrankaController(self._simulator, *hostnames)

    @property
    def hostname(self) -> str:
        """Address a franky client connects to; empty before :meth:`start`."""
        return self.controller.hostname

    def start(self) -> None:
        """Serve the robot and run the physics.

        Raises:
            ArmError: if none of the addresses is free, or one is not of this computer alone.
        """
        self.controller.start()
        self._world = self._scene.world(self._simulator.model, self._simulator.data)
        self._state = SceneState.of(self._simulator.data)
        self._loop.start()

    def stop(self) -> None:
        """End the physics and close the server; calling it again does nothing."""
        self._loop.stop()
        self.controller.close()

    def scene_state(self) -> SceneState:
        """Return the state after the latest step; raises ArmError if the twin does not run."""
        self._loop.check()
        return self._state

    def _step(self) -> None:
        self._world.before_step()
        self.controller.cycle()
        # A new object every step: whoever holds an older one keeps a consistent picture without a lock.
        self._state = SceneState.of(self._simulator.data)
