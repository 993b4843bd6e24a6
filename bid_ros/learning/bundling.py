"""Exports the checkpoints of a run to a policy bundle."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.task import Task
from bid_ros.learning.config import TrainConfig
from bid_ros.learning.consistency import valid_steps
from bid_ros.learning.families import (
    Networks,
    bundle_networks,
    bundle_settings,
    new_networks,
    sampled_as,
    sampled_by,
    write_graphs,
)
from bid_ros.learning.networks import PolicyNetworks
from bid_ros.learning.replacing import replaced
from bid_ros.learning.run_folder import RunFolder, command_line, source_commit
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import DIFFUSION, load_bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.normalise import LinearNormaliser


def export(
    run: str | Path,
    out: str | Path,
    task: Task,
    *,
    name: str = "",
    half: bool = True,
    weak: bool = True,
    tolerance: float = 1e-4,
    sampling_steps: int | None = None,
    temperature: float | None = None,
    also: Sequence[str | Path] = (),
) -> Bundle:
    """Write the bundle of a complete training run, after comparing its results with PyTorch.

    The new bundle is built and checked in a folder beside ``out``. Only then it replaces an old one. So a failure
    leaves the old one as it was.

    Args:
        run: folder of the training run.
        out: folder of the bundle. An old bundle is replaced; anything else is refused.
        task: task of the training.
        name: name of the bundle; default: name of its folder.
        half: store weights as float16. Graphs compute in float32 either way; the weights are rounded first, so the
            comparison with PyTorch is exact.
        weak: whether the weak policy goes into the bundle.
        tolerance: largest allowed difference between onnxruntime and PyTorch, normalised units; ten times that for a
            whole chunk.
        sampling_steps: network calls a sample of a diffusion policy; default: those of the run. Training does not
            depend on them.
        temperature: of the codes of VQ-BeT; default: that of the run.
        also: further runs of the family act, whose policies are candidates beside that of ``run``.

    Raises:
        BidError: the run is missing, damaged, incomplete, or of another task; or another run does not fit beside it.
        BundleError: ``out`` is not a bundle, a file is too large, or a graph differs from PyTorch.
    """
    folder, out = RunFolder(run), Path(out)
    about, config = folder.about(), folder.config()
    config = sampled_as(config, sampling_steps, temperature)
    if about["task_signature"] != task.signature():
        trained = about["task"]
        other = f"another version of task '{task.name}'" if trained == task.name else f"task '{trained}'"
        raise BidError(f"{run} was trained for {other}; valid is the task with the features and the rate of the run")
    paths = [Path(path).resolve() for path in (run, *also)]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise BidError(f"{twice} is given twice; valid are runs with other seeds, as two equal candidates are one")
    others = [_beside(RunFolder(path), about, config) for path in also]
    with replaced(out) as new:
        _write(folder, new, task, config, about, name or out.name, half, weak, tolerance, others)
    return load_bundle(out, task)


def _beside(folder: RunFolder, about: Mapping[str, Any], config: TrainConfig) -> RunFolder:
    """Return the folder of a run whose policy may be a candidate beside another. Raises BidError if it may not."""
    if config.family != "act":
        raise BidError(
            f"{folder.path} is given too, but the family {config.family} draws its own candidates; leave it out"
        )
    own = folder.about()
    for name in ("task_signature", "observation", "action"):
        if own[name] != about[name]:
            raise BidError(f"{folder.path} cannot be a candidate: its {name} differs; valid is a run on the same data")
    if folder.config().family != "act" or folder.config().action_reference != config.action_reference:
        raise BidError(
            f"{folder.path} cannot be a candidate; valid is a run of the family act with the same action_reference"
        )
    return folder


def export_again(
    bundle: Bundle,
    out: str | Path,
    task: Task,
    sampling_steps: int | None = None,
    temperature: float | None = None,
) -> Bundle:
    """Write a bundle anew, with the same weights and the graphs that this version writes.

    Args:
        bundle: which ``bid policy export`` wrote.
        out: folder of the new bundle; the old one's own is valid.
        task: task of the bundle.
        sampling_steps: network calls a sample of a diffusion policy; default: those of the bundle.
        temperature: of the codes of VQ-BeT; default: that of the bundle.

    Raises:
        BundleError: the bundle was not written by ``bid policy export``, ``out`` is not a bundle, a graph differs from
            PyTorch, or a student was not trained for so many steps.
    """
    sampling = sampled_by(bundle, sampling_steps, temperature)
    if bundle.family != DIFFUSION:
        return _copy(bundle, Path(out), task, sampling)
    if sampling_steps is not None:
        _check_levels(bundle, sampling_steps)
    provenance = {**bundle.provenance, "export_commit": source_commit(), "export_command": command_line()}
    return write_variant(bundle, out, task, bundle_networks(bundle, task), sampling, provenance)


def _copy(bundle: Bundle, out: Path, task: Task, sampling: Any) -> Bundle:
    """Write a bundle with the same graphs, sampled in another way."""
    strengths = {"strong": bundle.strong, "weak": bundle.weak}
    with replaced(out) as new:
        for files in strengths.values():
            for path in (files or {}).values():
                shutil.copy(path, new / path.name)
        _write_like(
            bundle,
            new,
            task,
            name=out.name,
            settings=sampling,
            graphs={
                strength: None if files is None else {role: path.name for role, path in files.items()}
                for strength, files in strengths.items()
            },
            provenance={**bundle.provenance, "export_commit": source_commit(), "export_command": command_line()},
            family=bundle.family,
            any_size=True,  # imported ones are large
            space=bundle.space,
        )
    return load_bundle(out, task)


def write_variant(
    bundle: Bundle,
    out: str | Path,
    task: Task,
    policies: Mapping[str, PolicyNetworks],
    sampling: DiffusionConfig,
    provenance: Mapping[str, Any],
) -> Bundle:
    """Write a bundle that differs from another one in graphs, sampling and provenance.

    Args:
        bundle: the other one.
        out: folder of the new bundle. An old bundle is replaced; anything else is refused.
        task: task of both.
        policies: networks by strength, ``strong`` and perhaps ``weak``.
        sampling: how they are sampled.
        provenance: of the new bundle. The differences to PyTorch are added.

    Raises:
        BundleError: ``out`` is not a bundle, or a graph differs from PyTorch.
    """
    out, half = Path(out), bundle.provenance.get("weights") != "float32"
    graphs: dict[str, dict[str, str] | None] = {"weak": None}
    differences = {}
    with replaced(out) as new:
        for strength, networks in policies.items():
            graphs[strength], differences[strength] = write_graphs(networks.eval(), new, task, sampling, strength, half)
        _share_equal(new, graphs)
        provenance = {**provenance, "difference_to_pytorch": differences}
        _write_like(bundle, new, task, name=out.name, settings=sampling, graphs=graphs, provenance=provenance)
    return load_bundle(out, task)


def _write_like(bundle: Bundle, folder: Path, task: Task, **others: Any) -> None:
    """Write a manifest with the normalisation of another bundle; ``others``: what is its own."""
    write_bundle_manifest(
        folder,
        task,
        observation=bundle.observation,
        action=bundle.action,
        action_spread=bundle.action_spread,
        action_reference=bundle.action_reference,
        action_weights=bundle.action_weights,
        **others,
    )


def _check_levels(bundle: Bundle, sampling_steps: int) -> None:
    """Raise BundleError if the steps of a student would meet noise levels that it was not trained for."""
    levels = bundle.provenance.get("distillation", {}).get("config", {}).get("levels")
    if bundle.settings.sampler == "consistency" and levels and levels % sampling_steps:
        raise BundleError(
            f"sampling_steps is {sampling_steps}; valid with the {levels} levels of this student: {valid_steps(levels)}"
        )


def _share_equal(out: Path, graphs: Mapping[str, dict[str, str] | None]) -> None:
    """Let the weak policy use those graphs of the strong one that are the same, such as an encoder that both use."""
    strong, weak = graphs["strong"], graphs["weak"]
    if strong is None or weak is None:
        return
    for role, name in weak.items():
        if (out / name).read_bytes() == (out / strong[role]).read_bytes():
            (out / name).unlink()
            weak[role] = strong[role]


def _trained(folder: RunFolder, strength: str, task: Task, config: TrainConfig) -> tuple[int, Networks]:
    """Return steps and networks of a run's policy. Raises BidError if they do not fit its configuration."""
    checkpoint, networks = folder.load(strength), new_networks(task, config)
    try:
        networks.load_state_dict(checkpoint["weights"])
    except (KeyError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise BidError(f"{folder.path / strength}.pt does not fit the run's configuration: {reason}") from error
    return int(checkpoint["step"]), networks.eval()


def _write(
    folder: RunFolder,
    out: Path,
    task: Task,
    config: TrainConfig,
    about: dict[str, Any],
    name: str,
    half: bool,
    weak: bool,
    tolerance: float,
    others: Sequence[RunFolder],
) -> None:
    graphs: dict[str, dict[str, str] | None] = {"weak": None}
    steps, differences = {}, {}
    for strength in ("strong", "weak") if weak and config.family != "act" else ("strong",):
        steps[f"steps_{strength}"], networks = _trained(folder, strength, task, config)
        graphs[strength], differences[strength] = write_graphs(
            networks, out, task, bundle_settings(config), strength, half, tolerance
        )
    for number, other in enumerate(others, 2):
        _, networks = _trained(other, "strong", task, other.config())
        roles, found = write_graphs(networks, out, task, None, "strong", half, tolerance, number)
        graphs["strong"] = {**(graphs["strong"] or {}), **roles}
        differences["strong"] |= found
    _share_equal(out, graphs)
    provenance = {
        "commit": about.get("commit", "unknown"),
        "export_commit": source_commit(),
        "data_sha256": about["data_sha256"],
        "data_episodes": about.get("data_episodes"),
        "seeds": [config.seed, *(other.config().seed for other in others)],
        **steps,
        "command": about.get("command", ""),
        "export_command": command_line(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "training": about["config"],
        "weights": "float16" if half else "float32",
        "torch": str(torch.__version__),
        "difference_to_pytorch": differences,
    }
    write_bundle_manifest(
        out,
        task,
        name=name,
        observation={key: LinearNormaliser(**value) for key, value in about["observation"].items()},
        action=LinearNormaliser(**about["action"]),
        action_spread=about["action_spread"],
        settings=bundle_settings(config, 1 + len(others)),
        graphs=graphs,
        provenance=provenance,
        action_reference=config.action_reference,
        family=config.family,
    )
