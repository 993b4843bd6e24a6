"""onnxruntime's execution providers for GPUs by the name of their runtime, with their own options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bid_ros.policy.runtimes import nvidia

Options = Mapping[str, str]
NO_TF32: Final = {"use_tf32": "0"}
CUDA: Final = "CUDAExecutionProvider"


@dataclass(frozen=True)
class Provider:
    """How onnxruntime computes on a device.

    Attributes:
        name: onnxruntime's.
        require: returns what of it is on this computer. Raises BidError if something is missing.
        options: of the engine's folder, the shapes as a profile ``name:16x16x10,...``, and half precision.
        rest: name and options of the provider of what this one cannot compute.
        device: where inputs and outputs stay, in onnxruntime's words.
        compiled: whether there is an engine.
        rewritten: whether half precision takes a rewritten graph; otherwise the provider is told to compute in it.
    """

    name: str
    require: Callable[[], nvidia.Found]
    options: Callable[[Path, str, bool], Options]
    rest: tuple[tuple[str, Options], ...] = ()
    device: str = "cuda"
    compiled: bool = False
    rewritten: bool = True


def _tensorrt(folder: Path, profile: str, half: bool) -> Options:
    return {
        "trt_fp16_enable": "1" if half else "0",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(folder),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(folder.parent),
        **{f"trt_profile_{end}_shapes": profile for end in ("min", "opt", "max")},
        "trt_cuda_graph_enable": "1",
    }


def _rtx(folder: Path, profile: str, half: bool) -> Options:
    """It compiles on the device in seconds, and keeps that in the folder."""
    return {
        "nv_runtime_cache_path": str(folder),
        **{f"nv_profile_{end}_shapes": profile for end in ("min", "opt", "max")},
        "enable_cuda_graph": "1",
    }


PROVIDERS: Final[Mapping[str, Provider]] = {
    "cuda": Provider(CUDA, nvidia.require_cuda, lambda *_: {"enable_cuda_graph": "1", **NO_TF32}),
    "tensorrt": Provider(
        "TensorrtExecutionProvider",
        nvidia.require_tensorrt,
        _tensorrt,
        rest=((CUDA, NO_TF32),),
        compiled=True,
        rewritten=False,
    ),
    "tensorrt-rtx": Provider("NvTensorRTRTXExecutionProvider", nvidia.require_rtx, _rtx, compiled=True),
}
