"""A decision as the peers make it: eager PyTorch, an observation encoded for every sample, strong and weak apart."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle
from bid_ros.policy.normalise import LinearNormaliser
from results.peers.choice import choose
from results.peers.schedulers import Ddim, Ddpm
from results.timing import Durations

SchedulerName = Literal["ddim", "ddpm"]
_SCHEDULERS: Final[Mapping[SchedulerName, type[Ddim] | type[Ddpm]]] = {"ddim": Ddim, "ddpm": Ddpm}


@dataclass(frozen=True)
class Networks:
    """The networks of one policy.

    Attributes:
        encoder: images per camera ``(N, To, h, w, 3)`` in [-0.5, 0.5] and vectors ``(N, To, S)`` normalised to ``(N,
            C)``.
        denoiser: sample ``(N, H, D)``, step ``(N,)`` and condition ``(N, C)`` to the prediction ``(N, H, D)``.
    """

    encoder: nn.Module
    denoiser: nn.Module


class EagerMaker:
    """Decides as the published code does.

    Args:
        policies: strong, and weak where there is one.
        bundle: normalisation, noise and prediction of these policies.
        task: their task.
        scheduler: ``ddim`` or ``ddpm``.
        steps: network calls a sample.
        samples: N.
    """

    def __init__(
        self,
        policies: list[Networks],
        bundle: Bundle,
        task: Task,
        scheduler: SchedulerName,
        steps: int,
        samples: int,
    ) -> None:
        self._policies, self._task, self._steps, self._count = policies, task, steps, samples
        self._scheduler: Ddim | Ddpm = _SCHEDULERS[scheduler](bundle.settings)
        self._observation = {name: _Scale(item) for name, item in bundle.observation.items()}
        self._action = _Scale(bundle.action)
        self._previous: torch.Tensor | None = None

    def decide(self, observation: Observation) -> Durations:
        """Decide on an observation, remember the decision, and return how long its parts took, ns."""
        with torch.no_grad():
            return self._decide(observation)

    def _decide(self, observation: Observation) -> Durations:
        begin = time.perf_counter_ns()
        batch = self._repeat(observation)
        encode_ns, sample_ns = time.perf_counter_ns() - begin, 0
        chunks = []
        for policy in self._policies:
            begin = time.perf_counter_ns()
            condition = self._encode(policy, batch)
            encoded = time.perf_counter_ns()
            chunks.append(self._sample(policy, condition))
            encode_ns, sample_ns = encode_ns + encoded - begin, sample_ns + time.perf_counter_ns() - encoded
        begin = time.perf_counter_ns()
        weak = chunks[1] if len(chunks) > 1 else None
        index = choose(chunks[0], weak, self._previous, self._task.observation_steps)
        self._previous = chunks[0][index, 1:]
        chunks[0][index].numpy()
        return encode_ns, sample_ns, time.perf_counter_ns() - begin

    def _repeat(self, observation: Observation) -> dict[str, torch.Tensor]:
        """Return the observation N times, each feature ``(N, To, ...)``."""
        batch = {}
        for item in self._task.observation:
            value = torch.from_numpy(np.asarray(observation.values[item.name])).float()
            batch[item.name] = value.unsqueeze(0).repeat(self._count, *[1] * value.ndim)
        return batch

    def _encode(self, policy: Networks, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Normalise and encode every one of the N observations: ``(N, C)``."""
        images = {item.name: batch[item.name] / 255 - 0.5 for item in self._task.cameras}
        vectors = {item.name: self._observation[item.name].normalise(batch[item.name]) for item in self._task.vectors}
        condition: torch.Tensor = policy.encoder(images, vectors)
        return condition

    def _sample(self, policy: Networks, condition: torch.Tensor) -> torch.Tensor:
        """Return N chunks ``(N, H, D)``, task units."""
        sample = torch.randn(self._count, self._task.horizon, self._task.action_dim)
        self._scheduler.set_timesteps(self._steps)
        for timestep in self._scheduler.timesteps:
            output = policy.denoiser(sample, timestep.expand(self._count), condition)
            sample = self._scheduler.step(output, timestep, sample)
        return self._action.denormalise(sample)


class _Scale:
    """A normaliser in PyTorch."""

    def __init__(self, normaliser: LinearNormaliser) -> None:
        low, high = normaliser.minimum, normaliser.maximum
        self._centre, self._half = _tensor((high + low) / 2), _tensor((high - low) / 2)

    def normalise(self, values: torch.Tensor) -> torch.Tensor:
        return (values - self._centre) / self._half

    def denormalise(self, values: torch.Tensor) -> torch.Tensor:
        return values * self._half + self._centre


def _tensor(values: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(values).float()
