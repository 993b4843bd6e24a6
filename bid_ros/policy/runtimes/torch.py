"""PyTorch, on a GPU if there is one. There a CUDA graph holds all steps of the sampling: one launch a decision.

Small networks wait for launches, not for arithmetic. On the CPU the same functions run call by call.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.policy.diffusion.sampler import Sampler
from bid_ros.policy.runtimes.base import Graph, TensorSpec
from bid_ros.policy.runtimes.translated import Translated

Function = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]
WARM_UP_CALLS = 3  # before a capture: libraries choose their kernels in the first ones


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
