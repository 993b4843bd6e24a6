"""A program of its own: reads what a checkpoint's pickle holds, and never calls what it asks for.

It prints JSON: the configuration, and of each tensor its type, place and strides. Whoever started it reads the numbers
from the file. Of a file that is a pickle alone it prints the arrays of numbers. It needs the standard library alone,
and gives up the right to much memory, time, files and processes before it opens the file.
"""

import collections
import io
import json
import pickle
import resource
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

MEMORY_BYTES = 1 << 30
SECONDS = 60
FILES = 32
LARGEST_PICKLE = 64 << 20
LARGEST_ANSWER = 64 << 20
# Names that build data and nothing else. Each is replaced by something of this file.
RECORDED = ("omegaconf.", "typing.", "pathlib.")
BUILTINS = ("int", "float", "str", "bool", "list", "dict", "tuple", "set", "bytes", "NoneType", "object", "complex")
DILL = ("_load_type", "_get_attr", "_import_module", "_create_type", "_eval_repr")


class Refused(Exception):
    """The file asks for something that is not data. The message says what."""


class Record:
    """Stands for an object of another project: keeps what it is made of, and does nothing."""

    def __init__(self, *values: Any, **named: Any) -> None:
        self.values, self.state = values, dict(named)

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, dict) else {"state": state}

    def __setitem__(self, key: Any, value: Any) -> None:
        self.state[key] = value

    def append(self, value: Any) -> None:
        """Do nothing with an item."""

    def extend(self, values: Any) -> None:
        """Do nothing with items."""

    def __call__(self, *values: Any) -> "Record":
        """Return a record in place of what a call would return."""
        return Record(*values)

    def __hash__(self) -> int:
        return id(self)


class Storage(str):
    """Type of the numbers of a tensor."""

    __slots__ = ()


class Tensor:
    """Where the numbers of a tensor are."""

    def __init__(self, storage: Any, offset: Any = 0, size: Any = (), stride: Any = (), *rest: Any) -> None:
        self.place = [*storage, offset, list(size), list(stride)]


class Array:
    """An array of NumPy: its shape, kind of numbers and bytes."""

    def __init__(self, *_: Any) -> None:
        self.values: list[float] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, _, data = state
        count, size = 1, kind.size if isinstance(kind, Kind) else 0
        for extent in shape:
            count *= extent
        if size in (4, 8) and isinstance(data, bytes) and len(data) == count * size and len(shape) <= 1:
            self.values = list(struct.unpack(f"{kind.order}{count}{'f' if size == 4 else 'd'}", data))


class Kind:
    """Kind of the numbers of an array. ``size``: bytes of a floating-point number; 0: another kind."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.size, self.order = {"f4": 4, "f8": 8}.get(str(code), 0), "<"

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if state[1] == ">" else "<"


def parameter(data: Any, *rest: Any) -> Any:
    """Return the tensor of a parameter."""
    return data


def encoded(text: str, coding: str = "") -> bytes:
    """Return bytes that an old protocol wrote as text."""
    return text.encode("latin1")


KNOWN = {
    ("_codecs", "encode"): encoded,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): Tensor,
    ("torch._utils", "_rebuild_parameter"): parameter,
    ("collections", "defaultdict"): lambda *given: {},
    ("torch", "Size"): lambda *given: list(*given),
    ("torch", "device"): lambda *given: str(given),
    ("numpy", "ndarray"): Array,
    ("numpy", "dtype"): Kind,
    ("numpy.core.multiarray", "_reconstruct"): Array,
    ("numpy._core.multiarray", "_reconstruct"): Array,
}


class Reader(pickle.Unpickler):
    """Builds data. A name that is not known to be data is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name."""
        known = KNOWN.get((module, name))
        if known is not None:
            return known
        if module in ("torch", "torch.storage") and name.endswith("Storage"):
            return Storage(name)
        builtin = module in ("builtins", "__builtin__") and name in BUILTINS
        if builtin or f"{module}.".startswith(RECORDED) or (module == "dill._dill" and name in DILL):
            return type("Record", (Record,), {})
        raise Refused(f"{'builtins' if module == '__builtin__' else module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """Return the place of a tensor's numbers: their type, key and count."""
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not isinstance(pid[1], Storage):
            raise Refused(f"a persistent object {str(pid)[:60]}")
        return str(pid[1]), str(pid[2]), pid[4]


def limit() -> None:
    """Give up rights, for good."""
    for kind, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def plain(value: Any) -> Any:
    """Return a configuration as lists and mappings. What has no such form becomes None."""
    if isinstance(value, Record):
        for name in ("_content", "_val"):
            if name in value.state:
                return plain(value.state[name])
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else None


def read_arrays(path: str) -> dict[str, Any]:
    """Return the arrays of one dimension in a pickle's mapping, by name."""
    with Path(path).open("rb") as stream:
        content = Reader(io.BytesIO(stream.read(LARGEST_PICKLE))).load()
    if not isinstance(content, dict):
        raise Refused(f"a {type(content).__name__} in place of a mapping")
    arrays = {str(name): item.values for name, item in content.items() if isinstance(item, Array)}
    return {"arrays": {name: values for name, values in arrays.items() if values is not None}}


def read(path: str) -> dict[str, Any]:
    """Return configuration and tensors of a checkpoint, or the arrays of a pickle alone.

    The group of tensors that are a mapping of their own is empty.
    """
    if not zipfile.is_zipfile(path) and path.endswith(".pkl"):
        return read_arrays(path)
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise Refused(f"{len(names)} files data.pkl in place of one")
        if archive.getinfo(names[0]).file_size > LARGEST_PICKLE:
            raise Refused(f"a data.pkl over {LARGEST_PICKLE} bytes")
        content = Reader(io.BytesIO(archive.read(names[0]))).load()
    if not isinstance(content, dict):
        raise Refused(f"a {type(content).__name__} in place of a mapping")
    states = content.get("state_dicts")
    found = {
        str(group): {str(name): item.place for name, item in state.items() if isinstance(item, Tensor)}
        for group, state in (states if isinstance(states, dict) else {}).items()
        if isinstance(state, dict) and group in ("model", "ema_model")
    }
    if content and all(isinstance(item, Tensor) for item in content.values()):
        found = {"": {str(name): item.place for name, item in content.items()}}
    return {"root": names[0].removesuffix("data.pkl"), "cfg": plain(content.get("cfg")), "tensors": found}


def main() -> int:
    """Print what the file holds, or why it is refused."""
    limit()
    try:
        answer = read(sys.argv[1])
        text = json.dumps(answer)
        if len(text) > LARGEST_ANSWER:
            raise Refused("more than a checkpoint holds")
    except Refused as problem:
        text = json.dumps({"refused": str(problem)})
    except zipfile.BadZipFile:
        text = json.dumps({"damaged": "it is no whole zip file, as torch from 1.6 on writes"})
    except Exception as problem:  # a damaged pickle may raise anything
        text = json.dumps({"damaged": f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"})
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
