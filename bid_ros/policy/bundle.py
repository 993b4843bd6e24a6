"""Policy bundles: a folder with ``bundle.yaml`` and the ONNX graphs it names, checked before anything moves.

``bundle.yaml`` names the sha256 of every other file, so its own hash identifies the whole bundle. All of its fields:
``docs/reference/bundles.md``.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import load_yaml, parse_settings, read_yaml, settings
from bid_ros.core.task import Task
from bid_ros.policy.anchor import ActionReference
from bid_ros.policy.base import Bundle, PolicyFamily
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.registry import FAMILIES
from bid_ros.policy.runtimes.engines import sha256_of
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.policy import rows_of
from bid_ros.policy.spaces.view import NetworkTask, network_task

FORMAT: Final = 1
FORMAT_WITH_SPACE: Final = 2  # the first that knows the fields SPACED
SPACED: Final = ("space", "action_weights")
DIFFUSION: Final = "diffusion"  # the family of bundles that name none
Numbers = tuple[float, ...]
Roles = dict[str, str]
MANIFEST: Final = "bundle.yaml"
FAMILY: Final = "family"


@settings(error=BundleError)
class Range:
    """What is mapped to [-1, 1].

    Attributes:
        minimum, maximum: a number for each value; of the actions also a list of those for each row of a chunk.
    """

    minimum: Numbers | tuple[Numbers, ...]
    maximum: Numbers | tuple[Numbers, ...]


@settings(error=BundleError)
class Normalisation:
    """Ranges of the training data, in the units of the task, or of the space if there is one.

    Attributes:
        observation: of each vector feature, by its name; with a space, of each vector of the network.
        action: of an action; with a space, of a row that the network predicts.
    """

    observation: dict[str, Range]
    action: Range


@settings(error=BundleError)
class GraphFiles:
    """Names of the files of the graphs, by their role in the family.

    Attributes:
        strong: graphs of the policy.
        weak: graphs of the early checkpoint; null: there is none.
    """

    strong: Roles
    weak: Roles | None


@settings(error=BundleError)
class Manifest:
    """What ``bundle.yaml`` says beside the section of the policy's family.

    Attributes:
        format: format of the file.
        name: name of the bundle.
        task: name of the task that it was made for.
        task_signature: hash of all in this task on which a policy depends.
        observation_steps, horizon: of this task.
        action_dim: number of values of an action of this task.
        normalisation: ranges of the training data.
        action_spread: standard deviation of each action value in the training data, task units.
        graphs: names of the files of the networks.
        files: sha256 of every other file in the folder, hexadecimal.
        provenance: where the bundle comes from, for people.
        action_reference: what predicted positions are relative to: the base frame or the tool. A space says it itself.
        family: name of the policy family.
        space: what the network sees and predicts; format 2.
        action_weights: factor of each action feature in the distances of decoders; format 2.
    """

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT_WITH_SPACE)]
    name: str
    task: str
    task_signature: str
    observation_steps: int
    horizon: int
    action_dim: int
    normalisation: Normalisation
    action_spread: tuple[Annotated[float, Field(ge=0)], ...]
    graphs: GraphFiles
    files: Roles
    provenance: dict[str, Any]
    action_reference: ActionReference = "base"
    family: str = DIFFUSION
    space: Space | None = None
    action_weights: dict[str, Annotated[float, Field(ge=0)]] | None = None

    def __post_init__(self) -> None:
        for name in SPACED:
            if self.format < FORMAT_WITH_SPACE and getattr(self, name):
                raise BundleError(f"format is {self.format}, which has no '{name}'; valid is {FORMAT_WITH_SPACE}")
        if self.space is not None and self.action_reference != "base":
            raise BundleError(
                f"action_reference is '{self.action_reference}' beside a space; valid is base, and a reference in the "
                "parts of space.action"
            )


def bundle_sha256(folder: str | Path) -> str:
    """Return the hash that identifies the bundle in ``folder``: that of its ``bundle.yaml``.

    Raises:
        BundleError: if the folder or the file is missing.
    """
    return hashlib.sha256(_read_manifest(Path(folder))).hexdigest()


def bundled_task(folder: str | Path) -> str:
    """Return the name of the task that a bundle says it is of. What else is wrong is said when it is loaded.

    Raises:
        BundleError: no ``bundle.yaml`` names a task, or it is not YAML.
    """
    content = read_yaml(Path(folder) / MANIFEST, "policy manifest", BundleError)
    if not isinstance(content, dict) or "task" not in content:
        raise BundleError(f"{folder}: {MANIFEST} names no task; valid is a policy bundle")
    return str(content["task"])


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
    text = _read_manifest(folder)
    try:
        data, family, chosen = _parse(text)
        _check_task(data, task)
        _check_files(folder, data.files)
        if data.space is not None:
            rows_of(data.space, task)  # raises if they end before the task's
        view = task if data.space is None else network_task(data.space, task)
        weights = data.action_weights or {}
        _check_weights(weights, task)
        observation, action = _normalisers(data.normalisation, view)
        if len(data.action_spread) != task.action_dim:
            raise BundleError(f"action_spread has {len(data.action_spread)} numbers; valid are {task.action_dim}")
        weak = data.graphs.weak
        return Bundle(
            path=folder,
            name=data.name,
            sha256=hashlib.sha256(text).hexdigest(),
            family=family.name,
            settings=chosen,
            observation=observation,
            action=action,
            action_reference=data.action_reference,
            action_spread=np.array(data.action_spread),
            strong=_graph_files(folder, data.graphs.strong, "strong", data.files, family),
            weak=None if weak is None else _graph_files(folder, weak, "weak", data.files, family),
            provenance=data.provenance,
            space=data.space,
            action_weights=weights,
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


def _parse(text: bytes) -> tuple[Manifest, PolicyFamily, Any]:
    """Return the manifest, the family of its policy, and the settings in the family's section."""
    try:
        content = load_yaml(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BundleError(f"{MANIFEST} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise BundleError(f"{MANIFEST} is {content!r}; valid is a mapping of fields")
    family = FAMILIES.find(str(content.get(FAMILY, DIFFUSION)))
    if family.name not in content:
        raise BundleError(f"{MANIFEST}: the field '{family.name}' is missing")
    section = content.pop(family.name)
    return parse_settings(Manifest, content, MANIFEST), family, family.settings(section)


def told_task(task: Task) -> dict[str, Any]:
    """Return what a bundle says of its task."""
    return {
        "task": task.name,
        "task_signature": task.signature(),
        "observation_steps": task.observation_steps,
        "horizon": task.horizon,
        "action_dim": task.action_dim,
    }


def _check_task(data: Manifest, task: Task) -> None:
    """Names first and the signature last, so that the message says which part differs."""
    said = told_task(task)
    signature = said.pop("task_signature")
    for name, valid in said.items():
        if (bundled := getattr(data, name)) != valid:
            raise BundleError(f"was made for another task: {name} is {bundled!r}, the task file says {valid!r}")
    if data.task_signature != signature:
        raise BundleError(
            f"was made for another version of task '{task.name}': its rate, or a feature's name, kind, shape, frame or "
            "rate has changed since"
        )


def _check_weights(weights: Mapping[str, float], task: Task) -> None:
    valid = [item.name for item in task.action]
    for name in weights:
        if name not in valid:
            raise BundleError(f"action_weights names '{name}'; valid are the task's {', '.join(valid)}")
    if weights and not any(weights.get(name, 1.0) for name in valid):
        raise BundleError("action_weights are all 0; valid is one or more above 0")


def _check_files(folder: Path, hashes: Mapping[str, str]) -> None:
    for name, expected in hashes.items():
        if Path(name).name != name:
            raise BundleError(f"files names '{name}'; valid is the name of a file in the bundle's folder")
        if not (folder / name).is_file():
            raise BundleError(f"file {name} is missing")
        actual = sha256_of(folder / name)
        if actual != expected:
            raise BundleError(f"file {name} is damaged or was replaced: its sha256 is {actual}, valid is {expected}")


def _normalisers(data: Normalisation, task: Task) -> tuple[dict[str, LinearNormaliser], LinearNormaliser]:
    shapes = {feature.name: (feature.size,) for feature in task.vectors}
    if data.observation.keys() != shapes.keys():
        owner = "network" if isinstance(task, NetworkTask) else "task"
        raise BundleError(
            f"normalisation.observation has {', '.join(data.observation)}; the {owner}'s vectors are "
            f"{', '.join(shapes)}"
        )
    observation = {name: _normaliser(data.observation[name], name, shape) for name, shape in shapes.items()}
    return observation, _normaliser(data.action, "action", (task.action_dim,), (task.horizon, task.action_dim))


def _normaliser(data: Range, name: str, *shapes: tuple[int, ...]) -> LinearNormaliser:
    try:
        return LinearNormaliser(_array(data.minimum, "minimum", shapes), _array(data.maximum, "maximum", shapes))
    except BundleError as error:
        raise BundleError(f"normalisation of '{name}': {error}") from error


def _array(values: Numbers | tuple[Numbers, ...], end: str, shapes: tuple[tuple[int, ...], ...]) -> NDArray[np.float64]:
    sizes = {len(row) if isinstance(row, tuple) else None for row in values}  # one, unless the rows differ
    if len(sizes) > 1 or np.shape(values) not in shapes:
        found = np.shape(values) if len(sizes) == 1 else f"rows of {', '.join(map(str, sizes))}"
        raise BundleError(f"{end} has the shape {found}; valid is {' or '.join(map(str, shapes))}")
    return np.array(values, dtype=np.float64)


def _graph_files(
    folder: Path, names: Mapping[str, str], strength: str, files: Mapping[str, str], family: PolicyFamily
) -> Mapping[str, Path]:
    if not set(family.roles) <= set(names) <= {*family.roles, *family.optional}:
        further = f", and {', '.join(family.optional)} if there is one" if family.optional else ""
        raise BundleError(f"graphs.{strength} has {', '.join(names)}; valid are {', '.join(family.roles)}{further}")
    for role, name in names.items():
        if name not in files:
            raise BundleError(f"graphs.{strength}.{role} is '{name}'; valid is one of the files it has hashes of")
    return {role: folder / name for role, name in names.items()}
