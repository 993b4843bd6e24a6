"""One policy for several arms: of a bundle that was trained for all of them, or the arms' own ones side by side."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.core.arms import Arms
from bid_ros.core.errors import BundleError, DecodingError
from bid_ros.core.observation import Observation
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.decoding import Decoder, StartMode
from bid_ros.decoding.lead import LeadDecoder
from bid_ros.policy.base import Bundle, Capabilities, Policy, policy_history
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionRecord, bundle_decoder
from bid_ros.policy.publishable import publishable_rows
from bid_ros.policy.registry import load_policy
from bid_ros.policy.second_best import Screening
from bid_ros.safety.screen import Screen, policy_chunks


class ArmsPolicy:
    """Draws each arm's part of a sample from the arm's own policy: sample ``i`` of one goes with ``i`` of the other.

    The parts of a sample know nothing of each other. A task in which the arms must work together needs a policy that
    was trained for both.

    Args:
        policies: by arm.
        arms: of the joint task.

    Raises:
        BundleError: the policies want different histories.
    """

    def __init__(self, policies: Mapping[str, Policy], arms: Arms) -> None:
        self._policies, self._arms = policies, arms
        self.runtime = next(iter(policies.values())).runtime
        wanted = {arm: policy_history(policy, arms.tasks[arm]) for arm, policy in policies.items()}
        if len(set(wanted.values())) > 1:
            found = ", ".join(
                f"{item.steps} steps of {item.dt_ns / 1e9:g} s for '{arm}'" for arm, item in wanted.items()
            )
            raise BundleError(f"the policies want {found}; valid is one history, as they decide together")
        able = [policy.capabilities for policy in policies.values()]
        made_up = max(item.made_up_rows for item in able)
        starts, history = all(item.starts for item in able), next(iter(wanted.values()))
        self.capabilities = Capabilities(starts=starts, made_up_rows=made_up, history=history)

    @property
    def has_weak(self) -> bool:
        """Whether every arm's policy has a weak one."""
        return all(policy.has_weak for policy in self._policies.values())

    def encode(self, observation: Observation, weak: bool = True) -> Mapping[str, Any]:
        """Encode each arm's part. Raises ObservationError as :meth:`bid_ros.policy.base.Policy.encode`."""
        return {arm: policy.encode(self._arms.part(arm, observation), weak) for arm, policy in self._policies.items()}

    def sample(
        self,
        encoded: Mapping[str, Any],
        strong: int,
        weak: int,
        rng: np.random.Generator,
        start: Array | None = None,
        start_mode: StartMode = "noise",
    ) -> tuple[Array, Array | None]:
        """Sample chunks ``(N, H, D)`` of all arms, as :meth:`bid_ros.policy.base.Policy.sample`."""
        drawn = []
        for (arm, policy), own in zip(self._policies.items(), rng.spawn(len(self._policies)), strict=True):
            begin = None if start is None else start[:, self._arms.columns[arm]]
            drawn.append(policy.sample(encoded[arm], strong, weak, own, begin, start_mode))
        weaker = [part for _, part in drawn if part is not None]
        joined = np.concatenate([part for part, _ in drawn], axis=-1)
        return joined, np.concatenate(weaker, axis=-1) if len(weaker) == len(drawn) else None

    def warm_up(self, samples: int) -> None:
        """Run every network once for one sample and for ``samples``."""
        for policy in self._policies.values():
            policy.warm_up(samples)


def load_bundles(folders: Sequence[str | Path], arms: Arms) -> dict[str, Bundle]:
    """Return the bundle of each arm, or under an empty name the one of all arms, if ``folders`` names only one.

    Raises:
        BundleError: a bundle is not valid, or those of the arms are of different families.
    """
    if len(folders) == 1:
        return {"": load_bundle(Path(folders[0]), arms.task)}
    named = zip(arms.tasks.items(), folders, strict=True)
    bundles = {arm: load_bundle(Path(folder), task) for (arm, task), folder in named}
    families = {arm: bundle.family for arm, bundle in bundles.items()}
    if len(set(families.values())) > 1:
        raise BundleError(f"the policies are of the families {', '.join(families.values())}; valid is one for all arms")
    return bundles


def joint_bundle(bundles: Mapping[str, Bundle]) -> Bundle:
    """Return what decoders ask of a bundle, of all arms. Its graphs and ranges are those of the first arm."""
    first, *others = bundles.values()
    if not others:
        return first
    weights = {f"{arm}/{name}": factor for arm, item in bundles.items() for name, factor in item.action_weights.items()}
    return replace(
        first,
        name="+".join(item.name for item in bundles.values()),
        sha256=hashlib.sha256("".join(item.sha256 for item in bundles.values()).encode()).hexdigest(),
        action_spread=np.concatenate([item.action_spread for item in bundles.values()]),
        weak=first.weak if all(item.weak is not None for item in others) else None,
        action_weights=weights,
    )


def arms_decoder(name: str, bundle: Bundle, arms: Arms, samples: int, action_horizon: int) -> Decoder:
    """Return a decoder of all arms, as :func:`bid_ros.policy.decide.bundle_decoder`.

    Raises:
        DecodingError: as there; or it leads, or guides the sampling, which is known of one arm alone.
    """
    decoder = bundle_decoder(name, bundle, arms.task, samples, action_horizon)
    if isinstance(decoder, LeadDecoder):
        raise DecodingError(
            f"decoder '{name}' leads the position of one arm, and '{arms.task.name}' has {len(arms.tasks)}; valid is "
            "one without lead, such as bid"
        )
    return decoder


def load_arms_policy(bundles: Mapping[str, Bundle], arms: Arms, runtime: str = "auto", threads: int = 1) -> Policy:
    """Return the policy of :func:`load_bundles`; raises as :func:`bid_ros.policy.registry.load_policy`."""
    if "" in bundles:
        return load_policy(bundles[""], arms.task, runtime, threads)
    made = {arm: load_policy(item, arms.tasks[arm], runtime, threads) for arm, item in bundles.items()}
    return ArmsPolicy(made, arms)


class ArmsScreen:
    """Screens samples of a joint task: every arm's part must keep the limits of that arm.

    Args:
        screens: by arm.
        arms: of the joint task.

    Attributes:
        free, rest: as :class:`bid_ros.safety.screen.Screen`.
    """

    def __init__(self, screens: Mapping[str, Screen], arms: Arms) -> None:
        self._screens, self._columns = screens, arms.columns
        self.free = self._stay_free if any(item.free for item in screens.values()) else None
        self.rest = self._rest if any(item.rest for item in screens.values()) else None

    def passes(self, samples: Array) -> NDArray[np.bool_]:
        """Return for each of the samples ``(N, H, D)`` whether it keeps the limits, ``(N,)``."""
        return self._all([(item.passes, arm) for arm, item in self._screens.items()], samples)

    def _rest(self, samples: Array) -> NDArray[np.bool_]:
        return self._all([(item.rest, arm) for arm, item in self._screens.items() if item.rest], samples)

    def _all(self, asked: Sequence[tuple[Screening, str]], samples: Array) -> NDArray[np.bool_]:
        passed = np.ones(len(samples), dtype=bool)
        for passes, arm in asked:
            passed &= passes(samples[..., self._columns[arm]])
        return passed

    def _stay_free(self, prediction: Array) -> bool:
        return all(
            item.free(prediction[:, self._columns[arm]]) for arm, item in self._screens.items() if item.free is not None
        )


def screens_of(
    arms: Arms, commanded: Mapping[str, Task], models: Mapping[str, ArmModel | None]
) -> tuple[dict[str, TaskChunks], ArmsScreen]:
    """Return what makes each arm's chunks into those of its own system, and what screens the samples of all.

    Args:
        arms: as the policy was made for.
        commanded: task of each arm's system.
        models: of the arms that command joints; None of any other.
    """
    made = {arm: policy_chunks(commanded[arm], task, models[arm]) for arm, task in arms.tasks.items()}
    return {arm: chunks for arm, (chunks, _) in made.items()}, ArmsScreen(
        {arm: item for arm, (_, item) in made.items()}, arms
    )


def part_of(record: DecisionRecord, arm: str, arms: Arms) -> DecisionRecord:
    """Return an arm's part of a decision: its columns of all candidates. Stamp, number and criteria are the same."""
    columns, task = arms.columns[arm], arms.tasks[arm]
    previous = None if record.choice.previous is None else record.choice.previous[..., columns]
    choice = replace(record.choice, actions=record.choice.actions[..., columns], previous=previous)
    rows = publishable_rows(record.chunk.actions[:, columns], task)
    chunk = replace(record.chunk, actions=rows, frame_id=task.base_frame)
    weak = None if record.weak is None else record.weak[..., columns]
    return replace(record, chunk=chunk, strong=record.strong[..., columns], weak=weak, choice=choice)
