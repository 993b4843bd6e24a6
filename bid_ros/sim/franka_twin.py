"""The Franka twin: a libfranka server over the placing scene, stepped at 1 kHz in its own thread."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from franky_sim import SimulationServer

from bid_ros.errors import ArmError
from bid_ros.sim.cup_path import DEFAULT_SPEED, EpisodeScene, episode_scene
from bid_ros.sim.geometry import HOME_Q
from bid_ros.sim.placing import GroundTruth, PlacingEpisode
from bid_ros.sim.scene import build_simulator
from bid_ros.sim.scene_state import SceneState

STEP_NS: Final = 1_000_000
CATCH_UP_NS: Final = 5_000_000  # backlog that is made up for; what is older is left out and counted
COMMAND_TIMEOUT_S: Final = 2.0

Result = TypeVar("Result")


class FrankaTwin:
    """A robot, a table, an object and a cup that a libfranka client cannot tell from the real thing.

    Args:
        hostnames: loopback addresses to serve; the first free one is taken.
        initial_q: the arm's seven joint angles at the start, rad.

    Attributes:
        bodies: names of what the ground truth has the pose of.
    """

    bodies: tuple[str, ...] = ("cup", "object")

    def __init__(self, hostnames: Sequence[str] = ("127.0.0.1",), initial_q: Sequence[float] = HOME_Q) -> None:
        self._hostnames = list(hostnames)
        self._simulator = build_simulator(initial_q)
        self._server = SimulationServer(self._simulator, self._hostnames)
        self._episode: PlacingEpisode | None = None
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._state: SceneState | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="twin", daemon=True)
        self._failure: BaseException | None = None
        self._steps = 0
        self._overruns = 0
        self._lost_ns = 0
        self._marks: deque[tuple[int, int]] = deque(maxlen=6)

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
        self._episode = PlacingEpisode(self._simulator.model, self._simulator.data)
        self._take_state()
        self._thread.start()

    def stop(self) -> None:
        """End the physics and close the server; calling it again does nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(COMMAND_TIMEOUT_S)
        self._server.cleanup()

    def reset(self, seed: int, cup_speed: float = DEFAULT_SPEED) -> EpisodeScene:
        """Lay out the episode of a seed: object between the open fingers, cup at the start of its path.

        The object hangs between the fingers until they have closed on it. Returns the layout.

        Raises:
            ArmError: if the gripper is not open wide enough, or the twin does not run.
            TaskError: if the seed or the speed is not valid.
        """
        scene = episode_scene(seed, cup_speed)
        self._in_loop(lambda episode: episode.lay_out(scene))
        return scene

    def start_path(self) -> None:
        """Let the cup's path begin, now or as soon as the fingers hold the object; raises ArmError if not running."""
        self._in_loop(PlacingEpisode.start_path)

    def scene_state(self) -> SceneState:
        """Return the state after the latest step; raises ArmError if the twin does not run."""
        self._check()
        assert self._state is not None
        return self._state

    def ground_truth(self) -> GroundTruth:
        """Return where cup, object and tool are, between two steps; raises ArmError if the twin does not run."""
        return self._in_loop(lambda episode: episode.ground_truth(time.time_ns()))

    def statistics(self) -> dict[str, float]:
        """Return how well real time is kept.

        ``real_time_factor`` over the last 5 s (1 is real time), ``overruns``: times a backlog over 5 ms was left
        out, ``lost_s``: their sum, ``steps``: of 1 ms since the start.
        """
        marks = list(self._marks)
        factor = 1.0
        if marks:
            (then_ns, then_steps), steps = marks[0], self._steps
            elapsed = time.monotonic_ns() - then_ns
            factor = (steps - then_steps) * STEP_NS / elapsed if elapsed > 0 else 1.0
        values = {"overruns": self._overruns, "lost_s": self._lost_ns / 1e9, "steps": self._steps}
        return {"real_time_factor": factor, **{key: float(value) for key, value in values.items()}}

    def _in_loop(self, work: Callable[[PlacingEpisode], Result]) -> Result:
        """Run ``work`` between two steps in the physics thread and return what it returns."""
        self._check()
        done: Future[Result] = Future()

        def command() -> None:
            assert self._episode is not None
            try:
                done.set_result(work(self._episode))
            except Exception as error:
                done.set_exception(error)

        self._commands.put(command)
        try:
            return done.result(COMMAND_TIMEOUT_S)
        except FutureTimeout as error:
            raise ArmError(f"the twin did not answer within {COMMAND_TIMEOUT_S:.0f} s") from error

    def _check(self) -> None:
        if self._failure is not None:
            raise ArmError(f"the twin has ended: {self._failure}") from self._failure
        if not self._thread.is_alive():
            raise ArmError("the twin does not run; start it first")

    def _run(self) -> None:
        due = time.monotonic_ns()
        try:
            while not self._stop.is_set():
                due = self._wait_for(due)
                self._step()
        except Exception as error:
            self._failure = error
            raise

    def _wait_for(self, due_ns: int) -> int:
        """Sleep until a step is due and return when the next one is."""
        now = time.monotonic_ns()
        if now < due_ns:
            time.sleep((due_ns - now) / 1e9)
        elif now - due_ns > CATCH_UP_NS:
            self._overruns += 1
            self._lost_ns += now - due_ns
            due_ns = now
        return due_ns + STEP_NS

    def _step(self) -> None:
        assert self._episode is not None
        if self._steps % 1000 == 0:
            self._marks.append((time.monotonic_ns(), self._steps))
        while not self._commands.empty():
            self._commands.get_nowait()()
        self._episode.before_step()
        # The server's own run_once ends with a sleep(0), which costs the timer's slack of 60 us in every step.
        for robot in self._server.robot_servers:
            robot.process_commands()
        self._simulator.step()
        for robot in self._server.robot_servers:
            robot.send_state()
        self._steps += 1
        self._take_state()

    def _take_state(self) -> None:
        # A new object every step: whoever holds an older one keeps a consistent picture without a lock.
        data = self._simulator.data
        self._state = SceneState(time.time_ns(), data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())
