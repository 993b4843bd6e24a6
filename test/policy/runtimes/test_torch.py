"""PyTorch as a runtime: operators, half precision, the whole sampling, calls that a GPU can record."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

torch = pytest.importorskip("torch")  # of the extra train, which not every Python of the suite has

from bid_ros.core.errors import BundleError  # noqa: E402
from bid_ros.policy.bundle import load_bundle  # noqa: E402
from bid_ros.policy.diffusion.policy import DiffusionPolicy  # noqa: E402
from bid_ros.policy.runtimes.registry import build_runtime  # noqa: E402
from bid_ros.policy.runtimes.torch import OPERATORS, Translated  # noqa: E402

SHIPPED = [
    "franka_place/strong_denoiser",
    "franka_place/strong_frames",
    "franka_place/strong_encoder",
    "pusht/weak_encoder",
]


def write(path, nodes, inputs, output, constants):
    """Write a graph; ``inputs`` and ``output`` are shapes."""
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT, output)
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    model = helper.make_graph(nodes, "one", given, [result], values)
    onnx.save(helper.make_model(model, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def ints(*values):
    return np.array(values, np.int64)


def floats(*shape):
    return np.random.default_rng(len(shape)).uniform(0.1, 1, shape).astype(np.float32)


# operator, extra inputs, attributes, shape of the input
CASES = [
    ("Clip", [np.float32(-0.2), np.float32(0.3)], {}, [3, 4]),
    ("Conv", [floats(6, 2, 3), floats(6)], {"group": 2, "pads": [2, 1], "strides": [2]}, [3, 4, 7]),
    ("Conv", [floats(5, 4, 3, 3)], {"pads": [1, 1, 1, 1], "dilations": [1, 1]}, [3, 4, 7, 6]),
    ("ConvTranspose", [floats(4, 5, 4)], {"pads": [1, 1], "strides": [2]}, [3, 4, 6]),
    ("Div", [floats(4)], {}, [3, 4]),
    ("Erf", [], {}, [3, 4]),
    ("Exp", [], {}, [3, 4]),
    ("Expand", [ints(2, 3, 4)], {}, [3, 1]),
    ("Flatten", [], {"axis": 2}, [3, 4, 5]),
    ("Gather", [ints(2, 0)], {"axis": 1}, [3, 4, 5]),
    ("Gather", [np.array(1, np.int64)], {"axis": 0}, [3, 4]),
    ("Gemm", [floats(5, 4), floats(5)], {"transB": 1, "alpha": 0.5, "beta": 2.0}, [3, 4]),
    ("GlobalAveragePool", [], {}, [3, 4, 5, 6]),
    ("Identity", [], {}, [3, 4]),
    ("LayerNormalization", [floats(4), floats(4)], {"axis": -1}, [3, 4]),
    ("Log", [], {}, [3, 4]),
    ("Max", [floats(4)], {}, [3, 4]),
    ("MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, [3, 4, 7, 8]),
    ("Mish", [], {}, [3, 4]),
    ("Min", [floats(4)], {}, [3, 4]),
    ("Neg", [], {}, [3, 4]),
    ("Pow", [np.float32(2)], {}, [3, 4]),
    ("ReduceMean", [ints(1)], {"keepdims": 0}, [3, 4]),
    ("ReduceSum", [], {}, [3, 4]),
    ("Reshape", [ints(0, -1)], {}, [3, 4, 5]),
    ("Slice", [ints(1, -3), ints(3, 99), ints(0, 2), ints(1, 2)], {}, [3, 4, 5]),
    ("Softmax", [], {"axis": 1}, [3, 4, 5]),
    ("Softplus", [], {}, [3, 4]),
    ("Sqrt", [], {}, [3, 4]),
    ("Squeeze", [ints(1)], {}, [3, 1, 4]),
    ("Tanh", [], {}, [3, 4]),
    ("Transpose", [], {"perm": [1, 2, 0]}, [3, 4, 5]),
    ("Unsqueeze", [ints(0, -1)], {}, [3, 4]),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}{index}" for index, case in enumerate(CASES)])
def test_an_operator_computes_what_onnxruntime_does(tmp_path, case):
    kind, further, attributes, shape = case
    names = [f"c{index}" for index in range(len(further))]
    node = helper.make_node(kind, ["x", *names], ["out"], **attributes)
    path = write(tmp_path / "one.onnx", [node], {"x": shape}, None, dict(zip(names, further, strict=True)))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = build_runtime("onnx").load(path).run({"x": x})
    np.testing.assert_allclose(build_runtime("torch").load(path).run({"x": x}), expected, atol=1e-5)


def test_resize_and_what_follows_from_shapes(tmp_path):
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Mul", ["shape", "factors"], ["sizes"]),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["large"], mode="nearest", **nearest),
        helper.make_node("Cast", ["sizes"], ["extents"], to=TensorProto.FLOAT),
        helper.make_node("Gather", ["extents", "last"], ["extent"]),
        helper.make_node("Div", ["large", "extent"], ["out"]),
    ]
    constants = {"factors": ints(1, 1, 1, 2), "last": np.array(3, np.int64)}
    path = write(tmp_path / "resize.onnx", nodes, {"x": ["N", 2, 3, 4]}, None, constants)
    for rows in (1, 5):
        x = floats(rows, 2, 3, 4)
        expected = build_runtime("onnx").load(path).run({"x": x})
        np.testing.assert_allclose(build_runtime("torch").load(path).run({"x": x}), expected, atol=1e-6)


def test_an_expansion_as_pytorch_exports_it(tmp_path):
    """``x.expand(-1, 5)``: the extent -1 is that of the value."""
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "first"], ["own"]),
        helper.make_node("Concat", ["own", "five"], ["target"], axis=0),
        helper.make_node("Shape", ["target"], ["length"]),
        helper.make_node("ConstantOfShape", ["length"], ["ones"], value=one),
        helper.make_node("Equal", ["wanted", "minus"], ["open"]),
        helper.make_node("Where", ["open", "ones", "target"], ["extents"]),
        helper.make_node("Expand", ["x", "extents"], ["out"]),
    ]
    constants = {"zero": ints(0), "first": ints(1), "five": ints(5), "minus": ints(-1), "wanted": ints(-1, 5)}
    path = write(tmp_path / "expand.onnx", nodes, {"x": ["N", 1]}, None, constants)
    for rows in (2, 3):
        x = floats(rows, 1)
        expected = build_runtime("onnx").load(path).run({"x": x})
        assert expected.shape == (rows, 5)
        np.testing.assert_array_equal(build_runtime("torch").load(path).run({"x": x}), expected)


def test_an_unknown_operator_is_named(tmp_path):
    node = helper.make_node("Hardmax", ["x"], ["out"])
    path = write(tmp_path / "odd.onnx", [node], {"x": [3, 4]}, [3, 4], {})
    with pytest.raises(BundleError, match=r"odd\.onnx has operators that runtime 'torch' does not know: Hardmax"):
        build_runtime("torch").load(path)


def feeds_of(graph, rows):
    rng, feeds = np.random.default_rng(rows), {}
    for name, spec in graph.inputs.items():
        shape = [rows if extent is None else extent for extent in spec.shape]
        whole = spec.dtype != np.float32
        feeds[name] = rng.integers(0, 99, shape).astype(spec.dtype) if whole else rng.standard_normal(shape, np.float32)
    return feeds


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize(("runtime", "atol"), [("torch", 2e-5), ("torch:fp16", 2e-2)])
def test_shipped_graphs(root, name, runtime, atol):
    path = root / "models" / f"{name}.onnx"
    expected, found = build_runtime("onnx").load(path), build_runtime(runtime).load(path)
    assert found.inputs == expected.inputs
    assert found.output == expected.output
    for rows in (1, 5):
        feeds = feeds_of(expected, rows)
        difference = np.abs(found.run(feeds) - expected.run(feeds)).max()
        assert difference < atol
        assert runtime == "torch" or difference > 1e-6  # or it did not compute in half precision


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_call_reads_nothing_from_the_device(root, name, half):
    """A CUDA graph cannot record a read. PyTorch's device ``meta`` has no values, so a read there fails."""
    function = Translated(root / "models" / f"{name}.onnx", "meta", half)
    feeds = {
        item.name: torch.zeros(
            [axis.dim_value or 3 for axis in item.type.tensor_type.shape.dim],
            dtype={1: torch.float32, 2: torch.uint8, 7: torch.int64}[item.type.tensor_type.elem_type],
            device="meta",
        )
        for item in function.model.input
    }
    with torch.no_grad():
        for _ in range(2):
            found = function(feeds)
    assert found.device.type == "meta"
    assert found.dtype == torch.float32


@pytest.mark.parametrize("settings", [{}, {"sampler": "consistency", "sampling_steps": 2}, {"prediction": "epsilon"}])
def test_the_whole_sampling_is_that_of_its_steps(tiny, task, observe, settings):
    from dataclasses import replace

    bundle = load_bundle(tiny, task)
    bundle = replace(bundle, settings=replace(bundle.settings, **settings))
    ours, theirs = (DiffusionPolicy(bundle, task, name) for name in ("torch", "onnx"))
    assert ours._strong.sampler is not None
    ours.warm_up(4)
    for first, second in zip(
        *(policy.sample(policy.encode(observe()), 4, 3, np.random.default_rng(0)) for policy in (ours, theirs)),
        strict=True,
    ):
        np.testing.assert_allclose(first, second, atol=1e-5)


def test_every_operator_is_exercised(root):
    """By a case above, or by a shipped or a tiny graph."""
    seen = {case[0] for case in CASES} | {"ConstantOfShape", "Equal", "Where"}  # in the expansion
    for path in (root / "models").glob("*/*.onnx"):
        seen |= {node.op_type for node in onnx.load(path).graph.node}
    assert set(OPERATORS) <= seen


def test_another_resize_is_refused(tmp_path):
    node = helper.make_node("Resize", ["x", "", "scales"], ["out"], mode="linear")
    path = write(tmp_path / "odd.onnx", [node], {"x": [1, 1, 4]}, None, {"scales": np.float32([1, 1, 2])})
    with pytest.raises(BundleError, match=r"does not know the operator Resize with .*linear.*; valid is nearest, asym"):
        build_runtime("torch").load(path).run({"x": floats(1, 1, 4)})
