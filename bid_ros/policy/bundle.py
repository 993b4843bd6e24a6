"""Policy bundles: a folder with ``bundle.yaml`` and the ONNX graphs it names, checked before anything moves.

``bundle.yaml`` names the sha256 of every other file, so its own hash identifies the whole bundle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import numpy as np
import yaml
from numpy.typing import NDArray

from bid_ros.errors import BundleError
from bid_ros.policy.anchor import ACTION_REFERENCES, ActionReference
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.sampler import DiffusionConfig
from bid_ros.task import Task

FORMAT: Final = 1
MANIFEST: Final = "bundle.yaml"
STRENGTHS: Final = ("strong", "weak")
FIELDS: Final = (
    "format",
    "name",
    "task",
    "task_signature",
    "observation_steps",
    "horizon",
    "action_dim",
    "normalisation",
    "action_spread",
    "diffusion",
    "graphs",
    "files",
    "provenance",
)
REFERENCE: Final = "action_reference"  # the one field that may be left out


@dataclass(frozen=True)
class GraphFiles:
    """The two ONNX files of one policy; their inputs and outputs are described in :mod:`bid_ros.policy.policy`."""

    encoder: Path
    denoiser: Path


@dataclass(frozen=True, eq=False)
class Bundle:
    """A checked bundle. Build it with :func:`load_bundle`.

    Attributes:
        path: its folder.
        name: its own name.
        sha256: hash of ``bundle.yaml``, hexadecimal.
        observation: normaliser per vector feature of the task.
        action: normaliser of the D action values, counted from ``action_reference``.
        action_reference: where predicted positions count from, see :mod:`bid_ros.policy.anchor`.
        action_spread: ``(D,)`` standard deviation of the actions in the training data, task units.
        diffusion: how to sample.
        strong: graphs of the policy.
        weak: graphs of the early checkpoint, None if there is none.
        provenance: where it comes from (commit, data, seeds, steps); for people, nothing is read from it.
    """

    path: Path
    name: str
    sha256: str
    observation: Mapping[str, LinearNormaliser]
    action: LinearNormaliser
    action_reference: ActionReference
    action_spread: NDArray[np.float64]
    diffusion: DiffusionConfig
    strong: GraphFiles
    weak: GraphFiles | None
    provenance: Mapping[str, Any]


def bundle_sha256(folder: str | Path) -> str:
    """Return the hash that identifies the bundle in ``folder``: that of its ``bundle.yaml``.

    Raises:
        BundleError: if the folder or the file is missing.
    """
    return hashlib.sha256(_read_manifest(Path(folder))).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the hash of a file's content, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load_bundle(path: str | Path, task: Task) -> Bundle:
    """Read a bundle and hold it against its own hashes and the task it is to be used for.

    Args:
        path: the bundle's folder.
        task: the task file in use. Its limits may differ from those in training, what is observed and commanded
            may not.

    Raises:
        BundleError: if the bundle is missing, a file of it is missing or damaged, a field is unknown, missing or
            impossible, or it was made for another task.
    """
    folder = Path(path)
    manifest = _read_manifest(folder)
    try:
        data = _fields(manifest)
        _check_task(data, task)
        files = _check_files(folder, data["files"])
        observation, action = _normalisers(data["normalisation"], task)
        graphs = _mapping(data["graphs"], "graphs", STRENGTHS)
        strong = _graph_files(folder, graphs["strong"], "strong", files)
        return Bundle(
            path=folder,
            name=data["name"],
            sha256=hashlib.sha256(manifest).hexdigest(),
            observation=observation,
            action=action,
            action_reference=_reference(data.get(REFERENCE, "base")),
            action_spread=_spread(data["action_spread"], task.action_dim),
            diffusion=_diffusion(data["diffusion"]),
            strong=strong,
            weak=None if graphs["weak"] is None else _graph_files(folder, graphs["weak"], "weak", files),
            provenance=_mapping(data["provenance"], "provenance"),
        )
    except BundleError as error:
        raise BundleError(f"bundle {folder}: {error}") from error


def _read_manifest(folder: Path) -> bytes:
    if not folder.is_dir():
        raise BundleError(f"bundle folder {folder} does not exist")
    try:
        return (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise BundleError(f"bundle {folder} has no readable {MANIFEST}: {error.strerror}") from error


def _fields(manifest: bytes) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(manifest)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BundleError(f"{MANIFEST} is not valid YAML: {' '.join(str(error).split())}") from error
    version = content.get("format", FORMAT) if isinstance(content, dict) else FORMAT
    if type(version) is not int or version != FORMAT:
        raise BundleError(f"format is {version!r}; this version of bid_ros reads format {FORMAT}")
    names = (*FIELDS, REFERENCE) if isinstance(content, dict) and REFERENCE in content else FIELDS
    data = _mapping(content, MANIFEST, names)
    if not isinstance(data["name"], str):
        raise BundleError(f"name is {data['name']!r}; valid is a text")
    return data


def _check_task(data: Mapping[str, Any], task: Task) -> None:
    """Names first and the signature last, so that the message says which part differs."""
    for name, bundled, valid in (
        ("task", data["task"], task.name),
        ("observation_steps", data["observation_steps"], task.observation_steps),
        ("horizon", data["horizon"], task.horizon),
        ("action_dim", data["action_dim"], task.action_dim),
    ):
        if bundled != valid:
            raise BundleError(f"was made for another task: {name} is {bundled!r}, the task file says {valid!r}")
    if data["task_signature"] != task.signature():
        raise BundleError(
            f"was made for another version of task '{task.name}': its rate, or a feature's name, kind, shape, frame or "
            "rate has changed since"
        )


def _check_files(folder: Path, hashes: object) -> frozenset[str]:
    for name, expected in _mapping(hashes, "files").items():
        if not isinstance(name, str) or Path(name).name != name:
            raise BundleError(f"files names {name!r}; valid is the name of a file in the bundle's folder")
        if not (folder / name).is_file():
            raise BundleError(f"file {name} is missing")
        actual = file_sha256(folder / name)
        if actual != expected:
            raise BundleError(
                f"file {name} is damaged or was replaced: its sha256 is {actual}, it should be {expected}"
            )
    return frozenset(_mapping(hashes, "files"))


def _normalisers(content: object, task: Task) -> tuple[dict[str, LinearNormaliser], LinearNormaliser]:
    data = _mapping(content, "normalisation", ("observation", "action"))
    sizes = {feature.name: feature.size for feature in task.vectors}
    ranges = _mapping(data["observation"], "normalisation.observation", tuple(sizes))
    observation = {name: _normaliser(ranges[name], name, size) for name, size in sizes.items()}
    return observation, _normaliser(data["action"], "action", task.action_dim, task.horizon)


def _normaliser(content: object, name: str, size: int, rows: int = 0) -> LinearNormaliser:
    """With ``rows``, a list of so many lists of numbers is valid too: a range for each row of a chunk."""
    data = _mapping(content, f"normalisation of '{name}'", ("minimum", "maximum"))
    low, high = (_range(data[key], f"normalisation of '{name}': {key}", size, rows) for key in ("minimum", "maximum"))
    try:
        return LinearNormaliser(low, high)
    except BundleError as error:
        raise BundleError(f"'{name}': {error}") from error


def _range(content: object, where: str, size: int, rows: int) -> NDArray[np.float64]:
    if rows and isinstance(content, list) and len(content) == rows and all(isinstance(row, list) for row in content):
        return np.stack([_numbers(row, f"{where}, row {index}", size) for index, row in enumerate(content)])
    return _numbers(content, where, size)


def _spread(content: object, size: int) -> NDArray[np.float64]:
    spread = _numbers(content, "action_spread", size)
    if not (np.isfinite(spread).all() and (spread >= 0).all()):
        raise BundleError(f"action_spread is {spread.tolist()}; valid are finite numbers of at least 0")
    return spread


def _reference(content: object) -> ActionReference:
    if content not in ACTION_REFERENCES:
        raise BundleError(f"{REFERENCE} is {content!r}; valid are {', '.join(ACTION_REFERENCES)}")
    return cast(ActionReference, content)


def _diffusion(content: object) -> DiffusionConfig:
    """Every field must be said except those that do not come from training; the values judge themselves."""
    optional = {"spacing", "renoise_strength"}
    data = _mapping(content, "diffusion")
    names = tuple(item.name for item in fields(DiffusionConfig) if item.name not in optional or item.name in data)
    _mapping(content, "diffusion", names)
    for key in {"clip", "renoise_strength"} & set(data):
        if isinstance(data[key], bool) or not isinstance(data[key], int | float):
            raise BundleError(f"diffusion: {key} is {data[key]!r}; valid is a number")
    return DiffusionConfig(**data)


def _graph_files(folder: Path, content: object, strength: str, files: Iterable[str]) -> GraphFiles:
    data = _mapping(content, f"graphs.{strength}", ("encoder", "denoiser"))
    for part, name in data.items():
        if not isinstance(name, str) or name not in files:
            raise BundleError(f"graphs.{strength}.{part} is {name!r}; valid is one of the files it has hashes of")
    return GraphFiles(folder / data["encoder"], folder / data["denoiser"])


def _mapping(content: object, where: str, names: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    """Return ``content`` if it is a mapping with exactly the fields ``names`` (None: any)."""
    if not isinstance(content, dict):
        raise BundleError(f"{where} is {type(content).__name__}; valid is a mapping of fields")
    if names is not None and set(content) != set(names):
        _complain(content, where, names)
    return content


def _complain(content: Mapping[Any, Any], where: str, names: tuple[str, ...]) -> NoReturn:
    unknown = [key for key in content if key not in names]
    if unknown:
        raise BundleError(f"{where} has the unknown field '{unknown[0]}'; valid are {', '.join(names)}")
    raise BundleError(f"{where} lacks the field '{next(name for name in names if name not in content)}'")


def _numbers(content: object, where: str, size: int) -> NDArray[np.float64]:
    values = content if isinstance(content, list) else []
    if len(values) != size or any(isinstance(item, bool) or not isinstance(item, int | float) for item in values):
        raise BundleError(f"{where} is {content!r}; valid is a list of {size} numbers")
    return np.array(values, dtype=np.float64)
