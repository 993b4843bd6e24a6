"""Runtimes by name."""

import importlib.util
from typing import Final

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.policy.runtimes.base import Runtime

RUNTIMES: Final = ("auto", "openvino", "onnx")


def build_runtime(name: str = "auto", threads: int = 1) -> Runtime:
    """Return the runtime of a name.

    Args:
        name: ``openvino`` (CPU), ``onnx`` (onnxruntime on the CPU) or ``auto``: OpenVINO where it is installed.
        threads: threads one network call may use. Calls come one at a time.

    Raises:
        BidError: the name is unknown, its library is not installed, or ``threads`` is below 1.
    """
    if name not in RUNTIMES:
        raise BidError(f"runtime is '{name}'; valid are {', '.join(RUNTIMES)}")
    if threads < 1:
        raise BidError(f"inference threads are {threads}; valid is 1 or more")
    if name == "auto":
        name = "openvino" if importlib.util.find_spec("openvino") else "onnx"
    if name == "openvino":
        with extra("openvino", "runtime 'openvino'"):
            from bid_ros.policy.runtimes.openvino import OpenVinoRuntime
        return OpenVinoRuntime(threads)
    from bid_ros.policy.runtimes.onnx import OnnxRuntime

    return OnnxRuntime(threads)
