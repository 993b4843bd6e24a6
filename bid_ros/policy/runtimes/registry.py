"""Runtimes by name."""

import importlib.util
from pathlib import Path
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.policy.runtimes.base import Runtime
from bid_ros.policy.runtimes.engines import EngineCache, default_cache

# Per runtime the options that its name may end with, as in torch:fp16.
OPTIONS: Final = {
    "auto": (),
    "openvino": (),
    "onnx": (),
    "torch": ("fp16", "fuse"),
    "cuda": ("fp16",),
    "tensorrt": ("fp16",),
    "tensorrt-rtx": ("fp16",),
}
RUNTIMES: Final = tuple(OPTIONS)
ON_CPU: Final = ("openvino", "onnx", "torch")  # what remains without a GPU; torch uses one if there is one
COMPILED: Final = ("tensorrt", "tensorrt-rtx")  # their engines fit one number of samples


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
    from bid_ros.policy.runtimes.bound import BoundRuntime, find_provider

    try:
        provider = find_provider(kind, "fp16" in options)
    except BidError as error:
        remain = ", ".join(item for item in ON_CPU if _installed(item))
        raise BidError(f"runtime '{name}' cannot be used: {error}; what remains: {remain}") from error
    return BoundRuntime(name, provider, EngineCache(Path(engines or default_cache()), build), "fp16" in options)


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
    return name.split(":")[0] in COMPILED


def missing(name: str) -> str:
    """Return what this computer lacks for a runtime, and how to install it; empty if it can be used."""
    kind, _ = parse_runtime(name)
    if kind in ON_CPU and not _installed(kind):
        try:
            build_runtime(name)
        except BidError as error:
            return str(error)
    if kind in (*ON_CPU, "auto"):
        return ""
    from bid_ros.policy.runtimes.bound import find_provider

    try:
        find_provider(kind, half=False)
    except BidError as error:
        return str(error)
    return ""


def _installed(name: str) -> bool:
    modules = {"openvino": ("openvino",), "onnx": ("onnxruntime",), "torch": ("torch", "onnx")}
    return all(importlib.util.find_spec(module) for module in modules[name])
