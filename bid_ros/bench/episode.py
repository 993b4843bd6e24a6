"""One episode of a batch: its world, its decoder, its chunks in flight, its action noise, and its records."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.cell import Unit, scene_seed
from bid_ros.bench.scene import BenchSetup
from bid_ros.bench.smoothness import overlap_distance
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.observation import ObservationBuffer
from bid_ros.decoding import build_decoder
from bid_ros.policy.base import Policy
from bid_ros.policy.correction import Correction
from bid_ros.policy.decide import DecisionMaker
from bid_ros.policy.draft import Draft

Array = NDArray[np.float64]
_KEPT = 0.9  # share of the last decision's noise in the next one's


class ActionNoise:
    """Disturbs executed actions in proportion to how fast the prediction moves.

    ``u = (U[0, 1) + 0.5) * (+-1)`` per action value, ``step = u * diff(prediction) * strength``; the first decision's
    noise is ``step``, a later one's ``0.9`` of the last plus ``0.1 step``, row by row without shifting. What is added
    to the i-th executed action is the sum of rows 0 to i.

    Args:
        strength: z; 0 adds nothing.
        rng: drawn from once per decision, ``random`` before ``choice``.
    """

    def __init__(self, strength: float, rng: np.random.Generator) -> None:
        self._strength, self._rng = strength, rng
        self._rows: Array | None = None

    def offsets(self, prediction: ArrayLike) -> Array:
        """Return the disturbance of a decision ``(H, D)``: ``(H - 1, D)``, row i for its i-th executed action."""
        values = np.asarray(prediction, dtype=np.float64)
        if self._strength == 0:
            return np.zeros((values.shape[0] - 1, values.shape[1]))
        size = (1, values.shape[1])
        factor = (self._rng.random(size) + 0.5) * self._rng.choice([-1, 1], size)
        rows = factor * np.diff(values, axis=0) * self._strength
        self._rows = rows if self._rows is None else _KEPT * self._rows + (1 - _KEPT) * rows
        summed: Array = np.cumsum(self._rows, axis=0)
        return summed


_NOISE, _JUMP = 1, 2  # random streams of an episode; 0 is the maker's
JUMP_STEPS: Final = (30, 45)  # the step of a jump is drawn from this range, so it has any phase of a horizon
ARENA: Final = (100.0, 412.0)  # px, where a jumping block may end
START_NS: Final = 1_000_000_000


@dataclass(frozen=True, eq=False)
class EpisodePath:
    """Path of an episode of T steps: ``commands`` ``(T, D)``, ``agents`` ``(T + 1, A)``, ``blocks`` ``(T + 1, B)``."""

    commands: NDArray[np.float32]
    agents: NDArray[np.float32]
    blocks: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _Flight:
    """A decision: it is executed from step ``begins`` on. ``encoded``: the observation that it was made on."""

    chunk: ActionChunk
    offsets: Array
    begins: int
    encoded: Any = None


class BenchEpisode:
    """Steps through :meth:`propose`, :meth:`accept` if it samples, and :meth:`act`, until :attr:`over`.

    Args:
        unit: its cell, seed and longest duration.
        index: with cell and seed, it determines the numbers.
        setup: task and scene.
        policy: draws the samples.
        switch_distance: distance of two decisions at which the strategy counts as changed, action units.
        correction: corrects each executed action by the newest observation; None: nothing does.

    Attributes:
        steps: executed.
        coverage: the largest so far.
        decisions: made so far.
        distances: between consecutive decisions that overlap.
        switches: how many of these are changes of strategy.
        jump_step: before which the block jumps, if it does in this cell.
    """

    def __init__(
        self,
        unit: Unit,
        index: int,
        setup: BenchSetup,
        policy: Policy,
        switch_distance: float,
        correction: Correction | None = None,
    ) -> None:
        cell, seed, task = unit.cell, unit.seed, setup.task
        self.cell, self.seed, self.index = cell, seed, index
        self._longest, self._scene, self._task, self._switch = unit.steps, setup.scene, task, switch_distance
        self._policy, self._correction = policy, correction
        self._noise = ActionNoise(cell.noise, np.random.default_rng((seed, index, _NOISE)))
        self._maker = DecisionMaker(policy, build_decoder(cell.decoder, cell.config()), task, seed=(seed, index))
        self._buffer = ObservationBuffer(task, history=self._maker.history)
        self._flights: deque[_Flight] = deque()
        self.coverage, self.decisions, self.switches = 0.0, 0, 0
        self.distances: list[float] = []
        self._commands, self._agents, self._blocks = list[Array](), list[Array](), list[Array]()
        self._env = setup.scene.make(cell.drift)
        self._state = self._env.reset(scene_seed(seed, index))
        self.steps = 0
        jump = np.random.default_rng((seed, index, _JUMP))
        self.jump_step = int(jump.integers(*JUMP_STEPS))
        self._jump_angle = float(jump.uniform(0, 2 * np.pi))
        self._see()

    @property
    def over(self) -> bool:
        """Whether the score is full or the time is up."""
        return self.steps >= self._longest or self.score >= 1.0

    @property
    def score(self) -> float:
        """Score so far, 0 to 1."""
        return float(self._scene.score(self.coverage))

    def propose(self) -> Draft | None:
        """Observe, and return what to sample at this step. None: go on with the previous decision."""
        return self._maker.begin(self._buffer.assemble(self._now()))

    def accept(self, draft: Draft, strong: Array, weak: Array | None) -> None:
        """Choose among the samples. The decision takes effect ``delay`` steps from now."""
        record = self._maker.finish(draft, strong, weak)
        choice = record.choice
        if choice.previous is not None:
            distance = overlap_distance(choice.actions, choice.previous, self._task.observation_steps)
            if distance is not None:
                self.distances.append(distance)
                self.switches += distance > self._switch
        # The step that leads to the first executed row is the first to count, made up or not. A policy without a
        # history predicts no row before that one: the step is 0.
        rows = choice.actions[max(0, draft.request.made_up - 1) :]
        if self._task.observation_steps == 1:
            rows = np.concatenate([rows[:1], rows])
        offsets = self._noise.offsets(rows)
        self._flights.append(_Flight(record.chunk, offsets, self.steps + self.cell.delay, draft.encoded))
        self.decisions += 1

    def act(self) -> None:
        """Execute one action and observe the result."""
        action = self._action()
        self._commands.append(action)
        self._state = self._env.step(action)
        self.steps += 1
        self.coverage = max(self.coverage, float(self._state.coverage))
        if self.cell.jump and self.steps == self.jump_step:
            self._displace()
        self._see()

    def trace(self) -> EpisodePath:
        """Return the path so far."""
        width = self._task.action_dim
        commands = np.array(self._commands, np.float32).reshape(-1, width)
        return EpisodePath(commands, np.array(self._agents, np.float32), np.array(self._blocks, np.float32))

    def _now(self) -> int:
        return START_NS + self.steps * self._task.dt_ns

    def _action(self) -> Array:
        while len(self._flights) > 1 and self._flights[1].begins <= self.steps:
            self._flights.popleft()
        if not self._flights or self._flights[0].begins > self.steps:
            # The first decision is still being computed: stay where you are.
            return np.array(self._state.agent, dtype=np.float64)
        flight = self._flights[0]
        executed = self.steps - flight.begins
        row = self.cell.delay + executed
        action: Array = flight.chunk.actions[row]
        if self._correction is not None:
            newest = self._policy.encode(self._buffer.assemble(self._now()), weak=False)
            action = self._correction.correct(action, row, newest, flight.encoded.strong)
        disturbed: Array = action + flight.offsets[executed]
        return disturbed

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
        self._agents.append(np.array(self._state.agent, dtype=np.float64))
        self._blocks.append(np.array(self._state.block, dtype=np.float64))
