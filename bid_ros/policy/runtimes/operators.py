"""ONNX operators as functions of their attributes and PyTorch tensors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

from bid_ros.core.errors import BundleError


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
