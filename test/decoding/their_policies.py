"""Small policies with the interfaces of LeRobot, Diffusion Policy and openpi, whose chunks go left or right at random.

The signatures are those of LeRobot's ``PreTrainedPolicy`` (0.6), Diffusion Policy's ``BaseLowdimPolicy`` and openpi's
``BasePolicy``. Each keeps what it drew.
"""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

PAST, ROWS, VALUES = 2, 8, 3  # observed steps, rows of a chunk, values of an action


class TwoModes:
    """Draws chunks that stay near +1 or near -1; ``drawn`` keeps them."""

    def __init__(self, seed: int, rows: int = ROWS) -> None:
        self._generator, self._rows = torch.Generator().manual_seed(seed), rows
        self.drawn: list[Tensor] = []

    def draw(self, count: int) -> Tensor:
        """Return ``(count, H, D)``."""
        sides = torch.randint(0, 2, (count, 1, 1), generator=self._generator) * 2.0 - 1.0
        noise = 0.1 * torch.randn(count, self._rows, VALUES, generator=self._generator)
        self.drawn.append(sides + noise)
        return self.drawn[-1]


class LeRobotDiffusion(nn.Module):
    """A policy as LeRobot's type ``diffusion``: queues of observations and actions, rows from the newest one on."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.config = SimpleNamespace(n_obs_steps=PAST, n_action_steps=4, horizon=ROWS)
        self.modes = TwoModes(seed)
        self.reset()

    def reset(self) -> None:
        """Forget observations and actions."""
        self._queues = {
            "observation.state": deque(maxlen=self.config.n_obs_steps),
            "action": deque(maxlen=self.config.n_action_steps),
        }

    @torch.no_grad()
    def predict_action_chunk(self, batch: dict[str, Tensor], noise: Tensor | None = None) -> Tensor:
        """Return ``(B, n_action_steps, D)`` for the queued observations."""
        seen = torch.stack(list(self._queues["observation.state"]), dim=1)
        assert seen.shape[1] == self.config.n_obs_steps and len(batch["task"]) == len(seen)
        start = self.config.n_obs_steps - 1
        return self.modes.draw(len(seen))[:, start : start + self.config.n_action_steps]

    @torch.no_grad()
    def select_action(self, batch: dict[str, Tensor], noise: Tensor | None = None) -> Tensor:
        """Return ``(B, D)``."""
        queue = self._queues["observation.state"]
        while len(queue) < self.config.n_obs_steps - 1:
            queue.append(batch["observation.state"])
        queue.append(batch["observation.state"])
        if not self._queues["action"]:
            self._queues["action"].extend(self.predict_action_chunk(batch, noise=noise).transpose(0, 1))
        return self._queues["action"].popleft()


class DiffusionPolicy:
    """A policy as Diffusion Policy's runners want one."""

    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, seed: int = 0, n_action_steps: int = 3) -> None:
        self.n_obs_steps, self.n_action_steps, self.modes, self.resets = PAST, n_action_steps, TwoModes(seed), 0

    def reset(self) -> None:
        """Begin an episode."""
        self.resets += 1

    def predict_action(self, obs_dict: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return ``action`` ``(B, n_action_steps, D)`` and all rows, ``action_pred`` ``(B, H, D)``."""
        assert obs_dict["obs"].shape[1] == self.n_obs_steps
        chunks, start = self.modes.draw(len(obs_dict["obs"])), self.n_obs_steps - 1
        return {"action": chunks[:, start : start + self.n_action_steps], "action_pred": chunks}


class OpenpiPolicy:
    """What openpi's ``WebsocketClientPolicy`` answers: one chunk a question."""

    def __init__(self, seed: int = 0) -> None:
        self.modes, self.resets = TwoModes(seed), 0

    def reset(self) -> None:
        """Begin an episode."""
        self.resets += 1

    def infer(self, obs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a chunk ``(H, D)`` under ``actions``."""
        assert obs["observation/state"].shape == (VALUES,)
        return {"actions": self.modes.draw(1)[0].numpy(), "policy_timing": {"infer_ms": 1.0}}
