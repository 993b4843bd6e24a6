"""One episode of a batch: its world, its decoder, its chunks in flight, and its records."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.cell import Cell
from bid_ros.bench.grid import scene_seed
from bid_ros.bench.noise import ActionNoise
from bid_ros.bench.scene import Environment, Scene, SceneState
from bid_ros.bench.smoothness import overlap_distance
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.observation import ObservationBuffer
from bid_ros.core.task import Task
from bid_ros.decoding import Choice, build_decoder
from bid_ros.policy.base import Policy
from bid_ros.policy.decide import DecisionMaker, Draft

Array = NDArray[np.float64]
_NOISE, _JUMP = 1, 2  # random streams of an episode; 0 is the maker's
JUMP_STEPS: Final = (30, 45)  # the step of a jump is drawn from this range, so it has any phase of a horizon
ARENA: Final = (100.0, 412.0)  # px, where a jumping block may end
START_NS: Final = 1_000_000_000


@dataclass(frozen=True, eq=False)
class Trace:
    """Path of an episode of T steps: ``commands`` ``(T, D)``, ``agents`` ``(T + 1, A)``, ``blocks`` ``(T + 1, B)``."""

    commands: NDArray[np.float32]
    agents: NDArray[np.float32]
    blocks: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _Flight:
    """A decision: it is executed from step ``begins`` on, from row ``skipped`` on."""

    chunk: ActionChunk
    offsets: Array
    begins: int
    skipped: int


@dataclass
class _Log:
    coverage: float = 0.0
    decisions: int = 0
    distances: list[float] = field(default_factory=list)
    switches: int = 0
    commands: list[Array] = field(default_factory=list)
    agents: list[Array] = field(default_factory=list)
    blocks: list[Array] = field(default_factory=list)


class Episode:
    """Steps through :meth:`propose`, :meth:`accept` if it samples, and :meth:`act`, until :attr:`over`.

    Args:
        cell: its settings.
        seed, index: with the cell, they determine its numbers.
        steps: longest duration.
        scene: the simulated task.
        task: layout and rates.
        policy: draws the samples.
        switch_distance: distance of two decisions at which the strategy counts as changed, action units.
    """

    def __init__(
        self,
        cell: Cell,
        seed: int,
        index: int,
        steps: int,
        scene: Scene,
        task: Task,
        policy: Policy,
        switch_distance: float,
    ) -> None:
        self.cell, self.seed, self.index = cell, seed, index
        self._steps, self._scene, self._task, self._switch = steps, scene, task, switch_distance
        self._noise = ActionNoise(cell.noise, np.random.default_rng((seed, index, _NOISE)))
        self._maker = DecisionMaker(policy, build_decoder(cell.decoder, cell.config()), task, seed=(seed, index))
        self._buffer = ObservationBuffer(task)
        self._flights: deque[_Flight] = deque()
        self._log = _Log()
        self._env: Environment = scene.make(cell.drift)
        self._state: SceneState = self._env.reset(scene_seed(seed, index))
        self._step = 0
        jump = np.random.default_rng((seed, index, _JUMP))
        self._jump_step = int(jump.integers(*JUMP_STEPS))
        self._jump_angle = float(jump.uniform(0, 2 * np.pi))
        self._see()

    @property
    def over(self) -> bool:
        """Whether the score is full or the time is up."""
        return self._step >= self._steps or self.score >= 1.0

    @property
    def steps(self) -> int:
        """Steps executed."""
        return self._step

    @property
    def score(self) -> float:
        """Score so far, 0 to 1."""
        return float(self._scene.score(self._log.coverage))

    @property
    def jump_step(self) -> int:
        """Step before which the block jumps, if it does in this cell."""
        return self._jump_step

    def propose(self) -> Draft | None:
        """Observe, and return what to sample at this step. None: go on with the previous decision."""
        return self._maker.begin(self._buffer.assemble(self._now()))

    def accept(self, draft: Draft, strong: Array, weak: Array | None) -> None:
        """Choose among the samples. The decision takes effect ``delay`` steps from now."""
        record = self._maker.finish(draft, strong, weak)
        self._note(record.choice)
        delay = self.cell.delay
        flight = _Flight(record.chunk, self._noise.offsets(record.choice.actions), self._step + delay, delay)
        self._flights.append(flight)
        self._log.decisions += 1

    def act(self) -> None:
        """Execute one action and observe the result."""
        action = self._action()
        self._log.commands.append(action)
        self._state = self._env.step(action)
        self._step += 1
        self._log.coverage = max(self._log.coverage, float(self._state.coverage))
        if self.cell.jump and self._step == self._jump_step:
            self._displace()
        self._see()

    def trace(self) -> Trace:
        """Return the path so far."""
        width = self._task.action_dim
        commands = np.array(self._log.commands, np.float32).reshape(-1, width)
        return Trace(commands, np.array(self._log.agents, np.float32), np.array(self._log.blocks, np.float32))

    def measures(self) -> dict[str, float | int | None]:
        """Return the counts of the episode: coverage, decisions, distances of decisions, changes of strategy."""
        distances = self._log.distances
        return {
            "max_coverage": self._log.coverage,
            "decisions": self._log.decisions,
            "overlaps": len(distances),
            "overlap_px": float(np.mean(distances)) if distances else None,
            "switches": self._log.switches,
        }

    def _now(self) -> int:
        return START_NS + self._step * self._task.dt_ns

    def _note(self, choice: Choice) -> None:
        if choice.previous is None:
            return
        distance = overlap_distance(choice.actions, choice.previous, self._task.observation_steps)
        if distance is not None:
            self._log.distances.append(distance)
            self._log.switches += distance > self._switch

    def _action(self) -> Array:
        while len(self._flights) > 1 and self._flights[1].begins <= self._step:
            self._flights.popleft()
        if not self._flights or self._flights[0].begins > self._step:
            # The first decision is still being computed: stay where you are.
            return np.array(self._state.agent, dtype=np.float64)
        flight = self._flights[0]
        executed = self._step - flight.begins
        action: Array = flight.chunk.actions[flight.skipped + executed] + flight.offsets[executed]
        return action

    def _displace(self) -> None:
        block = np.array(self._state.block, dtype=np.float64)
        move = self.cell.jump * np.array([np.cos(self._jump_angle), np.sin(self._jump_angle)])
        # A coordinate that would leave the arena moves the other way; the jump keeps its length.
        inside = (block[:2] + move >= ARENA[0]) & (block[:2] + move <= ARENA[1])
        block[:2] += np.where(inside, move, -move)
        self._state = self._env.set_state(np.array(self._state.agent, dtype=np.float64), block)

    def _see(self) -> None:
        for name, value in self._scene.observe(self._state).items():
            self._buffer.add(name, self._now(), value)
        self._log.agents.append(np.array(self._state.agent, dtype=np.float64))
        self._log.blocks.append(np.array(self._state.block, dtype=np.float64))
