import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from results.floor import Work, operations
from tiny_bundle import make_tiny_bundle

from bid_ros.core.errors import BundleError
from bid_ros.core.paths import share
from bid_ros.core.task import load_task


def model(kind, x, weights, y, **settings):
    """A graph of one node with a weight."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x), ("y", y))]
    values = [numpy_helper.from_array(np.zeros(weights, np.float32), "w")]
    node = helper.make_node(kind, ["x", "w"], ["y"], **settings)
    graph = helper.make_graph([node], "one", ends[:1], ends[1:], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def floats(*shapes):
    return 4.0 * sum(np.prod(shape) for shape in shapes)


def test_a_matrix_product():
    assert operations(model("MatMul", ["N", 3], (3, 5), ["N", 5]), {"x": (7, 3)}) == Work(
        2 * 7 * 3 * 5, floats((7, 3), (3, 5), (7, 5))
    )
    assert operations(model("Gemm", ["N", 3], (5, 3), ["N", 5], transB=1), {"x": (7, 3)}).flops == 2 * 7 * 3 * 5


def test_a_convolution_does_not_count_its_padding():
    graph = model("Conv", ["N", 8, 4], (6, 8, 5), ["N", 6, 4], pads=[2, 2])
    assert operations(graph, {"x": (2, 8, 4)}).flops == 2 * 2 * 6 * 8 * (3 + 4 + 4 + 3)


@pytest.mark.parametrize(
    ("settings", "taps"),
    [
        ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (2 + 3) * (2 + 3)),
        ({"kernel_shape": [3, 3], "dilations": [2, 1]}, 0),
        ({"kernel_shape": [3, 3]}, 2 * 3 * 2 * 3),
        ({"kernel_shape": [3, 3], "group": 2}, 2 * 3 * 2 * 3),
    ],
)
def test_a_convolution_of_images(settings, taps):
    inside = 4 // settings.get("group", 1)
    graph = model("Conv", [1, 4, 4, 4], (6, inside, 3, 3), [1, 6, None, None], **settings)
    if not taps:
        with pytest.raises(BundleError, match="does not run"):
            operations(graph, {})
        return
    assert operations(graph, {}).flops == 2 * 6 * inside * taps


def test_a_transposed_convolution_has_the_products_of_its_gradient():
    graph = model("ConvTranspose", [2, 8, 4], (8, 6, 4), [2, 6, 8], strides=[2], pads=[1, 1])
    # Of the 4 taps of each of the 4 steps, the first of the first and the last of the last fall outside.
    assert operations(graph, {}).flops == 2 * 2 * 8 * 6 * (4 * 4 - 2)


def test_work_adds_up():
    assert (Work(1, 2) + Work(10, 20)) * 3 == Work(33, 66)
    assert Work(100, 10).seconds(50, 10) == 2 and Work(100, 10).seconds(1000, 2) == 5


def test_a_shipped_denoiser(tmp_path):
    path = share("models", "franka_place", "strong_denoiser.onnx")
    one, many = (operations(path, {"sample": (count, 16, 10)}) for count in (1, 16))
    assert 12 < many.flops / one.flops < 16, "all but the part that the samples share"
    weights = 4 * sum(np.prod(item.dims) for item in onnx.load(path).graph.initializer)
    assert one.bytes == pytest.approx(weights, rel=0.1), "stored in half precision, counted as it is computed"


def test_images_are_counted_as_bytes(tmp_path):
    task = load_task(share("config", "franka_place", "task.yaml"))
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    images = sum(np.prod([task.observation_steps, *item.shape]) for item in task.cameras)
    assert images < operations(bundle / "strong_encoder.onnx", {}).bytes < images + 4000
