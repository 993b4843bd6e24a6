"""ONNX graphs as functions of PyTorch tensors.

The arithmetic on shapes is done once for each combination of input shapes, on the CPU. What is left are calls on the
device, without a copy from or to the host. So a CUDA graph can record them.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

from bid_ros.core.errors import BundleError

Tensors = Mapping[str, torch.Tensor]
# Layers that half precision makes faster. What is sensitive, such as sines of a time step, stays in single precision.
HEAVY: Final = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


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


def _numbers(value: torch.Tensor | None) -> list[int]:
    return [] if value is None else [int(item) for item in value.reshape(-1).tolist()]


def _cast(a: Any, x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.from_numpy(np.zeros(0, onnx.helper.tensor_dtype_to_np_dtype(a["to"]))).dtype)


def _gather(a: Any, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    axis, rows = a.get("axis", 0), [x.select(a.get("axis", 0), row) for row in _numbers(index)]
    return rows[0] if index.dim() == 0 else torch.stack(rows, axis)


def _reshape(a: Any, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    wanted = [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(_numbers(shape))]
    return x.reshape(wanted)


def _slice(
    a: Any,
    x: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
    axes: torch.Tensor | None = None,
    steps: torch.Tensor | None = None,
) -> torch.Tensor:
    first, last = _numbers(starts), _numbers(ends)
    parts = [slice(None)] * x.dim()
    for axis, low, high, step in zip(
        _numbers(axes) or range(len(first)), first, last, _numbers(steps) or [1] * len(first), strict=True
    ):
        parts[axis] = slice(low, high, step)
    return x[tuple(parts)]


def _unsqueeze(a: Any, x: torch.Tensor, axes: torch.Tensor) -> torch.Tensor:
    chosen = _numbers(axes)
    for axis in sorted(axis % (x.dim() + len(chosen)) for axis in chosen):
        x = x.unsqueeze(axis)
    return x


def _squeeze(a: Any, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(_numbers(axes)))


def _gemm(a: Any, x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    product = a.get("alpha", 1.0) * ((x.mT if a.get("transA") else x) @ (y.mT if a.get("transB") else y))
    return product if bias is None else product + a.get("beta", 1.0) * bias


def _convolution(
    a: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, transposed: bool = False
) -> torch.Tensor:
    """Of any number of axes. Padding that differs between the two sides of an axis is added first."""
    axes = x.dim() - 2
    pads, zeros, ones = a.get("pads", [0] * 2 * axes), [0] * axes, [1] * axes
    if pads[:axes] != pads[axes:]:
        x = functional.pad(x, [pads[axis + side] for axis in reversed(range(axes)) for side in (0, axes)])
        pads = zeros
    strides, more = a.get("strides", ones), a.get("output_padding", zeros)
    dilations, groups = a.get("dilations", ones), a.get("group", 1)
    return torch.convolution(x, weight, bias, strides, pads[:axes], dilations, transposed, more, groups)


def _max_pool(a: Any, x: torch.Tensor) -> torch.Tensor:
    axes = x.dim() - 2
    pool = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[axes - 1]
    return pool(x, a["kernel_shape"], a.get("strides", [1] * axes), a.get("pads", [0] * axes)[:axes])


def _instance(a: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.group_norm(x, x.shape[1], weight, bias, a.get("epsilon", 1e-5))


def _layer_norm(a: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    shape = x.shape[a.get("axis", -1) :]
    return functional.layer_norm(x, shape, weight, bias, a.get("epsilon", 1e-5))


def _resize(
    a: Any, x: torch.Tensor, _: Any = None, scales: torch.Tensor | None = None, sizes: torch.Tensor | None = None
) -> torch.Tensor:
    """Nearest neighbours, counted as PyTorch's own export of ``interpolate`` does."""
    modes = tuple(a.get(name) for name in ("mode", "coordinate_transformation_mode", "nearest_mode"))
    if modes != (b"nearest", b"asymmetric", b"floor"):
        raise BundleError(
            f"runtime 'torch' does not know the operator Resize with {modes}; valid is nearest, asymmetric, floor"
        )
    size = _numbers(sizes)[2:] or [
        int(extent * scale)
        for extent, scale in zip(x.shape[2:], scales.tolist()[2:], strict=True)  # type: ignore[union-attr]
    ]
    return functional.interpolate(x, size=size, mode="nearest")


def _reduce(a: Any, x: torch.Tensor, call: Callable[..., torch.Tensor], axes: torch.Tensor | None) -> torch.Tensor:
    chosen = _numbers(axes) or list(a.get("axes", range(x.dim())))
    return call(x, dim=chosen, keepdim=bool(a.get("keepdims", 1)))


def _clip(a: Any, x: torch.Tensor, low: torch.Tensor | None = None, high: torch.Tensor | None = None) -> torch.Tensor:
    if low is not None:
        x = torch.maximum(x, low.to(x))
    return x if high is None else torch.minimum(x, high.to(x))


def _divide(a: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


_UNARY: Final[Sequence[Callable[[torch.Tensor], torch.Tensor]]] = (
    *(torch.cos, torch.erf, torch.exp, torch.log, torch.neg, torch.relu, torch.sigmoid, torch.sin, torch.sqrt),
    torch.tanh,
)
# Per operator a function of its attributes and its inputs; an input that is left out is None.
OPERATORS: Final[Mapping[str, Callable[..., torch.Tensor]]] = {
    **{call.__name__.capitalize(): lambda a, x, call=call: call(x) for call in _UNARY},
    "Add": lambda a, x, y: x + y,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda a, *parts: torch.cat(parts, a["axis"]),
    "Constant": lambda a: a["value"],
    "ConstantOfShape": lambda a, shape: torch.full(
        _numbers(shape), numpy_helper.to_array(a["value"]).item() if "value" in a else 0.0
    ),
    "Conv": _convolution,
    "ConvTranspose": lambda a, x, weight, bias=None: _convolution(a, x, weight, bias, transposed=True),
    "Div": _divide,
    "Equal": lambda a, x, y: x == y,
    "Expand": lambda a, x, shape: x.expand(np.broadcast_shapes(x.shape, tuple(_numbers(shape)))),
    "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[: a.get("axis", 1)])), -1),
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "Identity": lambda a, x: x,
    "InstanceNormalization": _instance,
    "LayerNormalization": _layer_norm,
    "MatMul": lambda a, x, y: x @ y,
    "Max": lambda a, x, y: torch.maximum(x, y),
    "MaxPool": _max_pool,
    "Min": lambda a, x, y: torch.minimum(x, y),
    "Mish": lambda a, x: functional.mish(x),
    "Mul": lambda a, x, y: x * y,
    "Pow": lambda a, x, y: x**y,
    "ReduceMean": lambda a, x, axes=None: _reduce(a, x, torch.mean, axes),
    "ReduceSum": lambda a, x, axes=None: _reduce(a, x, torch.sum, axes),
    "Reshape": _reshape,
    "Resize": _resize,
    "Shape": lambda a, x: torch.tensor(x.shape[a.get("start", 0) : a.get("end", None)], dtype=torch.int64),
    "Slice": _slice,
    "Softmax": lambda a, x: x.softmax(a.get("axis", -1)),
    "Softplus": lambda a, x: functional.softplus(x),
    "Squeeze": _squeeze,
    "Sub": lambda a, x, y: x - y,
    "Transpose": lambda a, x: x.permute(a.get("perm", list(reversed(range(x.dim()))))),
    "Unsqueeze": _unsqueeze,
    "Where": lambda a, c, x, y: torch.where(c, x, y),
}
