"""PyTorch, on a GPU if there is one. There a CUDA graph holds all steps of the sampling: one launch a decision.

ONNX graphs become functions of PyTorch tensors. The arithmetic on shapes is done once for each combination of input
shapes, on the CPU. What is left are calls on the device, without a copy from or to the host. So a CUDA graph can record
them. Small networks wait for launches, not for arithmetic. On the CPU the same functions run call by call.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from bid_ros.core.errors import BidError, BundleError
from bid_ros.policy.diffusion.sampler import Sampler
from bid_ros.policy.runtimes.base import Graph, TensorSpec
from bid_ros.policy.runtimes.operators import OPERATORS

Tensors = Mapping[str, torch.Tensor]
# Layers that half precision makes faster. What is sensitive, such as sines of a time step, stays in single precision.
HEAVY: Final = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
Function = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]
WARM_UP_CALLS = 3  # before a capture: libraries choose their kernels in the first ones


class Translated:
    """An ONNX graph with one output.

    Args:
        path: the ONNX file.
        device: a device of PyTorch.
        half: compute convolutions and matrix products, and what follows them, in float16.
        fuse: let PyTorch's compiler fuse the calls, for each combination of input shapes.

    Raises:
        BundleError: the file is not an ONNX graph, or has an operator that is not translated.
    """

    def __init__(self, path: Path, device: str, half: bool = False, fuse: bool = False) -> None:
        try:
            self.model = onnx.load(str(path)).graph
        except Exception as error:  # exceptions of protobuf and onnx have no other common base
            raise BundleError(f"{path} is not a graph that PyTorch can run: {' '.join(str(error).split())}") from error
        unknown = sorted({node.op_type for node in self.model.node} - set(OPERATORS))
        if unknown:
            raise BundleError(f"{path} has operators that runtime 'torch' does not know: {', '.join(unknown)}")
        self._device, self._half, self._fuse = device, half, fuse
        self._output = self.model.output[0].name
        self._weights = {item.name: self._constant(numpy_helper.to_array(item)) for item in self.model.initializer}
        self._halves: dict[str, torch.Tensor] = {}
        self._nodes = [_Node(node) for node in self.model.node]
        self._plans: dict[tuple[torch.Size, ...], Callable[..., torch.Tensor]] = {}
        self._fold()

    def __call__(self, feeds: Tensors) -> torch.Tensor:
        """Compute the output, float32. ``feeds`` has every input, on the device."""
        names = [item.name for item in self.model.input]
        values = [feeds[name] for name in names]
        key = tuple(value.shape for value in values)
        if key not in self._plans:
            self._plans[key] = self._plan(names, values)
        return self._plans[key](*values)

    def _constant(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """Numbers of shapes stay on the CPU."""
        tensor = torch.from_numpy(array.copy())
        return tensor.to(self._device) if tensor.is_floating_point() else tensor

    def _fold(self) -> None:
        """Compute what depends on weights alone."""
        rest = []
        for node in self._nodes:
            if node.kind == "Constant":
                (value,) = node.attributes.values()
                array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
                self._weights[node.output] = self._constant(array)
            elif all(name in self._weights for name in node.inputs if name):
                self._weights[node.output] = node.run([self._weights.get(name) for name in node.inputs])
            else:
                rest.append(node)
        self._nodes = rest
        used = {name for node in rest for name in node.inputs}
        self._weights = {name: value for name, value in self._weights.items() if name in used}
        for node in rest:
            for index, name in enumerate(node.inputs):
                if name in self._weights and node.kind in HEAVY and self._half:
                    self._weights[name] = _halved(self._weights[name])
                elif name in self._weights and node.kind == "Resize" and index > 0:
                    self._weights[name] = self._weights[name].cpu()  # numbers of shapes, too

    def _plan(self, names: Sequence[str], inputs: Sequence[torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Run once; keep what is known from the shapes, and the calls that remain."""
        known = {name: value for name, value in self._weights.items() if not value.is_floating_point()}
        values, live = {**self._weights, **dict(zip(names, inputs, strict=True))}, []
        for node in self._nodes:
            values[node.output] = self._call(node, values)
            if node.kind == "Shape" or all(name in known for name in node.inputs if name):
                result = values[node.output]
                known[node.output] = values[node.output] = (
                    result.to(self._device) if result.is_floating_point() else result.cpu()
                )
            else:
                live.append(node)
        fixed = {**self._weights, **known}

        def run(*given: torch.Tensor) -> torch.Tensor:
            found = {**fixed, **dict(zip(names, given, strict=True))}
            for node in live:
                found[node.output] = self._call(node, found)
            return found[self._output].float()

        if not self._fuse:
            return run
        from torch.fx.experimental.proxy_tensor import make_fx

        fused: Callable[..., torch.Tensor] = torch.compile(make_fx(run)(*inputs), dynamic=False)
        return fused

    def _call(self, node: "_Node", values: Tensors) -> torch.Tensor:
        arguments = [values.get(name) for name in node.inputs]
        if self._half:
            halves = any(value is not None and value.dtype == torch.float16 for value in arguments)
            for index, name in enumerate(node.inputs):
                value = arguments[index]
                if value is None:
                    continue
                if halves and name in self._weights:  # a weight follows the values that it meets
                    arguments[index] = self._halves[name] = self._halves.get(name, _halved(value))
                elif node.kind in HEAVY:
                    arguments[index] = _halved(value)
        return node.run(arguments)


class _Node:
    def __init__(self, node: Any) -> None:
        self.kind, self.inputs, self.output = node.op_type, list(node.input), node.output[0]
        self.attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}

    def run(self, arguments: list[torch.Tensor | None]) -> torch.Tensor:
        result: torch.Tensor = OPERATORS[self.kind](self.attributes, *arguments)
        return result


def _halved(value: torch.Tensor) -> torch.Tensor:
    return value.half() if value.dtype == torch.float32 else value


class TorchRuntime:
    """Loads graphs into PyTorch.

    Args:
        name: name of the runtime, with its options.
        threads: of the CPU. They are PyTorch's own for the whole process.
        half: compute convolutions and matrix products in float16.
        fuse: use PyTorch's compiler.
    """

    def __init__(self, name: str, threads: int, half: bool = False, fuse: bool = False) -> None:
        self.name, self._half, self._fuse = name, half, fuse
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = True  # shapes are fixed, so the fastest kernels are looked for once
        # Single precision means single precision.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False

    def load(self, path: Path) -> "TorchGraph":
        """Load one ONNX file. Raises BundleError if it cannot be read or has an operator that is not known."""
        function = Translated(path, self.device, self._half, self._fuse)
        inputs = {item.name: _spec(item) for item in function.model.input}
        return TorchGraph(function, inputs, _spec(function.model.output[0]), self.device)

    def sampling(self, denoiser: Graph, sampler: Sampler) -> "TorchGraph":
        """Return all steps of a sampling with a loaded denoiser, as one graph. See
        :class:`bid_ros.policy.diffusion.policy.WholeSampling`."""
        assert isinstance(denoiser, TorchGraph)
        steps: dict[int, torch.Tensor] = {}  # a capture must not copy from the host

        def run(feeds: Mapping[str, torch.Tensor]) -> torch.Tensor:
            def predict(sample: torch.Tensor, step: NDArray[np.int64]) -> torch.Tensor:
                level = int(step[0])
                if level not in steps:
                    steps[level] = torch.from_numpy(step).to(self.device)
                given = {"sample": sample, "step": steps[level], "condition": feeds["condition"]}
                return denoiser.function(given)

            return sampler.run(predict, feeds["noise"])

        chunk, condition = denoiser.inputs["sample"], denoiser.inputs["condition"]
        noise = TensorSpec((sampler.noises, *chunk.shape), chunk.dtype)
        return TorchGraph(run, {"noise": noise, "condition": condition}, denoiser.output, self.device)


class TorchGraph:
    """A function of tensors, called with arrays. On a GPU it is captured once for each combination of input shapes."""

    def __init__(
        self, function: Function, inputs: Mapping[str, TensorSpec], output: TensorSpec, device: str = "cpu"
    ) -> None:
        self.function, self.inputs, self.output, self._device = function, inputs, output, device
        self._captured: dict[tuple[tuple[int, ...], ...], _Captured] = {}

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Compute the output. Raises BidError if the GPU cannot hold or capture the function."""
        tensors = {name: torch.from_numpy(np.ascontiguousarray(feeds[name])) for name in self.inputs}
        with torch.no_grad():
            if self._device == "cpu":
                return np.array(self.function(tensors).numpy())
            shapes = tuple(tuple(value.shape) for value in tensors.values())
            if shapes not in self._captured:
                try:
                    self._captured[shapes] = _Captured(self.function, tensors, self._device)
                except RuntimeError as error:  # also PyTorch's own: out of memory, a failed capture
                    reason = " ".join(str(error).split())
                    raise BidError(f"runtime 'torch' cannot capture a graph for inputs {shapes}: {reason}") from error
            return self._captured[shapes].run(tensors)

    def linearise(
        self, feeds: Mapping[str, NDArray[Any]], name: str
    ) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
        """Return the output, and the vector-Jacobian product. See
        :class:`bid_ros.policy.diffusion.guided.Differentiable`."""
        tensors = {key: torch.from_numpy(np.ascontiguousarray(feeds[key])).to(self._device) for key in self.inputs}
        with torch.enable_grad():
            given = tensors[name].requires_grad_()
            output = self.function(tensors)

        def pull_back(cotangent: NDArray[Any]) -> NDArray[Any]:
            pulled = torch.from_numpy(np.ascontiguousarray(cotangent, dtype=np.float32)).to(self._device)
            (gradient,) = torch.autograd.grad(output, given, pulled)
            return np.array(gradient.cpu().numpy())

        return np.array(output.detach().cpu().numpy()), pull_back


class _Captured:
    """A function as a CUDA graph: its inputs and its output stay where they are."""

    def __init__(self, function: Function, example: Mapping[str, torch.Tensor], device: str) -> None:
        self._inputs = {name: value.to(device, copy=True) for name, value in example.items()}
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP_CALLS):
                function(self._inputs)
        torch.cuda.current_stream().wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._output = function(self._inputs)

    def run(self, values: Mapping[str, torch.Tensor]) -> NDArray[Any]:
        for name, value in values.items():
            self._inputs[name].copy_(value)
        self._graph.replay()
        result: NDArray[Any] = self._output.cpu().numpy()  # waits for the GPU
        return result


def _spec(item: Any) -> TensorSpec:
    import onnx

    kind = item.type.tensor_type
    shape = tuple(None if axis.dim_param else axis.dim_value for axis in kind.shape.dim)
    return TensorSpec(shape, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)))
