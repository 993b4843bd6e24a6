"""A family of policies: chunks that approach one goal, each a little different. The goal is a file of the bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.observation import Observation
from bid_ros.core.settings import Positive, Share, parse_settings, settings
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Capabilities, PolicyFamily
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.normalise import LinearNormaliser

Array = NDArray[np.float64]


@settings(error=BundleError)
class AttractorSettings:
    """The section ``attractor`` of ``bundle.yaml``.

    Attributes:
        rate: share of the way to the goal that one action covers.
        spread: of the samples' goals, in units of the spread of the training data.
    """

    rate: Share
    spread: Positive


class Attractor:
    """A :class:`bid_ros.policy.base.Policy` without networks."""

    runtime = "numpy"
    has_weak = False
    capabilities = Capabilities(starts=False)  # samples start from noise alone

    def __init__(self, bundle: Bundle, task: Task) -> None:
        self._task, self._settings = task, bundle.settings
        self._goal: Array = np.load(bundle.strong["goal"])
        self._spread = bundle.settings.spread * bundle.action_spread
        if self._goal.shape != (task.action_dim,):
            raise BundleError(f"the goal has shape {self._goal.shape}; valid is ({task.action_dim},)")

    def encode(self, observation: Observation, weak: bool = True) -> Array:
        """Return where the arm is, as an action: here each action has an observation of the same name."""
        return np.concatenate([observation.values[item.name][-1] for item in self._task.action])

    def sample(
        self,
        encoded: Array,
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: str = "noise",
    ) -> tuple[Array, Array | None]:
        """Return chunks ``(strong, H, D)``, and no weak ones. Rows before the current step stay where the arm is."""
        goals = self._goal + self._spread * rng.standard_normal((strong, self._goal.size))
        steps = np.arange(self._task.horizon) - (self._task.observation_steps - 1)
        left = (1.0 - self._settings.rate) ** np.maximum(steps, 0)
        return goals[:, None] + left[None, :, None] * (encoded - goals)[:, None], None

    def warm_up(self, samples: int) -> None:
        """Nothing has to be compiled."""


def write_bundle(folder: Path, task: Task, goal: Array, settings: AttractorSettings) -> Bundle:
    """Write a bundle for a task: what training would do at its end."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "goal.npy", goal)
    limits = task.limits
    ranges = {"position": (limits.workspace_min, limits.workspace_max), "rotation_6d": ([-1.0] * 6, [1.0] * 6)}
    ranges["gripper"] = ([limits.gripper_min], [limits.gripper_max])
    low, high = (np.concatenate([ranges[item.kind][end] for item in task.action]) for end in (0, 1))
    return write_bundle_manifest(
        folder,
        task,
        name="attractor",
        family="attractor",
        observation={item.name: LinearNormaliser(*map(np.array, ranges[item.kind])) for item in task.vectors},
        action=LinearNormaliser(low, high),
        action_spread=[0.1] * task.action_dim,
        settings=settings,
        graphs={"strong": {"goal": "goal.npy"}},
        provenance={"command": "write_bundle"},
    )


FAMILY = PolicyFamily(
    name="attractor",
    roles=("goal",),
    settings=lambda content: parse_settings(AttractorSettings, content, "attractor"),
    load=lambda bundle, task, runtime, threads: Attractor(bundle, task),
)
