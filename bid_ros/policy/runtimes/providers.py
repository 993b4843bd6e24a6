"""onnxruntime's execution providers for NVIDIA GPUs: their options, and what of them is on this computer."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError

PLUGIN: Final = "onnxruntime_ep_nv_tensorrt_rtx"
RTX_CAPABILITIES: Final = ("8.6", "8.9", "12")  # TensorRT-RTX runs on what begins so
_PIP: Final = f"{sys.executable} -m pip install"
# onnxruntime and onnxruntime-gpu are the same Python module: the last one installed is there.
CUDA_LINE: Final = f"{sys.executable} -m pip uninstall -y onnxruntime; {_PIP} 'onnxruntime-gpu[cuda,cudnn]'"
TENSORRT_LINE: Final = f"{_PIP} 'tensorrt-cu13==10.*'"
RTX_LINE: Final = f"{_PIP} onnxruntime-ep-nv-tensorrt-rtx-cu13"
DRIVER_LINE: Final = "sudo ubuntu-drivers install, then restart"
Options = Mapping[str, str]
NO_TF32: Final = {"use_tf32": "0"}
CUDA: Final = "CUDAExecutionProvider"


@dataclass(frozen=True)
class Gpu:
    """The first NVIDIA GPU.

    Attributes:
        name: as its driver says it.
        capability: compute capability, such as ``8.9``.
        driver: version of the driver.
    """

    name: str
    capability: str
    driver: str


@dataclass(frozen=True)
class Found:
    """What of a provider is on this computer.

    Attributes:
        gpu: that computes.
        versions: of the libraries beside onnxruntime, by name.
        devices: of a plugin, in onnxruntime's words.
    """

    gpu: Gpu
    versions: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[Any] = ()


def find_gpu() -> Gpu:
    """Return the first GPU, as ``nvidia-smi`` lists it.

    Raises:
        BidError: there is no driver, or it finds no GPU.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        raise BidError(f"there is no NVIDIA driver (no nvidia-smi on the PATH); install it with: {DRIVER_LINE}")
    query = "--query-gpu=name,compute_cap,driver_version"
    try:
        found = subprocess.run([program, query, "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BidError(f"{program} does not answer ({error}); install the NVIDIA driver with: {DRIVER_LINE}") from error
    parts = [part.strip() for part in found.stdout.split("\n")[0].split(",")]
    if found.returncode or len(parts) != 3:
        said = " ".join((found.stdout + found.stderr).split())
        raise BidError(f"the NVIDIA driver finds no GPU (nvidia-smi: {said}); mend the driver: {DRIVER_LINE}")
    return Gpu(*parts)


def require_cuda() -> Found:
    """Load the libraries of onnxruntime's CUDA provider. Raises BidError if one is missing."""
    _single_precision()
    gpu = find_gpu()
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise BidError(f"onnxruntime {onnxruntime.__version__} is built without CUDA; install it with: {CUDA_LINE}")
    onnxruntime.preload_dlls()  # from NVIDIA's Python packages, where they are installed
    _require_libraries("cuda", CUDA_LINE)
    return Found(gpu)


def require_tensorrt() -> Found:
    """Load the libraries of onnxruntime's TensorRT provider. Raises BidError if one is missing."""
    found = require_cuda()
    if importlib.util.find_spec("tensorrt_libs"):
        folder = Path(str(import_module("tensorrt_libs").__file__)).parent
        for library in ("libnvinfer.so.10", "libnvinfer_plugin.so.10", "libnvonnxparser.so.10"):
            if (folder / library).exists():
                ctypes.CDLL(str(folder / library), mode=ctypes.RTLD_GLOBAL)
    _require_libraries("tensorrt", TENSORRT_LINE)
    return Found(found.gpu, {"tensorrt": str(ctypes.CDLL("libnvinfer.so.10").getInferLibVersion())})


def _require_libraries(provider: str, line: str) -> None:
    import onnxruntime

    lacks = lacking(Path(onnxruntime.__file__).parent / "capi" / f"libonnxruntime_providers_{provider}.so")
    if lacks:
        raise BidError(f"onnxruntime's provider {provider} lacks {', '.join(lacks)}; install with: {line}")


def lacking(library: Path) -> list[str]:
    """Return the libraries that a library needs, and that neither this process nor the loader's path has.

    The library itself is not loaded: onnxruntime's providers crash if anything else than onnxruntime loads them.
    """
    said = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False).stdout
    return [name for line in said.splitlines() if "not found" in line and not _loads(name := line.split()[0])]


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


@cache
def _register() -> tuple[str, str]:
    """Make the plugin known to onnxruntime, once a process; return its name and version."""
    import onnxruntime

    plugin = import_module(PLUGIN)
    onnxruntime.register_execution_provider_library(plugin.get_ep_name(), plugin.get_library_path())
    return plugin.get_ep_name(), plugin.__version__


def require_rtx() -> Found:
    """Load onnxruntime's plugin for TensorRT-RTX. Raises BidError if something is missing."""
    _single_precision()
    gpu = find_gpu()
    if not gpu.capability.startswith(RTX_CAPABILITIES):
        raise BidError(
            f"TensorRT-RTX does not run on {gpu.name} (compute capability {gpu.capability}); valid are 8.6, 8.9 "
            "and 12, the workstation cards; take runtime tensorrt"
        )
    import onnxruntime

    if importlib.util.find_spec(PLUGIN) is None:
        raise BidError(f"onnxruntime's plugin for TensorRT-RTX is not installed; install it with: {RTX_LINE}")
    try:
        name, version = _register()
    except Exception as error:  # onnxruntime's exceptions have no common base but this
        raise BidError(
            f"onnxruntime {onnxruntime.__version__} does not load the plugin for TensorRT-RTX "
            f"({' '.join(str(error).split())}); install it again with: {RTX_LINE}"
        ) from error
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == name]
    if not devices:
        raise BidError(
            f"TensorRT-RTX {version} finds no device with driver {gpu.driver}; install it with: {DRIVER_LINE}"
        )
    return Found(gpu, {"tensorrt-rtx": version}, devices[:1])


def _single_precision() -> None:
    """Keep NVIDIA's libraries, which are not loaded yet, from rounding float32 to 10 bits (TF32)."""
    os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")


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
    require: Callable[[], Found]
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
    "cuda": Provider(CUDA, require_cuda, lambda *_: {"enable_cuda_graph": "1", **NO_TF32}),
    "tensorrt": Provider(
        "TensorrtExecutionProvider",
        require_tensorrt,
        _tensorrt,
        rest=((CUDA, NO_TF32),),
        compiled=True,
        rewritten=False,
    ),
    "tensorrt-rtx": Provider("NvTensorRTRTXExecutionProvider", require_rtx, _rtx, compiled=True),
}
