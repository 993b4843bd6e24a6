"""The code of onnxruntime's GPU providers, with its CPU provider in their place. What needs a GPU is not run here."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from bid_ros.core.errors import BidError, BundleError
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.runtimes.bound import BoundRuntime, halved
from bid_ros.policy.runtimes.engines import EngineCache
from bid_ros.policy.runtimes.providers import PROVIDERS, Found, Gpu, Provider
from bid_ros.policy.runtimes.registry import build_runtime

CARD = Gpu("NVIDIA RTX 4090", "8.9", "580.1")


CPU = Provider("CPUExecutionProvider", lambda: Found(CARD), lambda *_: {}, device="cpu")


def runtime(root, build=False, name="tensorrt", half=False, card=CARD):
    """A runtime with engines: its provider writes a file where TensorRT writes one."""

    def compiled(folder, profile, half):
        if not list(folder.glob("*.engine")):
            (folder / "graph.engine").write_text(profile)
        return {}

    provider = replace(CPU, require=lambda: Found(card), options=compiled, compiled=True, rewritten=False)
    return BoundRuntime(name, provider, EngineCache(root, build), half)


def policy_on(tiny, task, runtime, samples):
    policy = DiffusionPolicy(load_bundle(tiny, task), task, runtime)
    policy.warm_up(samples)
    return policy


def test_a_policy_starts_on_engines_that_were_built_for_its_samples_alone(tiny, task, tmp_path, policy, observe):
    with pytest.raises(BidError, match=r"no tensorrt engine of strong_\w+\.onnx for .*; build it with: bid policy"):
        policy_on(tiny, task, runtime(tmp_path), 4)
    policy_on(tiny, task, runtime(tmp_path, build=True), 4)
    assert len(list(tmp_path.glob("*/key.json"))) == 1 + 2 * 2, "an encoder, two denoisers, for N = 1 and 4"
    ours = policy_on(tiny, task, runtime(tmp_path), 4)
    for first, second in zip(
        *(each.sample(each.encode(observe()), 4, 4, np.random.default_rng(0)) for each in (ours, policy)), strict=True
    ):
        np.testing.assert_allclose(first, second, atol=1e-6)
    with pytest.raises(BidError, match=r"for sample 8x16x10 and .*; compiled are sample 1x16x10 .*; sample 4x16x10 "):
        policy_on(tiny, task, runtime(tmp_path), 8)


def test_engines_of_another_card_are_refused(tiny, task, tmp_path):
    policy_on(tiny, task, runtime(tmp_path, build=True), 2)
    other = runtime(tmp_path, card=Gpu("NVIDIA H200", "9.0", "580.1"))
    with pytest.raises(BidError, match=r" on NVIDIA H200 .*; compiled are .* on NVIDIA RTX 4090 "):
        policy_on(tiny, task, other, 2)


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="it is built with CUDA")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_provider_that_onnxruntime_leaves_out_is_an_error(root):
    missing = replace(CPU, name="CUDAExecutionProvider")
    graph = BoundRuntime("cuda", missing, EngineCache(Path("not used"), False)).load(
        root / "models" / "pusht" / "strong_encoder.onnx"
    )
    feeds = {name: np.zeros(spec.shape, spec.dtype) for name, spec in graph.inputs.items()}
    with pytest.raises(BundleError, match="onnxruntime did not load CUDAExecutionProvider, only CPUExecutionProvider"):
        graph.run(feeds)


def test_shapes_that_do_not_fit_the_graph(root):
    graph = BoundRuntime("cuda", CPU, EngineCache(Path("not used"), False)).load(
        root / "models" / "pusht" / "strong_denoiser.onnx"
    )
    feeds = {"sample": np.zeros((2, 16, 3)), "step": np.zeros(1), "condition": np.zeros((1, 256))}
    with pytest.raises(BundleError, match=r"input 'sample' of .*strong_denoiser\.onnx got the shape \(2, 16, 3\); val"):
        graph.run(feeds)


@pytest.mark.parametrize("name", ["franka_place/strong_denoiser", "franka_place/strong_encoder"])
def test_half_precision_keeps_time_steps_exact(root, name):
    path = root / "models" / f"{name}.onnx"
    model = onnx.load_from_string(halved(path, "cuda"))
    made = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type in ("Sin", "Cos"):
            source = made[node.input[0]]
            assert source.op_type != "Cast" or source.attribute[0].i == TensorProto.FLOAT
    half = BoundRuntime("cuda:fp16", CPU, EngineCache(Path("not used"), False), half=True).load(path)
    reference, rng = build_runtime("onnx").load(path), np.random.default_rng(0)
    for rows in (1, 4):
        feeds = {}
        for key, spec in half.inputs.items():
            shape = [rows if extent is None else extent for extent in spec.shape]
            feeds[key] = (
                (90 * rng.random(shape)).astype(spec.dtype)
                if spec.dtype.kind in "iu"
                else np.float32(rng.standard_normal(shape))
            )
        assert 1e-6 < np.abs(half.run(feeds) - reference.run(feeds)).max() < 5e-3


def test_options_of_tensorrt_fix_the_profile():
    tensorrt, rtx = (PROVIDERS[name].options for name in ("tensorrt", "tensorrt-rtx"))
    profile, folder = "sample:16x16x10,step:1", Path("/cache/engine")
    options = tensorrt(folder, profile, True)
    assert {options[f"trt_profile_{end}_shapes"] for end in ("min", "opt", "max")} == {profile}
    assert (options["trt_engine_cache_path"], options["trt_timing_cache_path"]) == ("/cache/engine", "/cache")
    assert options["trt_fp16_enable"] == "1" and tensorrt(folder, profile, False)["trt_fp16_enable"] == "0"
    options = rtx(folder, profile, False)
    assert {options[f"nv_profile_{end}_shapes"] for end in ("min", "opt", "max")} == {profile}


def test_pytorch_is_imported_only_for_its_runtime():
    import subprocess

    code = (
        "import sys; import bid_ros.policy.registry as r; from bid_ros.policy.runtimes.registry import *;"
        "build_runtime('onnx'); [missing(name) for name in RUNTIMES]; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
