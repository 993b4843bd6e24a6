"""onnxruntime with inputs and outputs that stay on a device: the runtimes ``cuda``, ``tensorrt`` and ``tensorrt-rtx``.

Each combination of input shapes has a session of its own: a CUDA graph and an engine have fixed shapes. For providers
that compute in the types of the graph, half precision is a rewritten graph.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.extras import extra
from bid_ros.policy.runtimes.base import TensorSpec
from bid_ros.policy.runtimes.engines import EngineCache, Key, sha256_of
from bid_ros.policy.runtimes.onnx import OnnxRuntime
from bid_ros.policy.runtimes.providers import Provider

SENSITIVE: Final = {"Sin", "Cos"}  # an angle of a hundred has two decimals in half precision
Shapes = Mapping[str, Sequence[int]]


def halved(path: Path, needed_by: str) -> bytes:
    """Return a graph that computes in float16; its inputs and outputs stay float32.

    What leads to a sine, the time step of a diffusion policy, stays in single precision.

    Args:
        path: the ONNX file.
        needed_by: the extra of the package that brings what the conversion needs.

    Raises:
        BundleError: the graph cannot be converted.
    """
    with extra(needed_by, "half precision"):
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16
    try:
        model = onnx.load(str(path))
        made_by = {name: node for node in model.graph.node for name in node.output}
        ahead, kept = [node for node in model.graph.node if node.op_type in SENSITIVE], set()
        for index, node in enumerate(model.graph.node):
            node.name = f"{node.op_type}_{index}"
        while ahead:
            node = ahead.pop()
            if node.name not in kept:
                kept.add(node.name)
                ahead += [made_by[name] for name in node.input if name in made_by]
        converted = convert_float_to_float16(model, keep_io_types=True, node_block_list=sorted(kept))
        # The converter casts a value once for each node that reads it, all casts with one name.
        nodes = list({node.output[0]: node for node in converted.graph.node}.values())
        del converted.graph.node[:]
        converted.graph.node.extend(nodes)
        return bytes(converted.SerializeToString())
    except Exception as error:  # onnx, protobuf and the converter raise what they like
        raise BundleError(f"{path} cannot be converted to half precision: {' '.join(str(error).split())}") from error


class BoundRuntime:
    """Loads graphs into onnxruntime sessions on a device.

    Args:
        name: name of the runtime, with its options.
        provider: see there.
        engines: cache of engines.
        half: compute in float16.

    Raises:
        BidError: something that the provider needs is missing.
    """

    def __init__(self, name: str, provider: Provider, engines: EngineCache, half: bool = False) -> None:
        self.name, self.provider, self.engines, self.half = name, provider, engines, half
        self.found = provider.require()

    def load(self, path: Path) -> "BoundGraph":
        """Load one ONNX file. Raises BundleError if onnxruntime cannot read it."""
        return BoundGraph(self, path)

    def key(self, path: Path, shapes: Shapes) -> Key:
        """Return what an engine of a graph for these input shapes depends on."""
        return {
            "runtime": self.name,
            "graph": sha256_of(path),
            "inputs": {name: list(shape) for name, shape in shapes.items()},
            "gpu": self.found.gpu.name,
            "versions": {
                "capability": self.found.gpu.capability,
                "driver": self.found.gpu.driver,
                "onnxruntime": str(onnxruntime.__version__),
                **self.found.versions,
            },
        }

    def session(self, model: str | bytes, folder: Path, shapes: Shapes, extents: Mapping[str, int]) -> Any:
        """Return onnxruntime's session of a graph, with open extents by their name in it.

        Raises:
            BundleError: onnxruntime goes on without the provider.
        """
        provider, options = self.provider, onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        for name, extent in extents.items():
            options.add_free_dimension_override_by_name(name, extent)
        profile = ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items())
        own = dict(provider.options(folder, profile, self.half))
        if self.found.devices:  # of a plugin
            options.add_provider_for_devices(list(self.found.devices), own)
            return onnxruntime.InferenceSession(model, options, enable_fallback=0)
        providers = [(provider.name, own), *((name, dict(more)) for name, more in provider.rest)]
        session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)
        if session.get_providers()[0] != provider.name:  # onnxruntime goes on with what it has, after a warning
            raise BundleError(f"onnxruntime did not load {provider.name}, only {', '.join(session.get_providers())}")
        return session


class BoundGraph:
    """One graph, in a session for each combination of input shapes."""

    def __init__(self, runtime: BoundRuntime, path: Path) -> None:
        self._runtime, self._path, read = runtime, path, OnnxRuntime(1).load(path)
        self.inputs, self.output, self._symbols = read.inputs, read.output, read.symbols
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
        output = self._output_shape(extents)
        folder, key = Path(), runtime.key(self._path, shapes) if runtime.provider.compiled else None
        if key is not None:
            folder = runtime.engines.open(key, self._path.name)
        model: str | bytes = str(self._path)
        if runtime.half and runtime.provider.rewritten:
            model = halved(self._path, runtime.name.split(":")[0])
        try:
            session = runtime.session(model, folder, shapes, extents)
            bound = _Session(session, runtime.provider.device, self.inputs, shapes, output)
        except BundleError:
            raise
        except Exception as error:  # onnxruntime's exceptions have no common base but this
            raise BundleError(
                f"runtime '{runtime.name}' cannot run {self._path}: {' '.join(str(error).split())}"
            ) from error
        if key is not None:
            runtime.engines.seal(key)
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
