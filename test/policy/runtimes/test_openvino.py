import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

openvino = pytest.importorskip("openvino")

from bid_ros.policy.runtimes.onnx import OnnxRuntime  # noqa: E402
from bid_ros.policy.runtimes.openvino import OpenVinoRuntime, rewrite_convolutions  # noqa: E402

WIDE = (160, 128, 5)  # outputs, inputs, taps: wide enough


@pytest.fixture
def write(tmp_path):
    """Write a graph of one convolution along time of ``(N, C, 8)``, behind a sine and before another."""

    def write(kind, weights, half=False, **settings):
        inputs = weights[0] if kind == "ConvTranspose" else weights[1]
        outputs = weights[1] if kind == "ConvTranspose" else weights[0]
        rng = np.random.default_rng(0)
        w = (rng.standard_normal(weights) / np.sqrt(inputs * weights[2])).astype(np.float16 if half else np.float32)
        constants = {"w": w, "b": rng.standard_normal(outputs, dtype=np.float32)}
        nodes = [
            helper.make_node("Cast", ["w"], ["w32"], to=TensorProto.FLOAT),
            helper.make_node("Sin", ["x"], ["s"]),
            helper.make_node(kind, ["s", "w32", "b"], ["c"], **settings),
            helper.make_node("Sin", ["c"], ["y"]),
        ]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", None, None]) for name in "xy"]
        ends[0] = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", inputs, 8])
        values = [numpy_helper.from_array(value, name) for name, value in constants.items()]
        graph = helper.make_graph(nodes, "one", ends[:1], ends[1:], values)
        path = tmp_path / "one.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
        return path

    return write


CASES = [
    ("Conv", WIDE, {"pads": [2, 2]}),
    ("Conv", WIDE, {"pads": [2, 2], "strides": [2]}),
    ("Conv", WIDE, {"pads": [4, 0]}),
    ("Conv", WIDE, {"pads": [4, 4], "dilations": [2]}),
    ("Conv", (32, 16, 5), {"pads": [2, 2]}),
    ("ConvTranspose", (24, 16, 4), {"pads": [1, 1], "strides": [2]}),
    ("ConvTranspose", (128, 128, 4), {"pads": [1, 1], "strides": [2]}),
    ("ConvTranspose", (24, 16, 4), {"pads": [0, 0], "strides": [2]}),
    ("ConvTranspose", (24, 16, 3), {"pads": [1, 1], "strides": [2]}),
    ("ConvTranspose", (24, 16, 4), {"pads": [1, 1], "strides": [2], "output_padding": [1]}),
]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("kind", "weights", "settings"), CASES)
def test_a_convolution_gives_what_onnxruntime_gives(write, kind, weights, settings, half):
    path = write(kind, weights, half, **settings)
    ours, reference = OpenVinoRuntime(1).load(path), OnnxRuntime(1).load(path)
    for samples in (1, 4, 9):
        feeds = {
            "x": np.random.default_rng(samples).standard_normal((samples, *ours.inputs["x"].shape[1:]), np.float32)
        }
        np.testing.assert_allclose(ours.run(feeds), reference.run(feeds), atol=1e-5)


def rewritten(path, samples):
    """Return the ranks of the convolutions, and whether a transposed one is left, after rewriting."""
    model = openvino.Core().read_model(str(path))
    model.reshape([samples, *[extent.get_length() for extent in list(model.inputs[0].get_partial_shape())[1:]]])
    rewrite_convolutions(model)
    nodes = model.get_ordered_ops()
    used = [node for node in nodes if node.get_type_name() == "Convolution" and read(node)]
    transposed = any(node.get_type_name() == "ConvolutionBackpropData" for node in nodes)
    return [len(node.get_output_shape(0)) for node in used], transposed


def read(node):
    """Return what reads the values of a node; the fixed shape is folded when the model is compiled."""
    kinds = [reader.get_node().get_type_name() for reader in node.output(0).get_target_inputs()]
    return [kind for kind in kinds if kind != "ShapeOf"]


def test_only_wide_convolutions_of_several_samples_are_rewritten(write):
    wide = write("Conv", WIDE, pads=[2, 2])
    assert rewritten(wide, 16) == ([4], False)
    assert rewritten(wide, 1) == ([3], False)
    assert rewritten(write("Conv", (32, 16, 5), pads=[2, 2]), 16) == ([3], False)


def test_only_a_transposed_convolution_that_doubles_the_steps_is_rewritten(write):
    assert rewritten(write("ConvTranspose", (24, 16, 4), pads=[1, 1], strides=[2]), 16) == ([3], False)
    assert rewritten(write("ConvTranspose", (128, 128, 4), pads=[1, 1], strides=[2]), 16) == ([4], False)
    assert rewritten(write("ConvTranspose", (24, 16, 4), pads=[0, 0], strides=[2]), 16) == ([], True)


def test_the_bias_stays_with_its_convolution(write):
    """Otherwise the plugin would need another pass over the values."""
    model = openvino.Core().read_model(str(write("Conv", WIDE, pads=[2, 2])))
    model.reshape([16, 128, 8])
    rewrite_convolutions(model)
    wide = [node for node in model.get_ordered_ops() if node.get_type_name() == "Convolution" and read(node)]
    assert [read(node) for node in wide] == [["Add"]]
