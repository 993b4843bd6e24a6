"""Runtimes by name."""

import importlib.util
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.policy.runtimes.base import Runtime
from bid_ros.policy.runtimes.engines import EngineCache, default_cache
from bid_ros.policy.runtimes.providers import PROVIDERS

# Per runtime the options that its name may end with, as in torch:fp16.
OPTIONS: Final = {
    "auto": (),
    "openvino": (),
    "onnx": (),
    "torch": ("fp16", "fuse"),
    **dict.fromkeys(PROVIDERS, ("fp16",)),
}
RUNTIMES: Final = tuple(OPTIONS)
# What remains without a GPU, by the modules that it needs; torch uses a GPU if there is one.
ON_CPU: Final = {"openvino": ("openvino",), "onnx": ("onnxruntime",), "torch": ("torch", "onnx")}


def build_runtime(name: str = "auto", threads: int = 1, engines: str | Path = "", build: bool = False) -> Runtime:
    """Return the runtime of a name.

    Args:
        name: ``openvino`` (CPU), ``onnx`` (onnxruntime on the CPU), ``auto``: OpenVINO where it is installed;
            ``torch`` (GPU, or CPU without one); ``cuda``, ``tensorrt``, ``tensorrt-rtx`` (onnxruntime on a GPU).
            Options follow after colons: ``fp16``, and ``fuse`` for PyTorch's compiler.
        threads: threads one network call may use. Calls come one at a time.
        engines: folder of compiled engines; default: see :func:`bid_ros.policy.runtimes.engines.default_cache`.
        build: whether missing or stale engines may be built, which takes minutes.

    Raises:
        BidError: the name is unknown, its library, driver or GPU is missing, or ``threads`` is below 1.
    """
    kind, options = parse_runtime(name)
    if threads < 1:
        raise BidError(f"inference threads are {threads}; valid is 1 or more")
    if kind == "auto":
        name = kind = "openvino" if importlib.util.find_spec("openvino") else "onnx"
    if kind == "openvino":
        with extra("openvino", "runtime 'openvino'"):
            from bid_ros.policy.runtimes.openvino import OpenVinoRuntime
        return OpenVinoRuntime(threads)
    if kind == "onnx":
        from bid_ros.policy.runtimes.onnx import OnnxRuntime

        return OnnxRuntime(threads)
    if kind == "torch":
        with extra("train", "runtime 'torch'"):
            from bid_ros.policy.runtimes.torch import TorchRuntime
        return TorchRuntime(name, threads, "fp16" in options, "fuse" in options)
    from bid_ros.policy.runtimes.bound import BoundRuntime

    cache = EngineCache(Path(engines or default_cache()), build)
    try:
        return BoundRuntime(name, PROVIDERS[kind], cache, "fp16" in options)
    except BidError as error:
        remain = ", ".join(item for item in ON_CPU if _installed(item))
        raise BidError(f"runtime '{name}' cannot be used: {error}; usable instead: {remain}") from error


def parse_runtime(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the runtime and the options that a name says. Raises BidError if one is unknown."""
    kind, *options = name.split(":")
    if kind not in RUNTIMES:
        raise BidError(f"runtime is '{name}'; valid are {', '.join(RUNTIMES)}")
    for option in options:
        if option not in OPTIONS[kind]:
            valid = ", ".join(f"{kind}:{item}" for item in OPTIONS[kind]) or kind
            raise BidError(f"runtime is '{name}'; valid {'are' if OPTIONS[kind] else 'is'} {valid}")
    return kind, tuple(options)


def is_compiled(name: str) -> bool:
    """Return whether the engines of a policy's runtime fit one number of samples only."""
    kind = name.split(":")[0]
    return kind in PROVIDERS and PROVIDERS[kind].compiled


def check_samples(wanted: int, loaded: int, runtime: str) -> None:
    """Raise BidError if a policy's runtime, with engines for ``loaded`` samples, cannot draw another number."""
    if wanted != loaded and is_compiled(runtime):
        raise BidError(
            f"samples is {wanted}; valid is {loaded}, for which the engines of runtime '{runtime}' were loaded: start "
            "the node again with another number"
        )


def missing(name: str) -> str:
    """Return what this computer lacks for a runtime, and how to install it; empty if it can be used."""
    kind, _ = parse_runtime(name)
    try:
        if kind in PROVIDERS:
            PROVIDERS[kind].require()
        elif kind in ON_CPU and not _installed(kind):
            build_runtime(name)
    except BidError as error:
        return str(error)
    return ""


def _installed(name: str) -> bool:
    return all(importlib.util.find_spec(module) for module in ON_CPU[name])
