from pathlib import Path

import numpy as np
import onnx
import pytest
from installed import TORCH
from onnx import TensorProto, helper, numpy_helper

from bid_ros.core.errors import BidError, BundleError
from bid_ros.policy.runtimes.bound import BoundRuntime
from bid_ros.policy.runtimes.engines import EngineCache
from bid_ros.policy.runtimes.providers import Found, Gpu, Provider
from bid_ros.policy.runtimes.registry import build_runtime

NAMES = ["onnx", "openvino", *TORCH, "bound"]


def build(name, threads=1):
    """A runtime; ``bound`` is the code of the GPU's providers, with onnxruntime's CPU in their place."""
    if name != "bound":
        return build_runtime(name, threads)
    cpu = Provider("CPUExecutionProvider", lambda: Found(Gpu("", "", "")), lambda *_: {}, device="cpu")
    return BoundRuntime("bound", cpu, EngineCache(Path("not used"), build=False))


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    """y = mish(x W) W2 with half-precision weights: wide enough for bfloat16 to show."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((64, 64)).astype(np.float16) / 8 for _ in range(2)]
    nodes, current = [], "x"
    for index in range(2):
        nodes.append(helper.make_node("Cast", [f"half{index}"], [f"full{index}"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("MatMul", [current, f"full{index}"], [f"product{index}"]))
        nodes.append(helper.make_node("Mish", [f"product{index}"], [f"y{index}"]))
        current = f"y{index}"
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info("y1", TensorProto.FLOAT, ["N", 64])],
        [numpy_helper.from_array(value, f"half{index}") for index, value in enumerate(weights)],
    )
    path = tmp_path_factory.mktemp("graph") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path, weights


def expected(x, weights):
    for weight in weights:
        x = x @ weight.astype(np.float64)
        x = x * np.tanh(np.log1p(np.exp(x)))
    return x


@pytest.mark.parametrize("name", NAMES)
def test_computes_in_single_precision_for_any_number_of_rows(name, graph_file):
    path, weights = graph_file
    graph = build(name).load(path)
    for rows in (3, 16, 3):
        x = np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)
        # bfloat16 would be wrong by 1e-2.
        np.testing.assert_allclose(graph.run({"x": x}), expected(x.astype(np.float64), weights), atol=2e-5)


def test_runtimes_agree(graph_file):
    path, _ = graph_file
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    first, *others = (build(name).load(path).run({"x": x}) for name in NAMES)
    for other in others:
        np.testing.assert_allclose(first, other, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_input_gives_the_same_bits(name, graph_file):
    graph = build(name).load(graph_file[0])
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    np.testing.assert_array_equal(graph.run({"x": x}), graph.run({"x": x}))


@pytest.mark.parametrize("name", NAMES)
def test_a_result_outlives_the_next_call(name, graph_file):
    graph = build(name, threads=2).load(graph_file[0])
    x = np.ones((2, 64), np.float32)
    first = graph.run({"x": x})
    kept = first.copy()
    graph.run({"x": -x})
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("name", NAMES)
def test_says_what_goes_in_and_out(name, graph_file):
    graph = build(name).load(graph_file[0])
    assert graph.inputs["x"].shape == (None, 64)
    assert graph.output.shape == (None, 64)
    assert graph.inputs["x"].dtype == np.float32


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_no_graph_is_refused_in_one_line(name, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(BundleError, match=r"bad\.onnx is not a graph that") as caught:
        build(name).load(path)
    assert "\n" not in str(caught.value)


def test_auto_prefers_openvino():
    assert build_runtime("auto").name == "openvino"


def test_auto_without_openvino_is_onnxruntime(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert build_runtime("auto").name == "onnx"


def test_impossible_requests_are_refused():
    with pytest.raises(
        BidError, match="runtime is 'tflite'; valid are auto, openvino, onnx, torch, cuda, tensorrt, tensorrt-rtx"
    ):
        build_runtime("tflite")
    with pytest.raises(BidError, match="runtime is 'torch:int8'; valid are torch:fp16, torch:fuse"):
        build_runtime("torch:int8")
    with pytest.raises(BidError, match=r"runtime is 'openvino:fp16'; valid is openvino$"):
        build_runtime("openvino:fp16")
    with pytest.raises(BidError, match="threads are 0"):
        build_runtime("onnx", threads=0)
