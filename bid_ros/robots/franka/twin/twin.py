"""The Franka twin: a libfranka server over the scene of a task, stepped at 1 kHz in its own thread."""

from bid_ros.robots.franka.model import build_simulator
from bid_ros.robots.franka.twin.controller import STEP_NS, FrankaController
from bid_ros.robots.franka.twin.watchdog import SHARED
from bid_ros.sim.loop import StepLoop
from bid_ros.sim.twin import SceneTwin, TwinScene


class FrankaTwin(SceneTwin):
    """A robot in the scene of a task, which a libfranka client cannot tell from the real thing.

    Args:
        scene: what stands around the robot.
        hostnames: loopback addresses to serve; the first free one is taken.

    Attributes:
        bodies: names of what the ground truth has the pose of.
        controller: serves the robot.
    """

    def __init__(self, scene: TwinScene, *hostnames: str) -> None:
        super().__init__(scene, StepLoop("the twin", STEP_NS, self._step))
        self._simulator = build_simulator(scene)
        self.controller = FrankaController(self._simulator, *hostnames, patience=SHARED)
        self.harms = {
            "cable": lambda: self._loop.call(self.controller.unplug),
            "emergency_stop": lambda: self._loop.call(self.controller.robot.emergency_stop),
        }

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
        self._data = self._simulator.data
        self._world = self._scene.world(self._simulator.model, self._data)
        self._loop.start()

    def stop(self) -> None:
        """End the physics and close the server; calling it again does nothing."""
        self._loop.stop()
        self.controller.close()

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept, and how near the client came to a reflex.

        In addition to what the loop says: ``watchdog_ms``, silence of the client that ends a motion, in cycles of 1 ms;
        ``longest_silence_ms`` until now; and each of :attr:`RobotService.nearest` as ``near_...``, of which 1 is the
        limit.
        """
        robot = self.controller.robot
        near = {f"near_{name}": value for name, value in tuple(robot.nearest.items())}
        silence = {"watchdog_ms": SHARED.ended, "longest_silence_ms": robot.watchdog.longest}
        return super().statistics() | near | silence

    def _step(self) -> None:
        self._world.before_step()
        self.controller.tick()
