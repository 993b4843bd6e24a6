"""Graphs in half precision, for providers that compute in the types of the graph."""

from pathlib import Path
from typing import Final

from bid_ros.core.errors import BundleError
from bid_ros.core.extras import extra

SENSITIVE: Final = {"Sin", "Cos"}  # an angle of a hundred has two decimals in half precision


def halved(path: Path, needed_by: str) -> bytes:
    """Return a graph that computes in float16; its inputs and outputs stay float32.

    What leads to a sine, the time step of a diffusion policy, stays in single precision.

    Args:
        path: the ONNX file.
        needed_by: the extra of the package that brings what the conversion needs.

    Raises:
        BundleError: the graph cannot be converted.
    """
    with extra(needed_by, "half precision"):
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16
    try:
        model = onnx.load(str(path))
        made_by = {name: node for node in model.graph.node for name in node.output}
        ahead, kept = [node for node in model.graph.node if node.op_type in SENSITIVE], set()
        for index, node in enumerate(model.graph.node):
            node.name = f"{node.op_type}_{index}"
        while ahead:
            node = ahead.pop()
            if node.name not in kept:
                kept.add(node.name)
                ahead += [made_by[name] for name in node.input if name in made_by]
        converted = convert_float_to_float16(model, keep_io_types=True, node_block_list=sorted(kept))
        # The converter casts a value once for each node that reads it, all casts with one name.
        nodes = list({node.output[0]: node for node in converted.graph.node}.values())
        del converted.graph.node[:]
        converted.graph.node.extend(nodes)
        return bytes(converted.SerializeToString())
    except Exception as error:  # onnx, protobuf and the converter raise what they like
        raise BundleError(f"{path} cannot be converted to half precision: {' '.join(str(error).split())}") from error
