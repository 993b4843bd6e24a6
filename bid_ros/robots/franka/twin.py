"""The Franka twin: a libfranka server over the scene of a task, stepped at 1 kHz in its own thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from franky_sim import SimulationServer

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.model import HOME_Q, build_simulator
from bid_ros.sim.loop import StepLoop
from bid_ros.sim.twin import SceneState, Truth, TwinScene, World

STEP_NS: Final = 1_000_000
CATCH_UP_NS: Final = 5_000_000  # backlog that is made up for; what is older is left out and counted

Result = TypeVar("Result")


class FrankaTwin:
    """A robot in the scene of a task, which a libfranka client cannot tell from the real thing.

    Args:
        scene: what stands around the robot.
        hostnames: loopback addresses to serve; the first free one is taken.
        initial_q: the arm's seven joint angles at the start, rad.

    Attributes:
        bodies: names of what the ground truth has the pose of.
    """

    def __init__(
        self, scene: TwinScene, hostnames: Sequence[str] = ("127.0.0.1",), initial_q: Sequence[float] = HOME_Q
    ) -> None:
        self.bodies = scene.bodies
        self._hostnames = list(hostnames)
        self._scene = scene
        self._simulator = build_simulator(scene, initial_q)
        self._server = SimulationServer(self._simulator, self._hostnames)
        self._world: World | None = None
        self._state: SceneState | None = None
        self._loop = StepLoop("the twin", STEP_NS, self._step, CATCH_UP_NS)

    @property
    def hostname(self) -> str:
        """Address a franky client connects to; empty before :meth:`start`."""
        return str(self._server.robot_servers[0].hostname) if self._server.robot_servers else ""

    def start(self) -> None:
        """Serve the robot and run the physics.

        Raises:
            ArmError: if none of the addresses is free.
        """
        try:
            self._simulator.init()
            self._server.init()
        except OSError as error:
            raise ArmError(
                f"the twin cannot serve {', '.join(self._hostnames)}: ports 1337 and 1338 are taken ({error})"
            ) from error
        self._world = self._scene.world(self._simulator.model, self._simulator.data)
        self._take_state()
        self._loop.start()

    def stop(self) -> None:
        """End the physics and close the server; calling it again does nothing."""
        self._loop.stop()
        self._server.cleanup()

    def reset(self, seed: int, cup_speed: float = 0.0) -> Any:
        """Lay out the episode of a seed and return its layout.

        Args:
            seed: of the episode.
            cup_speed: of what moves in the scene, m/s.

        Raises:
            ArmError: if the gripper is in the way, or the twin does not run.
            TaskError: if the seed or the speed is not valid.
        """
        layout = self._scene.layout(seed, cup_speed)
        self._in_loop(lambda world: world.lay_out(layout))
        return layout

    def start_path(self) -> None:
        """Let what moves in the scene begin to move; raises ArmError if the twin does not run."""
        self._in_loop(lambda world: world.start_path())

    def scene_state(self) -> SceneState:
        """Return the state after the latest step; raises ArmError if the twin does not run."""
        self._loop.check()
        assert self._state is not None
        return self._state

    def ground_truth(self) -> Truth:
        """Return where everything is, between two steps; raises ArmError if the twin does not run."""
        return self._in_loop(lambda world: world.ground_truth(time.time_ns()))

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept, as :meth:`bid_ros.sim.loop.StepLoop.statistics` does; a step is 1 ms."""
        return self._loop.statistics()

    def _in_loop(self, work: Callable[[World], Result]) -> Result:
        """Run ``work`` between two steps in the physics thread and return what it returns."""
        self._loop.check()
        assert self._world is not None
        return self._loop.call(partial(work, self._world))

    def _step(self) -> None:
        assert self._world is not None
        self._world.before_step()
        # The server's own run_once ends with a sleep(0), which costs the timer's slack of 60 us in every step.
        for robot in self._server.robot_servers:
            robot.process_commands()
        self._simulator.step()
        for robot in self._server.robot_servers:
            robot.send_state()
        self._take_state()

    def _take_state(self) -> None:
        # A new object every step: whoever holds an older one keeps a consistent picture without a lock.
        data = self._simulator.data
        self._state = SceneState(time.time_ns(), data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())
