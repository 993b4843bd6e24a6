"""A policy in the task's terms around one in its network's terms."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bid_ros.core.errors import DecodingError
from bid_ros.core.observation import History, Observation, check_observed
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.decoding import Decoder, Guidance, StartMode
from bid_ros.policy.base import Capabilities, Policy
from bid_ros.policy.spaces.action import ActionConversion
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.grid import NEAR, RowMapping, grid_of
from bid_ros.policy.spaces.observation import ObservationConversion
from bid_ros.policy.spaces.part_conversion import ROTATION, Anchor


@dataclass(frozen=True, eq=False)
class SpacedEncoding:
    """An encoded observation.

    Attributes:
        network: what the policy of the network's terms made of it.
        anchor: what chunks count from.
    """

    network: Any
    anchor: Anchor


class SpacedPolicy:
    """Turns observations into a network's terms, and its chunks into those of the task.

    Decoders, safety and nodes see the task's action alone: absolute values in the base frame, or joints.

    Args:
        policy: in the network's terms, as :func:`bid_ros.policy.spaces.view.network_task` gives them.
        space: of the network.
        task: the task.

    Attributes:
        runtime: name of the library that runs the networks.
        capabilities: sampling may start from a chunk where the space has an exact way back, and be drawn towards one
            where that goes row by row, if the policy can. Made-up rows lie before all that the policy predicts. The
            history is at the network's rate.

    Raises:
        BundleError: the space does not fit the task.
    """

    def __init__(self, policy: Policy, space: Space, task: Task) -> None:
        grid = grid_of(space, task)
        self._policy, self._task, self.runtime = policy, task, policy.runtime
        self._observation = ObservationConversion(space, task)
        self._action = ActionConversion(space, task, grid)
        self._rows = rows_of(space, task)
        self._steps, can = grid.steps, policy.capabilities
        early = int((self._rows.at < can.made_up_rows - NEAR).sum())
        self.capabilities = Capabilities(
            starts=can.starts and self._action.linear and self._rows.starts,
            gradients=can.gradients and self._action.row_wise and self._rows.guides,
            made_up_rows=min(early, task.observation_steps - 1),
            history=History(grid.steps, grid.dt_ns),
            instruct=can.instruct,
            vitals=can.vitals,
        )

    @property
    def has_weak(self) -> bool:
        """Whether there is a weak policy."""
        return self._policy.has_weak

    def encode(self, observation: Observation, weak: bool = True) -> SpacedEncoding:
        """Encode an observation of the task's features at the steps of its history, raw units.

        Raises:
            ObservationError: a feature is missing, or has another shape.
        """
        check_observed(observation.values, self._task, self._steps)
        seen = self._policy.encode(self._observation.to_network(observation), weak)
        return SpacedEncoding(seen, self._action.anchor(observation.values))

    def sample(
        self,
        encoded: SpacedEncoding,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
        guidance: Guidance | None = None,
    ) -> tuple[Array, Array | None]:
        """Sample chunks in task units. Arguments as of :meth:`bid_ros.policy.base.Policy.sample`.

        Raises:
            DecodingError: as there, or the space has no exact way back for a start or a target.
        """
        given: dict[str, Any] = {}
        start = self.start(encoded, start, start_mode)
        if guidance is not None:
            if not self.capabilities.gradients:
                raise DecodingError(f"guided samples were asked for; valid are unguided ones: {NO_WAY_BACK}")
            weights = self._rows.weights(guidance.weights)
            given["guidance"] = replace(guidance, target=self._back(guidance.target, encoded.anchor), weights=weights)
        drawn = self._policy.sample(encoded.network, strong, weak, rng, start, start_mode, **given)
        return self.place(encoded, *drawn)

    def start(self, encoded: SpacedEncoding, start: Array | None, start_mode: StartMode) -> Array | None:
        """Return a start in the network's terms; None for one from noise.

        Raises:
            DecodingError: sampling cannot start from a chunk.
        """
        if start_mode == "noise":
            return None
        if not self.capabilities.starts:
            raise DecodingError(f"start mode is '{start_mode}'; valid is noise: {NO_WAY_BACK}")
        return None if start is None else self._back(start, encoded.anchor)

    def place(self, encoded: SpacedEncoding, strong: Array, weak: Array | None) -> tuple[Array, Array | None]:
        """Return samples of the network, strong and weak, in the task's terms."""
        return self._there(strong, encoded.anchor), None if weak is None else self._there(weak, encoded.anchor)

    def warm_up(self, samples: int) -> None:
        """Run every network once, for one sample and for ``samples``."""
        self._policy.warm_up(samples)

    def _there(self, predicted: Array, anchor: Anchor) -> Array:
        return self._rows.to_task(self._action.to_task(predicted, anchor))

    def _back(self, chunk: Array, anchor: Anchor) -> Array:
        found: Array = self._action.to_network(self._rows.to_network(chunk)[None], anchor)[0]
        return found


NO_WAY_BACK = "the policy, or the space of its bundle, has no exact way from a chunk back to the network's rows"


def check_space(space: Space, task: Task, decoder: Decoder) -> None:
    """Raise DecodingError if a decoder starts from a chunk, or draws towards one, and a space has no exact way back."""
    action, rows = ActionConversion(space, task, grid_of(space, task)), rows_of(space, task)
    for asks, able, needs in (
        (decoder.needs.starts, action.linear and rows.starts, "starts from its last decision"),
        (decoder.needs.gradients, action.row_wise and rows.guides, "draws towards its last decision"),
    ):
        if asks and not able:
            raise DecodingError(
                f"decoder '{decoder.name}' {needs}, and the space of the bundle has no exact way back to the network's "
                "rows; valid is a decoder that starts from noise and guides no samples"
            )


def rows_of(space: Space, task: Task) -> RowMapping:
    """Return the way from a network's rows to the task's. Raises BundleError if they end before those of the task."""
    grid = grid_of(space, task)
    rotations = [own for item, own in task.action_columns if item.kind == ROTATION]
    return RowMapping(grid, task, rotations, ActionConversion(space, task, grid).switched)
