"""onnxruntime with inputs and outputs that stay on a device: the runtimes ``cuda``, ``tensorrt`` and ``tensorrt-rtx``.

Each combination of input shapes has a session of its own: a CUDA graph and an engine have fixed shapes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from bid_ros.core.errors import BidError, BundleError
from bid_ros.policy.runtimes import nvidia
from bid_ros.policy.runtimes.base import TensorSpec
from bid_ros.policy.runtimes.engines import EngineCache, EngineKey, sha256_of
from bid_ros.policy.runtimes.onnx import OnnxRuntime

Shapes = Mapping[str, Sequence[int]]
NO_TF32: Final = {"use_tf32": "0"}


@dataclass(frozen=True)
class Provider:
    """How onnxruntime reaches a device.

    Attributes:
        providers: names and options, for the folder of the engine and the input shapes; empty: ``devices`` are used.
        device: where inputs and outputs stay, in onnxruntime's words.
        devices: of a plugin, with their options.
        gpu: of this computer, None for the CPU.
        versions: of the libraries, by name.
        compiled: whether there is an engine.
        rewritten: whether half precision takes a rewritten graph; otherwise the provider is told to compute in it.
    """

    providers: Callable[[Path, Shapes], list[tuple[str, dict[str, str]]]]
    device: str = "cuda"
    devices: Sequence[Any] = ()
    gpu: nvidia.Gpu | None = None
    versions: Mapping[str, str] | None = None
    compiled: bool = False
    rewritten: bool = True


def find_provider(name: str, half: bool) -> Provider:
    """Return the provider of a runtime. Raises BidError if something is missing, with the line that installs it."""
    nvidia.single_precision()
    if name == "cuda":
        options = {"enable_cuda_graph": "1", **NO_TF32}
        return Provider(lambda folder, shapes: [("CUDAExecutionProvider", options)], gpu=nvidia.require_cuda())
    versions = {"onnxruntime": str(onnxruntime.__version__)}
    if name == "tensorrt":
        gpu = nvidia.require_tensorrt()
        return Provider(
            lambda folder, shapes: [
                ("TensorrtExecutionProvider", tensorrt_options(folder, shapes, half)),
                ("CUDAExecutionProvider", NO_TF32),
            ],
            gpu=gpu,
            versions={**versions, "tensorrt": nvidia.tensorrt_version()},
            compiled=True,
            rewritten=False,
        )
    card, devices, version = nvidia.require_rtx()
    return Provider(
        lambda folder, shapes: [("", rtx_options(folder, shapes))],
        devices=devices,
        gpu=card,
        versions={**versions, "tensorrt-rtx": version},
        compiled=True,
    )


def tensorrt_options(folder: Path, shapes: Shapes, half: bool) -> dict[str, str]:
    """Return options of onnxruntime's TensorRT provider: one profile, of these shapes alone."""
    profile = _profile(shapes)
    return {
        "trt_fp16_enable": "1" if half else "0",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(folder),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(folder.parent),
        "trt_profile_min_shapes": profile,
        "trt_profile_opt_shapes": profile,
        "trt_profile_max_shapes": profile,
        "trt_cuda_graph_enable": "1",
    }


def rtx_options(folder: Path, shapes: Shapes) -> dict[str, str]:
    """Return options of the TensorRT-RTX plugin. It compiles on the device in seconds, and keeps that in the folder."""
    profile = _profile(shapes)
    return {
        "nv_runtime_cache_path": str(folder),
        "nv_profile_min_shapes": profile,
        "nv_profile_opt_shapes": profile,
        "nv_profile_max_shapes": profile,
        "enable_cuda_graph": "1",
    }


def _profile(shapes: Shapes) -> str:
    return ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items())


class BoundRuntime:
    """Loads graphs into onnxruntime sessions on a device.

    Args:
        name: name of the runtime, with its options.
        provider: see there.
        engines: cache of engines.
        half: compute in float16.
    """

    def __init__(self, name: str, provider: Provider, engines: EngineCache, half: bool = False) -> None:
        self.name, self.provider, self.engines, self.half = name, provider, engines, half
        self._reader = OnnxRuntime(1)

    def load(self, path: Path) -> "BoundGraph":
        """Load one ONNX file. Raises BundleError if onnxruntime cannot read it."""
        graph = self._reader.load(path)
        return BoundGraph(self, path, graph.inputs, graph.output, graph.symbols)


class BoundGraph:
    """One graph, in a session for each combination of input shapes."""

    def __init__(
        self,
        runtime: BoundRuntime,
        path: Path,
        inputs: Mapping[str, TensorSpec],
        output: TensorSpec,
        symbols: Mapping[str, Sequence[str | int]],
    ) -> None:
        self._runtime, self._path, self._symbols = runtime, path, symbols
        self.inputs, self.output = inputs, output
        self._sessions: dict[tuple[tuple[int, ...], ...], _Session] = {}

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Compute the output. Raises BidError if there is no engine for these shapes, or no session can be made."""
        shapes = tuple(feeds[name].shape for name in self.inputs)
        session = self._sessions.get(shapes)
        if session is None:
            session = self._sessions[shapes] = self._open(dict(zip(self.inputs, shapes, strict=True)))
        return session.run(feeds)

    def _open(self, shapes: Shapes) -> "_Session":
        runtime, extents = self._runtime, self._extents(shapes)
        provider, engines, folder, key = runtime.provider, runtime.engines, Path(), None
        if provider.compiled and provider.gpu is not None:
            gpu = provider.gpu
            key = EngineKey(
                runtime.name.split(":")[0],
                "fp16" if runtime.half else "fp32",
                sha256_of(self._path),
                shapes,
                gpu.name,
                gpu.capability,
                gpu.driver,
                provider.versions or {},
            )
            folder = engines.open(key, self._path.name)
        model: str | bytes = str(self._path)
        if runtime.half and provider.rewritten:
            from bid_ros.policy.runtimes.half import halved

            model = halved(self._path, runtime.name.split(":")[0])
        try:
            session = _session(model, provider, provider.providers(folder, shapes), extents)
            bound = _Session(session, provider.device, self.inputs, shapes, self._output_shape(extents))
        except BidError:
            raise
        except Exception as error:  # onnxruntime's exceptions have no common base but this
            raise BundleError(
                f"runtime '{runtime.name}' cannot run {self._path}: {' '.join(str(error).split())}"
            ) from error
        if key is not None and engines.build:
            engines.seal(key)
        return bound

    def _extents(self, shapes: Shapes) -> dict[str, int]:
        """Return the extent of each open dimension by its name in the graph. Raises BundleError for other shapes."""
        extents: dict[str, int] = {}
        for name, shape in shapes.items():
            wanted = self._symbols[name]
            fits = len(wanted) == len(shape) and all(
                extents.setdefault(own, extent) == extent if isinstance(own, str) else own == extent
                for own, extent in zip(wanted, shape, strict=True)
            )
            if not fits:
                raise BundleError(f"input '{name}' of {self._path} got the shape {tuple(shape)}; valid is {wanted}")
        return extents

    def _output_shape(self, extents: Mapping[str, int]) -> list[int]:
        try:
            return [extents[item] if isinstance(item, str) else item for item in self._symbols[""]]
        except KeyError as error:
            raise BundleError(f"the output of {self._path} has an extent {error} that no input has") from error


class _Session:
    """A session of fixed shapes with its buffers on the device."""

    def __init__(
        self, session: Any, device: str, inputs: Mapping[str, TensorSpec], shapes: Shapes, output: Sequence[int]
    ) -> None:
        make = onnxruntime.OrtValue.ortvalue_from_shape_and_type
        self._session, self._binding = session, session.io_binding()
        self._inputs = {name: make(list(shape), inputs[name].dtype.type, device, 0) for name, shape in shapes.items()}
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        self._output = make(list(output), np.float32, device, 0)
        self._binding.bind_ortvalue_output(session.get_outputs()[0].name, self._output)

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        for name, value in self._inputs.items():
            value.update_inplace(feeds[name])
        self._session.run_with_iobinding(self._binding)
        return np.array(self._output.numpy())


def _session(
    model: str | bytes, provider: Provider, providers: list[tuple[str, dict[str, str]]], extents: Mapping[str, int]
) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    for name, extent in extents.items():
        options.add_free_dimension_override_by_name(name, extent)
    if provider.devices:
        options.add_provider_for_devices(list(provider.devices), providers[0][1])
        return onnxruntime.InferenceSession(model, options, enable_fallback=0)
    session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)
    if session.get_providers()[0] != providers[0][0]:  # onnxruntime goes on with what it has, after a warning
        raise BundleError(f"onnxruntime did not load {providers[0][0]}, only {', '.join(session.get_providers())}")
    return session
