"""What every training repeats at a step: the optimiser, the moving average of the weights, and their checkpoint."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import nn

MOST_KEPT: Final = 0.9999  # of the averaged weights' past


class Descent:
    """A network in training, its moving average and its optimiser.

    Args:
        network: in training.
        averaged: a copy of it that takes the averages.
        optimiser: of the network's weights.
        ema_power: the averaged weights keep ``1 - (1 + step) ** -ema_power`` of their past.
        most_kept: largest share of their past that they keep.

    Attributes:
        step: number of steps taken.
    """

    def __init__(
        self,
        network: nn.Module,
        averaged: nn.Module,
        optimiser: torch.optim.Optimizer,
        ema_power: float,
        most_kept: float,
    ) -> None:
        self.step = 0
        self._optimiser, self._power, self._most_kept = optimiser, ema_power, most_kept
        self._parts: dict[str, Any] = {"networks": network, "averaged": averaged, "optimiser": optimiser}

    def descend(self, loss: torch.Tensor, learning_rate: float) -> None:
        """Take one step down the gradient of a loss, and average as in Diffusion Policy's code."""
        network, averaged = self._parts["networks"], self._parts["averaged"]
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        self._optimiser.step()
        keep = min(1 - (1 + self.step) ** -self._power, self._most_kept)
        torch._foreach_lerp_(list(averaged.parameters()), list(network.parameters()), 1 - keep)
        self.step += 1

    def state(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {"step": self.step, **{name: part.state_dict() for name, part in self._parts.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state`. Raises KeyError, RuntimeError or ValueError if the networks differ."""
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self.step = int(state["step"])


def rate_at(step: int, peak: float, warm_up: float, steps: int) -> float:
    """Return the learning rate of a step: it rises linearly over ``warm_up``, a share of ``steps``, then falls along a
    cosine to 0.
    """
    rising = round(warm_up * steps)
    if step < rising:
        return peak * (step + 1) / rising
    return peak * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising))) / 2


def seed_of(seed: int, step: int) -> int:
    """Return the seed of everything random in a step: a resumed run draws what an uninterrupted one would."""
    return int(np.random.SeedSequence([seed, step]).generate_state(1)[0])
