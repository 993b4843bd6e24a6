"""Which decoder and action horizon to begin with, by what the samples of a policy show."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

FEW_MODES: Final = 1.45
"""Up to so many modes in the mean, an average of two decisions is still a decision."""
LONGEST_S: Final = 0.8
"""The longest action horizon that was measured."""
PAGE: Final = "docs/results/recommendation.md"
SCENES: Final = {"still": "nothing moves but the robot", "moving": "something else moves, or a person may come near"}
"""Kinds of scene, in words."""


@dataclass(frozen=True)
class Recommendation:
    """A decoder to begin with.

    Attributes:
        scene: of :data:`SCENES`.
        decoder: name of the registry.
        samples: N.
        action_horizon: actions a decision.
        why: the reason, in one sentence.
    """

    scene: str
    decoder: str
    samples: int
    action_horizon: int
    why: str

    @property
    def options(self) -> str:
        """Return it as options of ``bid rehearse``."""
        return f"--decoder {self.decoder} --samples {self.samples} --action-horizon {self.action_horizon}"


def recommend(modes: float, horizon: int, dt_s: float, samples: int = 16) -> tuple[Recommendation, Recommendation]:
    """Return what to begin with where nothing moves, and where something does.

    The rule was made on two thirds of the pairs of policy and task that :data:`PAGE` shows, and holds on the others as
    that page says.

    Args:
        modes: the measure ``modes`` of the policy's samples, in the mean.
        horizon: rows of a prediction.
        dt_s: s between two of them.
        samples: N; 1 for a policy that gives a single chunk.
    """
    half = max(1, min(horizon // 2, round(LONGEST_S / dt_s)))
    steady = f"half a prediction is executed, at most {LONGEST_S} s: a scene at rest does not change meanwhile"
    if modes <= FEW_MODES:
        still = Recommendation("still", "ema", 1, half, f"{steady}, and {modes:.2f} modes can be averaged")
    else:
        still = Recommendation("still", "vanilla", 1, half, f"{steady}, and {modes:.2f} modes cannot be averaged")
    reacting = "each decision sees the newest observation"
    if samples == 1:
        return still, Recommendation("moving", "vanilla", 1, 1, f"{reacting}, and one chunk leaves nothing to choose")
    coherent = f"{reacting}, and BID keeps to a strategy where single samples would not"
    return still, Recommendation("moving", "bid", samples, 1, coherent)


def described(found: Mapping[str, Any], horizon: int, dt_s: float) -> str:
    """Return what the samples show, and what to begin with, as text.

    Args:
        found: summary of an evaluation, of :func:`bid_ros.evaluation.report.summary`, with ``samples``.
        horizon: rows of a prediction of its task.
        dt_s: s between two of them.
    """
    (modes, low, high), samples = found["policy"]["modes"], found["samples"]
    apart = 100 * found["policy"]["disagreement"][0]
    begin = (
        f"- {SCENES[item.scene]}: `{item.options}`. {item.why}." for item in recommend(modes, horizon, dt_s, samples)
    )
    shown = (
        f"{samples} samples show {modes:.2f} modes ({low:.2f} to {high:.2f}). {apart:.0f} % of their pairs are of "
        f"different strategies. {PAGE} says how far to trust this. Episodes decide: compare them with `bid rehearse` "
        "or `bid up`."
    )
    return "\n".join(["Where to begin:", *begin, shown])
