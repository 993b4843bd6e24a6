"""Which decoder and action horizon to begin with, by what the samples of a policy show."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

FEW_MODES: Final = 1.45
"""Up to so many modes in the mean, an average of two decisions is still a decision."""
LONGEST_S: Final = 0.8
"""The longest action horizon that was measured."""
PAGE: Final = "docs/results/recommendation.md"
SCENES: Final = {"still": "Nothing moves but the robot", "moving": "Something else moves, or a person may come near"}
"""Kinds of scene, in words."""


@dataclass(frozen=True)
class Recommendation:
    """A decoder to begin with.

    Attributes:
        scene: of :data:`SCENES`.
        decoder: name of the registry.
        samples: N.
        action_horizon: actions a decision.
        why: the reason, in whole sentences.
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


def recommend(
    modes: float, horizon: int, dt_s: float, samples: int = 16, refused: Mapping[str, float] = MappingProxyType({})
) -> tuple[Recommendation, Recommendation]:
    """Return what to begin with where nothing moves, and where something does.

    The rule was made on two thirds of the pairs of policy and task that :data:`PAGE` shows, and holds on the others as
    that page says.

    Args:
        modes: the measure ``modes`` of the policy's samples, in the mean.
        horizon: rows of a prediction.
        dt_s: s between two of them.
        samples: N; 1 for a policy that gives a single chunk.
        refused: the measure ``refused`` by decoder, of those that were evaluated. One for which safety would stop the
            arm is not recommended. BID leaves such samples out.
    """
    half = max(1, min(horizon // 2, round(LONGEST_S / dt_s)))
    still = f"The scene does not change while half a prediction is executed, at most {LONGEST_S} s."
    quick = "Each decision sees the newest observation."
    if samples == 1:
        moving = Recommendation("moving", "vanilla", 1, 1, f"{quick} One chunk leaves nothing to choose.")
    else:
        moving = Recommendation("moving", "bid", samples, 1, f"{quick} BID keeps to one strategy.")
    stopped = [name for name in ("ema", "vanilla") if refused.get(name, 0.0) > 0]
    if modes <= FEW_MODES and "ema" not in stopped:
        return Recommendation("still", "ema", 1, half, f"{still} {modes:.2f} modes can be averaged."), moving
    why = (
        f"{modes:.2f} modes are too many to average." if modes > FEW_MODES else "Safety would stop averages (refused)."
    )
    if "vanilla" not in stopped or samples == 1:
        return Recommendation("still", "vanilla", 1, half, f"{still} {why}"), moving
    why = "BID leaves out samples for which safety would stop the arm (refused)."
    return Recommendation("still", "bid", samples, half, f"{still} {why}"), moving


def described(found: Mapping[str, Any], horizon: int, dt_s: float) -> str:
    """Return what the samples show, and what to begin with, as text.

    Args:
        found: summary of an evaluation, of :func:`bid_ros.evaluation.report.summary`, with ``samples``.
        horizon: rows of a prediction of its task.
        dt_s: s between two of them.
    """
    (modes, low, high), samples = found["policy"]["modes"], found["samples"]
    apart = 100 * found["policy"]["disagreement"][0]
    measured = {name: item["measures"]["refused"] for name, item in found["decoders"].items()}
    refused = {name: share[0] for name, share in measured.items() if share is not None}
    chosen = recommend(modes, horizon, dt_s, samples, refused)
    shown = (
        f"{samples} samples show {modes:.2f} modes ({low:.2f} to {high:.2f}). {apart:.0f} % of their pairs are of "
        f"different strategies. {PAGE} says how far to trust this. Episodes decide: compare them with `bid rehearse` "
        "or `bid up`."
    )
    return "\n".join(
        ["Where to begin:", *(f"- {SCENES[item.scene]}: `{item.options}`. {item.why}" for item in chosen), shown]
    )
