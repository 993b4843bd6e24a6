"""A folder that LeRobot saved a policy to, versions 0.1 to 0.6: configuration, weights, statistics.

Up to 0.3.3 the statistics are among the weights. From 0.4.0 on they are in files of their own, beside descriptions of
what happens to observations and actions before and after the network.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.core.hub import fetch_hint
from bid_ros.importing.policy import NetworkFeature, network_feature
from bid_ros.importing.tensors import COMPILED, read_safetensors

if TYPE_CHECKING:
    import torch

CONFIG: Final = "config.json"
WEIGHTS: Final = "model.safetensors"
MODEL: Final = "pretrained_model"
PROCESSORS: Final = {
    "policy_preprocessor.json": "normalizer_processor",
    "policy_postprocessor.json": "unnormalizer_processor",
}
# Steps that change no number, or that the network's graphs contain.
IGNORED_STEPS: Final = (
    "rename_observations_processor",
    "to_batch_processor",
    "device_processor",
    "tokenizer_processor",
)
BUFFERS: Final = ("normalize_inputs.buffer_", "normalize_targets.buffer_", "unnormalize_outputs.buffer_")
STATISTICS: Final = ("min", "max", "mean", "std")  # that weights of old versions hold
STATE, ENVIRONMENT, ACTION = "observation.state", "observation.environment_state", "action"
Statistics = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class PolicyFolder:
    """What is in the folder. Build it with :func:`read_folder`.

    Attributes:
        path: the folder.
        config: content of ``config.json``.
        tensors: weights of the network by name.
        inputs: observed features in the order of the configuration, images as height, width, 3.
        types: type of each feature, such as VISUAL.
        action_dim: D.
        statistics: of each normalised feature, by name.
        normalisation: how each type is normalised.
        statistics_files: files of the statistics, by file of a processor; empty where they are among the weights.
    """

    path: Path
    config: Mapping[str, Any]
    tensors: "Mapping[str, torch.Tensor]"
    inputs: tuple[NetworkFeature, ...]
    types: Mapping[str, str]
    action_dim: int
    statistics: Mapping[str, Statistics]
    normalisation: Mapping[str, str]
    statistics_files: Mapping[str, str]

    @property
    def cameras(self) -> tuple[NetworkFeature, ...]:
        """Images, in the order in which the network has them."""
        return tuple(item for item in self.inputs if self.types[item.name] == "VISUAL")

    def vector(self, name: str) -> NetworkFeature | None:
        """Return the state or environment state. None: the policy has none."""
        return next((item for item in self.inputs if item.name == name), None)

    def statistics_place(self, name: str) -> str:
        """Return the file that should hold a feature's statistics, and the feature, for errors."""
        if self.statistics_files:
            place = str(self.path / self.statistics_files[list(PROCESSORS)[name == ACTION]])
        else:
            place = f"{self.path / WEIGHTS} (for there is no {next(iter(PROCESSORS))})"
        return f"{place}: '{name}'"

    def mode(self, name: str) -> str:
        """Return how a feature is normalised. A type that is not named is not normalised."""
        return str(self.normalisation.get(self.types[name], "IDENTITY"))


def read_folder(path: str | Path) -> PolicyFolder:
    """Read a policy's folder, or the ``pretrained_model`` in a folder of a training's checkpoint.

    Raises:
        BidError: a file is missing or damaged, or of a form that no known version wrote.
    """
    folder = policy_folder(path)
    config = read_json(folder / CONFIG)
    inputs, types = _inputs(folder / CONFIG, config)
    output = _features(folder / CONFIG, config, "output_features").get(ACTION, {})
    shape = output.get("shape")
    action = network_feature(ACTION, shape, image=False)
    if action is None:
        raise BidError(f"{folder / CONFIG}: output_features.action has shape {shape!r}; valid is [D], a vector")
    tensors = {name.replace(COMPILED, ""): value for name, value in read_safetensors(folder / WEIGHTS).items()}
    names = [item.name for item in inputs] + [ACTION]
    processed = (folder / next(iter(PROCESSORS))).is_file()
    normalisation: Mapping[str, str] = _mapping(
        folder / CONFIG, "normalization_mapping", config.get("normalization_mapping", {})
    )
    statistics_files: Mapping[str, str] = {}
    if processed:
        statistics, normalisation, statistics_files = _processor_statistics(folder, normalisation)
    else:
        statistics = _buffer_statistics(tensors, names)
    return PolicyFolder(
        path=folder,
        config=config,
        tensors={name: value for name, value in tensors.items() if not name.startswith(BUFFERS)},
        inputs=inputs,
        types={**types, ACTION: "ACTION"},
        action_dim=action.shape[0],
        statistics=statistics,
        normalisation=normalisation,
        statistics_files=statistics_files,
    )


def policy_folder(path: str | Path) -> Path:
    """Return the folder with the policy: the one that is named, or its ``pretrained_model``.

    Raises:
        BidError: there is no such folder, or it is one of a whole training, which holds several policies.
    """
    folder = Path(path)
    if not folder.is_dir():
        said = f"{path} is no folder; valid is one on this computer that LeRobot saved a policy to"
        raise BidError(f"{said}{fetch_hint(path)}")
    if (folder / CONFIG).is_file():
        return folder
    if (folder / MODEL / CONFIG).is_file():
        return folder / MODEL
    inside = folder / "checkpoints" if (folder / "checkpoints").is_dir() else folder
    found = {item.name: item for item in inside.iterdir() if (item / MODEL / CONFIG).is_file()}
    found |= {item.name: item for item in inside.glob("*.ckpt")}
    newest = next((name for name in ("last", "latest.ckpt") if name in found), max(found, default=""))
    if newest:
        others = f", or {', '.join(sorted(found.keys() - {newest}))} beside it" if len(found) > 1 else ""
        raise BidError(f"{folder} is the folder of a training; valid is a checkpoint in it: {found[newest]}{others}")
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file's mapping. Raises BidError if it is missing or not one."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        raise BidError(f"{path} does not exist; valid is a file that LeRobot's save_pretrained wrote") from None
    except (OSError, ValueError) as error:
        raise BidError(f"{path} cannot be read as JSON: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise BidError(f"{path} holds {type(content).__name__}; valid is a mapping of fields")
    return content


def _mapping(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BidError(f"{path}: {name} is {value!r}; valid is a mapping")
    return value


def _features(path: Path, config: Mapping[str, Any], group: str) -> dict[str, Any]:
    features = config.get(group)
    if not isinstance(features, dict) or not all(isinstance(item, dict) for item in features.values()):
        raise BidError(f"{path} has no mapping '{group}'; valid is a policy that LeRobot from 2025 on saved")
    return features


def _inputs(path: Path, config: Mapping[str, Any]) -> tuple[tuple[NetworkFeature, ...], dict[str, str]]:
    items, types = [], {}
    for name, feature in _features(path, config, "input_features").items():
        kind, shape = str(feature.get("type")), feature.get("shape")
        item = network_feature(name, shape, kind == "VISUAL")
        if item is None:
            valid = "[3, height, width]" if kind == "VISUAL" else "[size]"
            raise BidError(f"{path}: input_features.{name} of type {kind} has shape {shape!r}; valid is {valid}")
        items.append(item)
        types[name] = kind
    return tuple(items), types


def _processor_statistics(
    folder: Path, normalisation: Mapping[str, str]
) -> tuple[dict[str, Statistics], Mapping[str, str], dict[str, str]]:
    """Return statistics, how types are normalised, and files; of actions those of the step behind the network."""
    found: dict[str, Statistics] = {}
    statistics_files: dict[str, str] = {}
    for name, wanted in PROCESSORS.items():
        path = folder / name
        steps = read_json(path).get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise BidError(f"{path} has no list 'steps'; valid is a file that LeRobot from 0.4.0 on saved")
        step = _only_step(path, steps, wanted)
        settings = _mapping(path, f"config of {wanted}", step.get("config", {}))
        normalisation = _mapping(path, f"norm_map of {wanted}", settings.get("norm_map", normalisation))
        if settings.get("normalize_observation_keys") is not None:
            raise BidError(f"{path}: {wanted} has normalize_observation_keys; valid is null, all of them")
        state = step.get("state_file")
        if not isinstance(state, str) or Path(state).name != state:
            raise BidError(f"{path}: {wanted} has the state_file {state!r}; valid is the name of a file beside it")
        statistics_files[name] = state
        found |= _grouped(read_safetensors(folder / state))
    return found, normalisation, statistics_files


def _only_step(path: Path, steps: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    steps = [step for step in steps if (step.get("config") or {}).get("enabled") is not False]  # it changes nothing
    names = [str(step.get("registry_name", step.get("class"))) for step in steps]
    for name in names:
        if name != wanted and name not in IGNORED_STEPS:
            raise BidError(f"{path} has the step '{name}'; valid are {', '.join((wanted, *IGNORED_STEPS))}")
    if names.count(wanted) != 1:
        raise BidError(f"{path} has the step '{wanted}' {names.count(wanted)} times; valid is once")
    return steps[names.index(wanted)]


def _grouped(tensors: "Mapping[str, torch.Tensor]") -> dict[str, Statistics]:
    """Split names at the last dot: ``observation.state.min``."""
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for name, value in tensors.items():
        feature, _, statistic = name.rpartition(".")
        found.setdefault(feature, {})[statistic] = value.double().numpy()
    return dict(found)


def _buffer_statistics(tensors: "Mapping[str, torch.Tensor]", names: list[str]) -> dict[str, Statistics]:
    """Look each feature up. The way back from ``observation_state`` to a name would be ambiguous."""
    found: dict[str, Statistics] = {}
    for name in names:
        group = "unnormalize_outputs" if name == ACTION else "normalize_inputs"
        prefix = f"{group}.buffer_{name.replace('.', '_')}."
        own = {item: tensors[prefix + item].double().numpy() for item in STATISTICS if prefix + item in tensors}
        if own:
            found[name] = own
    return found
