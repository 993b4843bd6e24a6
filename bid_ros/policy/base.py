"""The policy interface: encode an observation once, then sample N chunks from it.

Families of policies (diffusion, and those of other packages) share the format of a bundle. They differ in graphs,
settings and sampling. Decoders, nodes and rehearsals know only :class:`Policy`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.observation import History, Observation, task_history
from bid_ros.core.task import Task
from bid_ros.decoding import StartMode
from bid_ros.policy.anchor import ActionReference
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.runtimes.base import Runtime
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.grid import grid_of

Array = NDArray[np.float64]
Graphs: TypeAlias = Mapping[str, Path]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A checked bundle. Build it with :func:`bid_ros.policy.bundle.load_bundle`.

    Attributes:
        path: its folder.
        name: its own name.
        sha256: hash of ``bundle.yaml``, hexadecimal.
        family: name of its family of policies.
        settings: settings of the sampling, which the family reads from its section of ``bundle.yaml``.
        observation: normaliser per vector feature of the task; with a space, per vector of the network.
        action: normaliser of the D action values, counted from ``action_reference``; with a space, of the network's.
        action_reference: where predicted positions count from, see :mod:`bid_ros.policy.anchor`.
        action_spread: ``(D,)`` standard deviation of the actions in the training data, task units.
        strong: graphs of the policy, by their role in the family.
        weak: graphs of the early checkpoint, None without one.
        provenance: origin (commit, data, seeds, steps). For people, and for ``bid policy distill``
            and ``bid policy export``, which read how the policy was trained.
        space: what the network sees and predicts. None: the features and the action of the task.
        action_weights: factor of each action feature of the task in the distances that decoders compare, by name. A
            feature that is not named has 1.
    """

    path: Path
    name: str
    sha256: str
    family: str
    settings: Any
    observation: Mapping[str, LinearNormaliser]
    action: LinearNormaliser
    action_reference: ActionReference
    action_spread: NDArray[np.float64]
    strong: Graphs
    weak: Graphs | None
    provenance: Mapping[str, Any]
    space: Space | None = None
    action_weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name, @, and the first 12 digits of the hash: what a recording says about its policy."""
        return f"{self.name}@{self.sha256[:12]}"

    def history(self, task: Task) -> History:
        """Return the observed steps that the policy wants. Whoever builds its observations keeps as many."""
        if self.space is None:
            return task_history(task)
        grid = grid_of(self.space, task)
        return History(grid.steps, grid.dt_ns)


@dataclass(frozen=True)
class Capabilities:
    """What a policy can do besides sampling from noise, and what it expects.

    Attributes:
        starts: whether sampling can start from a chunk, so that decoders may warm-start.
        gradients: whether samples can be drawn towards a chunk: ``sample`` then takes an argument ``guidance``,
            :class:`bid_ros.decoding.Guidance` or None.
        simulated_delay: the longest delay, in steps, that it was trained for; 0: none. Above 0 ``encode`` takes an
            argument ``committed``, :attr:`bid_ros.decoding.Proposal.committed`, and its chunks begin with those rows.
        made_up_rows: first rows of a chunk that only fill the shape: rows of the past, not predicted.
        history: observed steps that it wants, None for those that the task says.
        instruct: asks with another text of the task from now on, an empty one stands for the policy's own; returns the
            text that it is asked with. None: it takes no text.
        vitals: returns what it tells of its last question, by name, for ``/diagnostics``.
    """

    starts: bool = True
    gradients: bool = False
    simulated_delay: int = 0
    made_up_rows: int = 0
    history: History | None = None
    instruct: Callable[[str], str] | None = None
    vitals: Callable[[], Mapping[str, object]] = dict


class Policy(Protocol):
    """Samples action chunks. Results depend on no earlier call, but on the text of the task. One thread only.

    Attributes:
        runtime: name of the library that runs the networks.
    """

    runtime: str

    @property
    def capabilities(self) -> Capabilities:
        """What it can do. A policy whose server is started again may answer differently afterwards."""

    @property
    def has_weak(self) -> bool:
        """Whether there is a weak policy, an early checkpoint of the same training."""

    def encode(self, observation: Observation, weak: bool = True) -> Any:
        """Encode an observation. One call serves all samples of a decision.

        Args:
            observation: features as the task names them, raw units, at the steps of the policy's history.
            weak: whether weak samples will be drawn. No effect without a weak policy.

        Raises:
            ObservationError: a feature is missing, or has another shape than the task says.
        """

    def sample(
        self,
        encoded: Any,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
    ) -> tuple[Array, Array | None]:
        """Sample chunks. The same generator state and arguments give the same chunks.

        Args:
            encoded: result of :meth:`encode`.
            strong: number of strong samples, at least 1.
            weak: number of weak samples, 0 for none. Their number does not change the strong samples.
            rng: source of all randomness.
            start: ``(H, D)`` trajectory in task units from which sampling starts, if ``start_mode`` needs one.
            start_mode: see :class:`bid_ros.decoding.Proposal`.

        Returns:
            Strong ``(strong, H, D)`` and weak ``(weak, H, D)`` or None, task units, float64. Rows before
            ``observation_steps - 1`` lie in the past.

        Raises:
            DecodingError: a count or the start mode is not valid.
        """

    def warm_up(self, samples: int) -> None:
        """Run every network once, for one sample and for ``samples``, so that no decision has to wait for compiling."""


def policy_history(policy: Policy, task: Task) -> History:
    """Return the observed steps that a policy wants, as :meth:`Bundle.history` of its bundle."""
    return policy.capabilities.history or task_history(task)


@dataclass(frozen=True)
class PolicyFamily:
    """A family of policies: ``FAMILY`` of its package, or an entry point of ``bid_ros.policies``.

    Attributes:
        name: name of the family and of its section in ``bundle.yaml``.
        roles: names of the graphs of one policy, such as ``encoder``.
        optional: names of further graphs that a bundle may have.
        settings: turns the section into the family's settings. Raises BundleError for a bad field.
        load: turns a bundle, its task, a runtime or the name of one, and a number of threads into the policy. Raises
            BundleError if a graph does not fit the family and the task.
        denoises: whether samples are denoised. If not, no decoder that starts or guides the denoising is taken.
        most_samples: turns the settings into the largest number of samples of a decision; None: any number.
    """

    name: str
    roles: tuple[str, ...]
    settings: Callable[[Any], Any]
    load: Callable[[Bundle, Task, str | Runtime, int], Policy]
    optional: tuple[str, ...] = ()
    denoises: bool = True
    most_samples: Callable[[Any], int | None] = lambda settings: None
