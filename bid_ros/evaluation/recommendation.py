"""Which decoder and action horizon to begin with, by what the samples of a policy show."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

FEW_MODES: Final = 1.2
"""Up to so many modes in the mean, an average of two decisions is still a decision."""
LITTLE_JITTER: Final = 1.2
"""Up to so much jerk, relative to the demonstrations, decisions at every step are smooth by themselves."""
LONGEST_S: Final = 0.8
"""The longest action horizon that was measured."""
SAMPLES: Final = 16
"""N with which the rule was made; fewer samples show fewer modes."""
PAGE: Final = "docs/results/recommendation.md"
SCENES: Final = {"still": "Nothing moves but the robot", "moving": "Something else moves"}
"""Kinds of scene, in words."""
NO_REFUSALS: Final[Mapping[str, float]] = MappingProxyType({})


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


def half_prediction(rows: int, dt_s: float) -> int:
    """Return half of the ``rows`` that a policy predicts from now on, one every ``dt_s`` s; at most what was tried."""
    return max(1, min(math.ceil(rows / 2), math.floor(LONGEST_S / dt_s + 1e-9)))


def recommend(
    modes: float,
    jitter: float,
    rows: int,
    dt_s: float,
    samples: int = SAMPLES,
    refused: Mapping[str, float] = NO_REFUSALS,
) -> tuple[Recommendation, Recommendation]:
    """Return what to begin with where nothing moves, and where something does.

    :data:`PAGE` says with which pairs of policy and task the rule was made, and how it does on others.

    Args:
        modes: the measure ``modes`` of the policy's samples, in the mean.
        jitter: jerk of one sample at every step, divided by that of the demonstrations (:func:`jitter_of`).
        rows: rows that a prediction has from now on.
        dt_s: s between two of them.
        samples: N; 1 for a policy that gives a single chunk.
        refused: the measure ``refused`` by decoder. Averages are not recommended where safety would stop any.
    """
    half, quick = half_prediction(rows, dt_s), "Each decision sees the newest observation."
    still = f"The scene does not change while half a prediction is executed, at most {LONGEST_S} s."
    if samples == 1:
        moving = Recommendation("moving", "vanilla", 1, 1, f"{quick} One chunk leaves nothing to choose.")
    else:
        moving = Recommendation("moving", "bid", samples, 1, f"{quick} BID keeps to one strategy.")
    if jitter <= LITTLE_JITTER:
        smooth = f"One sample at every step is as smooth as the demonstrations: {jitter:.2f} times their jerk."
        return replace(moving, scene="still", why=f"{quick} {smooth}"), moving
    stopped = refused.get("ema", 0.0) > 0
    if modes <= FEW_MODES and not stopped:
        why = f"{still} {modes:.2f} modes can be averaged."
        return Recommendation("still", "ema", 1, half, why), moving
    why = "Safety would stop averages." if stopped else f"{modes:.2f} modes are too many to average."
    return Recommendation("still", moving.decoder, samples, half, f"{still} {why}"), moving


def jitter_of(found: Mapping[str, Any]) -> float:
    """Return the jitter that a summary shows; infinite where nothing moves in the demonstrations, or all are short."""
    demonstrated = found["demonstrated_jerk"]
    return float(found["policy"]["jerk"][0] / demonstrated) if demonstrated else math.inf


def described(found: Mapping[str, Any]) -> str:
    """Return what the samples show, and what to begin with, as Markdown.

    Args:
        found: summary of an evaluation, of :func:`bid_ros.evaluation.report.summary`, with ``samples``, the N that was
            drawn, ``most_samples``, which the policy can give (None: any number), ``rows``, of a prediction from now
            on, ``dt_s``, s between two of them, and ``robot``, whether a safety node keeps the task's limits.
    """
    (modes, low, high), samples = found["policy"]["modes"], found["samples"]
    if samples < min(SAMPLES, found["most_samples"] or SAMPLES):
        return (
            f"Which decoder to begin with is not said: {samples} of {SAMPLES} samples hide modes (--samples {SAMPLES})."
        )
    refused = refusals(found)
    jitter = jitter_of(found)
    chosen = recommend(modes, jitter, found["rows"], found["dt_s"], samples, refused)
    lines = [f"- {SCENES[item.scene]}: `{item.options}`. {item.why}{_warning(item, found)}" for item in chosen]
    apart, interval = 100 * found["policy"]["disagreement"][0], f" ({low:.2f} to {high:.2f})"
    by = "`bid rehearse` or `bid up`" if found["robot"] else "`bid bench`"
    shown = (
        f"N = {samples} shows {modes:.2f} modes{interval if found['episodes'] > 1 else ''}. {apart:.0f} % of the pairs "
        f"of samples are of different strategies. {_smoothness(jitter)} {PAGE} says how far to trust this. Episodes "
        f"decide: compare decoders with {by}."
    )
    return "\n\n".join(["Where to begin:", "\n".join(lines), shown])


def _smoothness(jitter: float) -> str:
    if math.isinf(jitter):
        return "The demonstrations have no jerk to compare that of the policy with."
    return f"One sample at every step has {jitter:.2f} times the demonstrations' jerk."


def _warning(item: Recommendation, found: Mapping[str, Any]) -> str:
    """Return what speaks against a recommendation, as sentences that begin with a space."""
    refused, took, said = refusals(found), _means(found, "decision_ms"), ""
    if refused and item.decoder not in refused:
        said += f" Whether safety would stop it was not seen: --decoder did not name {item.decoder}."
    elif refused.get(item.decoder, 0.0) > 0:
        said += f" But safety would have stopped {100 * refused[item.decoder]:.1f} % of its decisions."
    time_ms = 1000 * found["dt_s"] * item.action_horizon
    if took.get(item.decoder, 0.0) > time_ms:
        said += f" But a decision took {took[item.decoder]:.0f} ms here, and has {time_ms:.0f} ms: draw fewer samples."
    return said


def refusals(found: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of refused decisions by decoder; empty where no safety node keeps limits: none are measured."""
    return _means(found, "refused")


def _means(found: Mapping[str, Any], measure: str) -> dict[str, float]:
    """Return the mean of a measure by decoder, of those that have it."""
    measured = {name: item["measures"][measure] for name, item in found["decoders"].items()}
    return {name: value[0] for name, value in measured.items() if value is not None}
