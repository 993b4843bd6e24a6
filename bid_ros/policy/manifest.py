"""Writes ``bundle.yaml``, the last step of an export."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import ArrayLike

from bid_ros.core.errors import BundleError
from bid_ros.core.schema import adapter_of
from bid_ros.core.task import Task
from bid_ros.policy.anchor import ActionReference
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import DIFFUSION, FAMILY, FORMAT, FORMAT_WITH_SPACE, MANIFEST, load_bundle, told_task
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.runtimes.engines import sha256_of
from bid_ros.policy.signature import SIGNATURE
from bid_ros.policy.spaces.config import Space

MAX_FILE_BYTES: Final = 10_000_000
MAX_BUNDLE_BYTES: Final = 20_000_000
# Fields of a family's section that older versions refuse: they are left out where they have their defaults.
LATER: Final = (
    *("beta_start", "beta_end", "kept_noise", "starts", "gradients", "most_samples", "integration"),
    *("simulated_delay", "roll_forward"),
)


def write_bundle_manifest(
    folder: str | Path,
    task: Task,
    *,
    name: str,
    observation: Mapping[str, LinearNormaliser],
    action: LinearNormaliser,
    action_spread: ArrayLike,
    settings: Any,
    graphs: Mapping[str, Mapping[str, str] | None],
    provenance: Mapping[str, Any],
    action_reference: ActionReference = "base",
    family: str = DIFFUSION,
    any_size: bool = False,
    space: Space | None = None,
    action_weights: Mapping[str, float] | None = None,
) -> Bundle:
    """Write ``bundle.yaml`` beside the files in ``folder``, with the hash of each; return the bundle as it is loaded.

    Args:
        folder: folder with the graphs. It holds nothing else.
        task: the task the policy was trained for.
        name: the bundle's name.
        observation: normaliser per vector feature; action: of the D action values. With a space they are those of the
            network's vectors and rows.
        action_spread: ``(D,)`` standard deviation of the actions in the training data, task units.
        settings: how the policy is sampled: a dataclass with the fields of the family's section.
        graphs: per strength (``strong``, ``weak``) the file names by their role in the family; weak may be None.
        provenance: plain values: commit, data_sha256, seeds, steps_strong, steps_weak, command, created.
        action_reference: where predicted positions count from, see :mod:`bid_ros.policy.anchor`.
        family: of policies.
        any_size: whether files may be larger than 10 MB, and all together than 20 MB, as those of others' policies are.
        space: what the network sees and predicts. None: the features and the action of the task.
        action_weights: factor of each action feature in the distances of decoders, by name. None: 1.

    Raises:
        BundleError: files are too large, or the bundle is not valid. No ``bundle.yaml`` is left then.
    """
    manifest = _cleared(Path(folder))
    described = _described(space, action_weights)
    content = {
        "format": FORMAT_WITH_SPACE if described else FORMAT,
        "name": name,
        **told_task(task),
        "normalisation": {
            "observation": {key: value.to_dict() for key, value in observation.items()},
            "action": action.to_dict(),
        },
        "action_reference": action_reference,
        "action_spread": np.asarray(action_spread, dtype=np.float64).tolist(),
        **({} if family == DIFFUSION else {FAMILY: family}),
        **described,
        family: _section(settings),
        "graphs": {strength: graphs.get(strength) for strength in ("strong", "weak")},
        "files": _hashes(manifest.parent, any_size),
        "provenance": dict(provenance),
    }
    manifest.write_text(yaml.safe_dump(content, sort_keys=False))
    return _loaded(manifest, task)


def _cleared(folder: Path) -> Path:
    """Return the path of a manifest to write. An earlier one is removed, and its signature with it."""
    for name in (MANIFEST, SIGNATURE):
        (folder / name).unlink(missing_ok=True)
    return folder / MANIFEST


def _loaded(manifest: Path, task: Task) -> Bundle:
    """Return the bundle of a manifest, which is removed if it is not valid."""
    try:
        return load_bundle(manifest.parent, task)
    except BundleError:
        manifest.unlink()
        raise


def _described(space: Space | None, action_weights: Mapping[str, float] | None) -> dict[str, Any]:
    """Return the fields that only the later format has."""
    described: dict[str, Any] = {} if space is None else {"space": written(space)}
    if action_weights:
        described["action_weights"] = dict(action_weights)
    return described


def _section(settings: Any) -> dict[str, Any]:
    changed = written(settings)
    return {name: value for name, value in asdict(settings).items() if name not in LATER or name in changed}


def written(settings: Any) -> dict[str, Any]:
    """Return settings as plain values for a file, without the fields that have their default."""
    plain: dict[str, Any] = adapter_of(type(settings)).dump_python(settings, mode="json", exclude_defaults=True)
    return plain


def _hashes(folder: Path, any_size: bool) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    if not any_size:
        _check_sizes(folder, files)
    return {path.name: sha256_of(path) for path in files}


def _check_sizes(folder: Path, files: list[Path]) -> None:
    for path in files:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BundleError(
                f"{path} has {path.stat().st_size / 1e6:.1f} MB; valid is up to {MAX_FILE_BYTES / 1e6:.0f} MB"
            )
    total = sum(path.stat().st_size for path in files)
    if total > MAX_BUNDLE_BYTES:
        raise BundleError(f"bundle {folder} has {total / 1e6:.1f} MB; valid is up to {MAX_BUNDLE_BYTES / 1e6:.0f} MB")
