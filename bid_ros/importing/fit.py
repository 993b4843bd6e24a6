"""Says how many samples and sampling steps of an imported policy fit a decision on this computer, and what a GPU needs.

Times are measured with the bundle that was written, operations are counted: nothing here has run on a GPU.
"""

import importlib
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np

from bid_ros.core.errors import DecodingError
from bid_ros.core.task import Task
from bid_ros.importing.policy import ImportedPolicy
from bid_ros.importing.write_bundle import examples_of
from bid_ros.policy.base import Bundle
from bid_ros.policy.budget import BUDGET_MS, changing_observations, ladder
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.registry import load_policy

GPU_TFLOPS: Final = 10.0  # what a GPU may keep up in float32; the sentence names it
SAMPLES: Final = 16  # N that is wanted
REPEATS: Final = 2  # the first call of a number of samples, which a runtime may compile for, and the one that counts


@dataclass(frozen=True)
class Fit:
    """What a decision takes here.

    Attributes:
        runtime: of the networks, on one thread.
        samples: N, the number that is wanted; as many weak ones if ``weak``.
        weak: whether there is a weak policy.
        steps: of a sample; 0: nothing is denoised.
        divided: number that steps must divide; 0: none.
        option: how an import is told fewer steps.
        budget_ms: time that a decision may take.
        encode_ms: of that, for the observation.
        decision_ms: by number of samples, from the wanted one down to the first that fits.
        gflop: operations of a decision of N samples, 1e9: products of matrices and convolutions; 0: not counted.
    """

    runtime: str
    samples: int
    weak: bool
    steps: int
    divided: int
    option: str
    budget_ms: float
    encode_ms: float
    decision_ms: Mapping[int, float]
    gflop: float

    @property
    def fitting(self) -> int:
        """Largest N that fits with all steps; 0: none."""
        return max((count for count, ms in self.decision_ms.items() if ms <= self.budget_ms), default=0)

    def fewer_steps(self) -> tuple[int, int]:
        """Return the largest N that fits with fewer steps alone, and how many those are; (0, 0): none."""
        for count, ms in sorted(self.decision_ms.items(), reverse=True):
            if ms <= self.budget_ms:
                break
            a_step = (ms - self.encode_ms) / max(1, self.steps)
            most = min(self.steps - 1, int((self.budget_ms - self.encode_ms) / a_step))
            found = next((steps for steps in range(most, 0, -1) if not self.divided or self.divided % steps == 0), 0)
            if found:
                return count, found
        return 0, 0

    def sentence(self) -> str:
        """Return one line for a person."""
        both = f"N = {self.samples}{f' + {self.samples} weak' if self.weak else ''}"
        takes, steps = self.decision_ms[self.samples], f" in {self.steps} steps" if self.steps else ""
        may = f"the {self.budget_ms:g} ms that a decision may take (budget_ms)"
        said = f"a decision of {both}{steps} takes {_short(takes)} ms here ({self.runtime}, one thread)"
        if self.fitting == self.samples:
            return f"{said}, which fits {may}"
        fits = [f"N = {self.fitting}{steps}"] if self.fitting else []
        count, fewer = self.fewer_steps()
        fits += [f"N = {count} in {fewer} step{'s' if fewer > 1 else ''} ({self.option} {fewer})"] if count else []
        none = "not even N = 1 in one step" if self.steps else "not even N = 1"
        least = f"{_short(self.gflop / GPU_TFLOPS)} ms or more on a GPU that keeps up {GPU_TFLOPS:g} TFLOP/s"
        return (
            f"{said}; {may} fit {' or '.join(fits) or none}. All of it needs "
            f"{_short(takes / self.budget_ms)} times this speed: its {_short(self.gflop)} GFLOP take {least} (counted, "
            "not measured), here or elsewhere (bid serve)"
        )


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def measure_fit(bundle: Bundle, task: Task, policy: ImportedPolicy, budget_ms: float = BUDGET_MS) -> Fit:
    """Time decisions of an imported policy, from N = 16 down to the first number that fits.

    Args:
        bundle: that was written.
        task: it was written for.
        policy: its networks, whose operations are counted where N does not fit.
        budget_ms: time that a decision may take.

    Raises:
        BidError: the bundle cannot be loaded here, or not even one sample be drawn.
    """
    loaded, rng, weak = load_policy(bundle, task), np.random.default_rng(0), bundle.weak is not None
    seen, encode_ms, decision_ms = changing_observations(loaded, task), 0.0, dict[int, float]()
    for count in ladder(SAMPLES):
        try:
            for _ in range(REPEATS):
                begin = perf_counter()
                encoded = loaded.encode(next(seen), weak=weak)
                middle = perf_counter()
                loaded.sample(encoded, count, count if weak else 0, rng)
                encode_ms, decision_ms[count] = 1e3 * (middle - begin), 1e3 * (perf_counter() - begin)
        except DecodingError:  # it cannot draw so many
            if count == 1:
                raise
        if decision_ms.get(count, np.inf) <= budget_ms:
            break
    most = max(decision_ms)
    counted = 0.0 if decision_ms[most] <= budget_ms else gflop(policy, most) * (2 if weak else 1)
    own, steps, divided, option = policy.settings, 0, 0, "--sampling-steps"
    if isinstance(own, DiffusionConfig):
        steps, divided = own.sampling_steps, own.train_steps if own.sampler == "flow" else 0
        option = f"--sampler ddim {option}" if own.sampler == "ddpm" else option
    return Fit(loaded.runtime, most, weak, steps, divided, option, budget_ms, encode_ms, decision_ms, counted)


def gflop(policy: ImportedPolicy, samples: int) -> float:
    """Return the operations of a decision, 1e9: one new image a camera, and N samples with all steps."""
    import torch

    counter_of, total = flop_counter(), 0.0
    for role, (network, feeds, _, axes) in examples_of(policy).items():
        if role == "sampler":  # the denoiser again
            continue
        with counter_of(display=False) as counter, torch.no_grad():
            network(*map(torch.from_numpy, feeds.values()))
        drawn = [len(value) for name, value in feeds.items() if 0 in axes.get(name, {})]
        calls = policy.settings.calls if role == "denoiser" and isinstance(policy.settings, DiffusionConfig) else 1
        total += counter.get_total_flops() * calls * (samples / drawn[0] if drawn else 1)
    return total / 1e9


def flop_counter() -> Any:
    """Return PyTorch's counter of operations, imported without Triton.

    Triton has no kernels here, and its import crashes a process that loaded another LLVM, such as Mesa's for pictures.
    """
    name, unwanted = "torch.utils.flop_counter", "triton"
    if name not in sys.modules and unwanted not in sys.modules:
        log = logging.getLogger(name)
        log.disabled = True  # it would warn that kernels of Triton are not counted
        sys.modules[unwanted] = None  # type: ignore[assignment]  # so its import fails
        try:
            importlib.import_module(name)
        finally:
            del sys.modules[unwanted]
            log.disabled = False
    return importlib.import_module(name).FlopCounterMode
