"""The HDF5 file of robomimic (Mandlekar et al., CoRL 2021): one group for each demonstration."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import extra
from bid_ros.formats.base import Column, Contents, DataEpisode, Format, holds_images
from bid_ros.formats.files import (
    KEY,
    STAMP,
    ArrayWriter,
    Sidecar,
    check_names,
    from_key,
    head,
    read_about,
    read_sidecar,
    readable,
    to_key,
)
from bid_ros.formats.rows import native, row_stamps, type_name, value_names

MAGIC: Final = b"\x89HDF\r\n\x1a\n"
READ: Final = {"actions", "obs", STAMP}
GYM: Final = 2  # robomimic's number of an environment that is not robosuite's


class RobomimicSource:
    """Reads ``data/demo_*/obs/*`` and ``data/demo_*/actions``.

    Args:
        path: the file.

    Raises:
        RecordingError: damaged, or without demonstrations.
    """

    def __init__(self, path: Path) -> None:
        with extra("data", "the format robomimic", RecordingError):
            import h5py
        self._path = path
        with readable(path), h5py.File(path, "r") as file:
            if "data" not in file or not len(file["data"]):
                raise RecordingError(f"{path} has no demonstrations; valid is a file with data/demo_0")
            data = file["data"]
            self._names = sorted(data, key=_number)
            for name in self._names:
                if "actions" not in data[name] or "obs" not in data[name]:
                    has = ", ".join(sorted(data[name]))
                    raise RecordingError(f"{path}: data/{name} lacks actions or obs; it has {has}")
            lengths = tuple(int(data[name]["actions"].shape[0]) for name in self._names)
            _check_alike(path, data, self._names)
            self._side = _side(data, self._names, lengths)
            self.contents = _contents(data, self._names, lengths, self._side)
        self._scales: dict[str, tuple[str, bool]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the demonstrations, in order, such as ``demo_0``."""
        return tuple(self._names)

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the demonstrations from number ``start`` on."""
        import h5py

        with readable(self._path), h5py.File(self._path, "r") as file:
            columns = [column for column in self.contents.columns if column.wanted(names)]
            for number, name in enumerate(self._names[start:], start):
                demo = file["data"][name]
                actions = native(demo["actions"][:])
                stamps = row_stamps(len(actions), self.contents.rate_hz)
                if "stamps" in self.contents.extras:
                    stamps = demo[STAMP][:]
                missing = [column.key for column in columns if column.key not in demo]
                if missing:
                    raise RecordingError(f"{self._path}: data/{name} lacks {', '.join(missing)}")
                observations = {column.name: native(demo[column.key][:]) for column in columns}
                for column in columns:
                    self._check_scale(column, observations[column.name], name)
                yield DataEpisode(observations, actions, stamps, **({"seed": number} | self._side.about(number)))

    def _check_scale(self, column: Column, values: NDArray[Any], name: str) -> None:
        """Raise RecordingError if float pictures go to 1 in one demonstration, and further in another."""
        if not column.image or column.dtype[0] != "f" or not values.any():  # black ones have any scale
            return
        small = bool(values.max() <= 1)
        other, least = self._scales.setdefault(column.name, (name, small))
        if small != least:
            raise RecordingError(
                f"{self._path}: pictures of '{column.key}' are 0 to 1 in data/{name if small else other}, and go "
                f"beyond 1 in data/{other if small else name}; valid is one scale in all demonstrations"
            )


def _check_alike(path: Path, data: Any, names: Sequence[str]) -> None:
    """Raise RecordingError if a quantity has another type in one demonstration than in the first one."""
    types = {key: type_name(array.dtype) for key, array in _arrays(data[names[0]]["obs"])}
    types["actions"] = type_name(data[names[0]]["actions"].dtype)
    for name in names[1:]:
        found = {key: type_name(array.dtype) for key, array in _arrays(data[name]["obs"])}
        for key, kind in {**found, "actions": type_name(data[name]["actions"].dtype)}.items():
            if key in types and types[key] != kind:
                raise RecordingError(
                    f"{path}: '{key}' is {kind} in data/{name} and {types[key]} in data/{names[0]}, so perhaps of "
                    "another scale too; valid is one type in all demonstrations"
                )


def _number(name: str) -> tuple[int, str]:
    digits = name.rpartition("_")[2]
    return (int(digits) if digits.isdigit() else -1, name)


def _json(attributes: Any, name: str) -> Any:
    try:
        return json.loads(attributes.get(name, "null"))
    except (TypeError, ValueError):
        return None


def _side(data: Any, names: Sequence[str], lengths: Sequence[int]) -> Sidecar:
    return read_sidecar(_json(data.attrs, KEY), [_json(data[name].attrs, KEY) for name in names], lengths)


def _rate(data: Any) -> float | None:
    known = _json(data.attrs, "env_args")
    settings = known.get("env_kwargs") if isinstance(known, dict) else None
    rate = settings.get("control_freq") if isinstance(settings, dict) else None
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        return None
    return float(rate) if 0 < rate < np.inf else None


def _contents(data: Any, names: Sequence[str], lengths: tuple[int, ...], side: Sidecar) -> Contents:
    demo = data[names[0]]
    columns = tuple(
        _column(from_key(key) if side.ours else key, array, f"obs/{key}") for key, array in sorted(_arrays(demo["obs"]))
    )
    unread = sorted(set(demo) - READ - ({"rewards", "dones"} if side.extras else set()))
    later = {key for name in names[1:] for key, _ in _arrays(data[name]["obs"])}
    some = sorted(later - {key for key, _ in _arrays(demo["obs"])})
    left = [f"{', '.join(unread)} of each demonstration are not read"] if unread else []
    left += [f"obs/{', obs/'.join(some)} of some demonstrations is not read: data/{names[0]} lacks it"] if some else []
    extras = side.extras if STAMP in demo else side.extras - {"stamps"}
    return Contents(
        "robomimic",
        columns,
        _column("action", demo["actions"], "actions"),
        lengths,
        side.rate_hz or _rate(data),
        side.task,
        side.signature,
        extras,
        tuple(left),
    )


def _arrays(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and array of everything in a group, also in groups within it."""
    for key, item in group.items():
        if hasattr(item, "dtype"):
            yield above + key, item
        else:
            yield from _arrays(item, f"{above}{key}/")


def _column(name: str, array: Any, key: str) -> Column:
    shape = tuple(int(size) for size in array.shape[1:])
    names = value_names(_json(array.attrs, "names"), shape)
    kind = type_name(array.dtype)
    return Column(name, shape, kind, holds_images(shape, kind), names, key)


class RobomimicWriter(ArrayWriter):
    """Writes what robomimic reads for behaviour cloning: observations, actions, sparse rewards and dones."""

    def __init__(self, contents: Contents) -> None:
        with extra("data", "the format robomimic", RecordingError):
            import h5py  # noqa: F401
        super().__init__(contents)
        check_names(contents, (), "robomimic")

    def assemble(self, parts: Sequence[Path], target: Path) -> None:
        """Write the file."""
        import h5py

        contents = self._contents
        abouts = [read_about(part) for part in parts]
        with h5py.File(target, "w") as file:
            data = file.create_group("data")
            settings = {"env_name": contents.task or "bid_ros", "type": GYM, "env_kwargs": {}}
            if contents.rate_hz is not None:
                settings["env_kwargs"] = {"control_freq": contents.rate_hz}
            data.attrs["env_args"] = json.dumps(settings)
            data.attrs["total"] = sum(item["rows"] for item in abouts)
            data.attrs[KEY] = json.dumps(head(contents))
            for number, episode in enumerate(self.read_parts(parts)):
                demo = data.create_group(f"demo_{number}")
                demo.attrs["num_samples"] = episode.rows
                demo.attrs[KEY] = json.dumps(abouts[number])
                _fill(demo, contents, episode)


def _fill(demo: Any, contents: Contents, episode: DataEpisode) -> None:
    for column in contents.columns:
        coding: dict[str, Any] = {}
        if column.image:  # one frame a chunk: training draws single frames
            coding = {"chunks": (1, *column.shape), "compression": "gzip", "compression_opts": 4, "shuffle": True}
        array = demo.create_dataset(f"obs/{to_key(column.name)}", data=episode.observations[column.name], **coding)
        _name(array, column)
    _name(demo.create_dataset("actions", data=episode.actions), contents.action)
    last = np.arange(episode.rows) == episode.rows - 1
    demo.create_dataset("dones", data=last.astype(np.int64))
    demo.create_dataset("rewards", data=(last & bool(episode.success)).astype(np.float64))
    if "stamps" in contents.extras:
        demo.create_dataset(STAMP, data=episode.stamps_ns)


def _name(array: Any, column: Column) -> None:
    if column.names:
        array.attrs["names"] = json.dumps(column.names)


def _recognises(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


FORMAT: Final = Format(
    recognises=_recognises,
    open=lambda path, task: RobomimicSource(path),
    writer=lambda contents, options: RobomimicWriter(contents),
)
