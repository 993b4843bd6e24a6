"""What is missing, on a computer that a test makes: an ``nvidia-smi`` of its own, and the real libraries."""

import shutil
import subprocess

import onnxruntime
import pytest
from installed import TORCH

from bid_ros.core.errors import BidError
from bid_ros.policy.runtimes import providers
from bid_ros.policy.runtimes.registry import RUNTIMES, build_runtime, missing


@pytest.fixture
def driver(monkeypatch, tmp_path):
    """Puts a program in the place of nvidia-smi; without an argument there is none."""

    def install(script=None):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        if script is not None:
            program = folder / "nvidia-smi"
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin" if script is not None else str(folder))

    return install


def test_a_computer_without_a_driver(driver):
    driver()
    for name in ("cuda", "tensorrt:fp16", "tensorrt-rtx"):
        with pytest.raises(
            BidError,
            match=rf"^runtime '{name}' cannot be used: there is no NVIDIA driver .*install it with: sudo ubuntu-"
            rf"drivers install, then restart; usable instead: {', '.join(['openvino', 'onnx', *TORCH])}$",
        ):
            build_runtime(name)


def test_a_driver_without_a_gpu(driver):
    driver("echo No devices were found; exit 6")
    with pytest.raises(BidError, match=r"the NVIDIA driver finds no GPU \(nvidia-smi: No devices were found\)"):
        providers.find_gpu()


def test_the_first_gpu(driver):
    driver("echo 'NVIDIA GeForce RTX 4090, 8.9, 580.65.06'; echo 'NVIDIA T4, 7.5, 580.65.06'")
    assert providers.find_gpu() == providers.Gpu("NVIDIA GeForce RTX 4090", "8.9", "580.65.06")


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="it is built with CUDA")
def test_onnxruntime_without_cuda(driver):
    driver("echo 'NVIDIA H200, 9.0, 580.159.04'")
    for name in ("cuda", "tensorrt"):
        assert "is built without CUDA; install it with: " in missing(name)
        assert missing(name).endswith("pip install 'onnxruntime-gpu[cuda,cudnn]'")


def test_tensorrt_rtx_on_a_data_centre_card(driver):
    driver("echo 'NVIDIA H200, 9.0, 580.159.04'")
    assert "does not run on NVIDIA H200 (compute capability 9.0); valid are 8.6, 8.9 and 12" in missing("tensorrt-rtx")


@pytest.mark.skipif(providers.importlib.util.find_spec(providers.PLUGIN) is not None, reason="the plugin is installed")
def test_tensorrt_rtx_without_its_plugin(driver):
    driver("echo 'NVIDIA RTX PRO 6000, 12.0, 580.159.04'")
    assert missing("tensorrt-rtx").endswith("-m pip install onnxruntime-ep-nv-tensorrt-rtx-cu13")


def test_what_needs_no_gpu_is_there():
    assert [name for name in RUNTIMES if not missing(name)][: 3 + len(TORCH)] == ["auto", "openvino", "onnx", *TORCH]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no compiler")
def test_a_library_that_another_one_lacks(tmp_path):
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    (tmp_path / "two.c").write_text("int one(void); int two(void) { return one() + 1; }")
    first, second = tmp_path / "libone_of_bid.so", tmp_path / "libtwo.so"
    make = ["gcc", "-shared", "-fPIC", "-o"]
    subprocess.run([*make, str(first), "-Wl,-soname,libone_of_bid.so", str(tmp_path / "one.c")], check=True)
    subprocess.run([*make, str(second), str(tmp_path / "two.c"), "-L", str(tmp_path), "-lone_of_bid"], check=True)
    assert providers.lacking(second) == ["libone_of_bid.so"]
    providers.ctypes.CDLL(str(first), mode=providers.ctypes.RTLD_GLOBAL)  # as a Python package of NVIDIA's does
    assert providers.lacking(second) == []
