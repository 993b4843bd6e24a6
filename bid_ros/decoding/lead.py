"""Lead: shift each decision to where its target will be when the arm gets there.

A policy that learned from targets at rest aims at where the target was seen. The arm arrives later: after the decision,
the servo's and the arm's lag, and the time in which the policy closes a distance. So it follows a moving target at a
constant distance behind. Consecutive decisions show that motion: once the tool is over its target, each one is the
previous one, moved by what the target moved in between. On the way there a policy changes its decisions for other
reasons. So a difference counts the less, the farther the decision still goes.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.arrays import as_array
from bid_ros.decoding.decoder import Change, Choice, Decoder, DecodeRequest
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import DecisionMemory
from bid_ros.decoding.receding import Array, Builder, RecedingDecoder

if TYPE_CHECKING:
    from bid_ros.core.task import Task


class LeadDecoder(RecedingDecoder):
    """A decoder that shifts what it decided along the target's motion. It remembers decisions that are not shifted.

    Args:
        name: name in the registry.
        config: settings; ``lead`` says how far and along which columns it shifts.
        options: of :class:`bid_ros.decoding.receding.RecedingDecoder`.
    """

    def __init__(self, name: str, config: DecoderConfig, **options: Any) -> None:
        super().__init__(name, config, **options)
        self._lead = config.lead
        self._velocity: Array | None = None
        self._means = DecisionMemory(config.between)

    @property
    def velocity(self) -> Array | None:
        """Estimated velocity of the target along the columns, per s. None before the second decision."""
        return self._velocity

    def reset(self) -> None:
        """Forget the previous decision and the target's motion."""
        super().reset()
        self._means.reset()
        self._velocity = None

    def executed(self, stamp_ns: int, changed: Change) -> None:
        """Remember what is executed of a decision, and of the mean of its samples, as :meth:`Decoder.executed`."""
        super().executed(stamp_ns, changed)
        self._means.change(stamp_ns, changed)

    def choose(self, request: DecodeRequest, strong: ArrayLike, weak: ArrayLike | None) -> Choice:
        """Decide, estimate the motion, and shift. Raises DecodingError as :meth:`Decoder.choose`."""
        lead, choice = self._lead, super().choose(request, strong, weak)
        columns = list(range(min(2, request.action_dim)) if lead.columns is None else lead.columns)
        if columns and max(columns) >= request.action_dim:
            raise DecodingError(f"lead columns are {lead.columns}; valid are 0 to {request.action_dim - 1}")
        self._observe(as_array(strong).mean(axis=0), request, columns)
        if self._velocity is None:
            return choice
        actions, now = choice.actions.copy(), request.observation_steps - 1
        here = actions[now:, columns]
        # What is outside already stays there: the safety node refuses it, and says so.
        least = -np.inf if lead.low is None else np.minimum(here, lead.low)
        most = np.inf if lead.high is None else np.maximum(here, lead.high)
        actions[now:, columns] = np.clip(here + lead.time_s * self._velocity, least, most)
        return replace(choice, actions=actions)

    def _observe(self, mean: Array, request: DecodeRequest, columns: list[int]) -> None:
        """Filter the shift between the means ``(H, D)`` of two decisions' samples into the velocity."""
        before, now = self._means.previous_for(request.stamp_ns), request.observation_steps - 1
        self._means.remember(request.stamp_ns, request.dt_ns, mean)
        if before is None or len(before.previous) <= now:
            self._velocity = None
        elif before.steps:
            seconds = before.steps * request.dt_ns * 1e-9
            moved = mean[now : len(before.previous), columns] - before.previous[now:, columns]
            still_to_go = float(np.linalg.norm(mean[-1, columns] - mean[now, columns]))
            moved = moved.mean(axis=0) * max(0.0, 1.0 - still_to_go / self._lead.settled)
            kept, known = math.exp(-seconds / self._lead.filter_s), self._velocity
            velocity = (1.0 - kept) * moved / seconds + (0.0 if known is None else kept * known)
            speed = float(np.linalg.norm(velocity))
            # A policy that has lost its target follows the tool, and the tool the shift: bounded, it does not run away.
            self._velocity = velocity * min(1.0, self._lead.fastest / max(speed, 1e-12))


def check_lead(decoder: Decoder, task: "Task") -> None:
    """Raise DecodingError if a decoder leads and a task commands no position, whose unit the settings are in."""
    if isinstance(decoder, LeadDecoder) and task.columns("position") is None:
        kinds = ", ".join(dict.fromkeys(item.kind for item in task.action))
        raise DecodingError(
            f"decoder '{decoder.name}' moves a commanded position on, but task '{task.name}' commands {kinds}; "
            "valid is one without lead, such as bid"
        )


DECODERS: Final[Mapping[str, Builder]] = {
    "lead": LeadDecoder,
    "bid+lead": partial(LeadDecoder, selects=True),
}
