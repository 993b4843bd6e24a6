"""An ACT policy: predicts one chunk, deterministically, with each of its members.

A member is a checkpoint. Several of them are candidates among which a decoder chooses: they are what a policy that
draws nothing has in place of samples. The graphs of a member, ONNX files:

- encoder: one input per observation feature, by its name: an image uint8 ``(To, height, width, 3)`` with values 0
  to 255, a vector float32 ``(To, S)`` normalised; one output ``chunk`` float32 ``(1, R D)``, normalised. R is
  ``horizon - (observation_steps - 1)``.
- frames, where there is one: see :mod:`bid_ros.policy.graph_policy`.

The first member's roles have these names, those of the second are ``encoder_2`` and ``frames_2``, and so on.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.observation import blank_observation
from bid_ros.core.task import Task
from bid_ros.decoding import StartMode
from bid_ros.policy.act.settings import member_role
from bid_ros.policy.base import Array, Bundle, Capabilities
from bid_ros.policy.graph_policy import Encoded, GraphPolicy, ObservationEncoder
from bid_ros.policy.runtimes.base import Runtime


class ActPolicy(GraphPolicy):
    """Predicts a chunk for each member of a bundle. Results do not depend on earlier calls. One thread only.

    Its arguments are those of :class:`bid_ros.policy.graph_policy.GraphPolicy`.

    Attributes:
        capabilities: nothing is drawn, so there is no start and no guidance. No row of the past is predicted.

    Raises:
        BundleError: a graph is missing, cannot be loaded, or does not fit the task; or there is a weak policy.
        BidError: the runtime cannot be used.
    """

    def __init__(self, bundle: Bundle, task: Task, runtime: str | Runtime = "auto", threads: int = 1) -> None:
        super().__init__(bundle, task, runtime, threads)
        if bundle.weak is not None:
            raise BundleError("a policy of the family act draws no samples to contrast; valid is graphs.weak null")
        self.capabilities = Capabilities(starts=False, made_up_rows=task.observation_steps - 1)
        self._rows = task.chunk_rows
        self._strong = [self._member(number) for number in range(1, bundle.settings.members + 1)]

    def _member(self, number: int) -> ObservationEncoder:
        own = {role: self._bundle.strong.get(member_role(role, number)) for role in ("frames", "encoder")}
        if own["encoder"] is None:
            raise BundleError(
                f"act has {self._bundle.settings.members} members; valid is a graph {member_role('encoder', number)}"
            )
        files = {role: path for role, path in own.items() if path is not None}
        return ObservationEncoder(files, self._task, self._chosen, self._rows * self._task.action_dim)

    def _encoded(self, feeds: Mapping[str, NDArray[Any]], weak: bool) -> tuple[Any, Any]:
        """Return the features as they are: only those members run that a decoder asks for."""
        return feeds, None

    def sample(
        self,
        encoded: Encoded,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
    ) -> tuple[Array, Array | None]:
        """Return the chunks of the first members. They are the same whatever ``rng`` is.

        Args:
            encoded: result of :meth:`encode`.
            strong: number of chunks, 1 to the number of members.
            weak: valid is 0 only.
            rng: not used.
            start: not used.
            start_mode: valid is ``noise`` only.

        Returns:
            Strong ``(strong, H, D)``, task units, float64, and None. Nothing is predicted of the past: rows before
            ``observation_steps - 1`` continue the first step of the chunk backwards.

        Raises:
            DecodingError: a count or the start mode is not valid.
        """
        self._check_drawn(start_mode)
        if strong > len(self._strong):
            raise DecodingError(
                f"{strong} samples were asked for; valid is up to {len(self._strong)}: a policy of the family act "
                "draws none, each checkpoint in its bundle has one chunk for an observation"
            )

        def draw(members: list[ObservationEncoder], feeds: Mapping[str, NDArray[Any]], count: int) -> Array:
            found = np.concatenate([member.run(feeds) for member in members[:count]])
            return self._chunks(encoded, found.reshape(count, self._rows, self._task.action_dim))

        return self._drawn(encoded, strong, weak, draw)

    def warm_up(self, samples: int) -> None:
        """Run every network once, so that no decision has to wait for compiling."""
        encoded = self.encode(blank_observation(self._task))
        self.sample(encoded, len(self._strong), 0, np.random.default_rng(0))
