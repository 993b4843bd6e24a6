"""Writes an imported policy as a bundle: its ONNX graphs, compared with PyTorch, and what describes it.

The contract of the graphs: :mod:`bid_ros.policy.diffusion.policy`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.task import Task
from bid_ros.importing.matching import space_for
from bid_ros.importing.networks.observation import ObservationNetwork
from bid_ros.importing.policy import GraphExample, ImportedPolicy, check_same
from bid_ros.learning.graphs import FunctionGraph, SamplerGraph, export_graph
from bid_ros.learning.replacing import check_replaceable, replaced
from bid_ros.learning.run_folder import command_line
from bid_ros.policy.act.settings import MOST_MEMBERS, ActSettings, member_role
from bid_ros.policy.base import Bundle
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.runtimes.registry import build_runtime
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.view import task_spread

TOLERANCE: Final = 1e-4  # of a network's output; relative where it is larger than 1
MOST_CALLS_OF_ONE_GRAPH: Final = 8  # more take long to compile
POINTS: Final = "points"
LARGEST: Final = 2_000_000_000  # bytes of a file of ONNX


def write_imported(
    strong: ImportedPolicy,
    weak: ImportedPolicy | None,
    out: str | Path,
    task: Task,
    space: Space | None = None,
    also: Sequence[ImportedPolicy] = (),
) -> Bundle:
    """Write a bundle beside ``out``, compare it with PyTorch, and put it in place of an old one.

    Args:
        strong: the policy.
        weak: an earlier checkpoint of the same training. None: the bundle has no weak policy.
        out: folder of the bundle, which is named after it. An old bundle is replaced; anything else is refused.
        task: it will be used for.
        space: which columns of the network are what; None: as the task's section ``data`` says.
        also: further checkpoints of a policy that draws nothing, to choose among.

    Raises:
        BidError: the policy does not fit the task, the weak one is of another training, another checkpoint does not
            fit beside it, or two of them have the same weights.
        BundleError: ``out`` is not a bundle, or a graph differs from PyTorch.
    """
    folder = Path(out)
    check_replaceable(folder)
    space = space_for(strong, task, space)
    centre = (strong.action.maximum + strong.action.minimum) / 2
    settings = _settings(strong, weak, also)
    _check_different([strong, *(() if weak is None else (weak,)), *also])
    graphs: dict[str, dict[str, str] | None] = {"weak": None}
    differences: dict[str, dict[str, float]] = {}
    with replaced(folder) as new:
        for strength, policies in (("strong", (strong, *also)), ("weak", () if weak is None else (weak,))):
            for number, policy in enumerate(policies, 1):
                roles, found = write_graphs(policy, new, strength, number)
                graphs[strength] = {**(graphs.get(strength) or {}), **roles}
                differences[strength] = {**differences.get(strength, {}), **found}
        write_bundle_manifest(
            new,
            task,
            name=folder.name,
            observation=strong.observation,
            action=strong.action,
            action_spread=task_spread(space, task, centre, strong.action_spread),
            settings=settings,
            family=strong.family,
            graphs=graphs,
            provenance=_provenance(strong, weak, differences, also),
            any_size=True,
            space=space,
        )
    return load_bundle(folder, task)


def _settings(strong: ImportedPolicy, weak: ImportedPolicy | None, also: Sequence[ImportedPolicy]) -> Any:
    """Return the settings of the bundle. Raises BidError if the other policies do not fit the strong one."""
    settings = strong.settings
    if not isinstance(settings, ActSettings):
        if also:
            raise BidError(
                f"{strong.source} draws its own candidates, so no other checkpoint can be one; valid with a policy of "
                f"type {strong.kind} is --weak, an earlier checkpoint to tell bad samples by"
            )
        if weak is not None:
            check_same(strong, weak)
        return settings
    if weak is not None:
        raise BidError(
            f"{strong.source} draws no samples, so a weak policy has none to contrast them with; valid is --also "
            f"{weak.source}, which makes the earlier checkpoint a candidate"
        )
    for other in also:
        check_same(strong, other, "is no candidate beside")
    if 1 + len(also) > MOST_MEMBERS:
        raise BidError(f"--also names {len(also)} checkpoints; valid are up to {MOST_MEMBERS - 1}")
    return replace(settings, members=1 + len(also))


def _check_different(policies: Sequence[ImportedPolicy]) -> None:
    """Raise BidError if two policies are one: a decoder cannot choose between them, nor tell bad samples by one."""
    for one, other in combinations(policies, 2):
        if all(
            tensors.keys() == others.keys() and all(torch.equal(tensors[name], others[name]) for name in tensors)
            for tensors, others in (
                (getattr(one, part).state_dict(), getattr(other, part).state_dict()) for part in ("encoder", "denoiser")
            )
        ):
            raise BidError(f"{other.source} has the weights of {one.source}; valid are different checkpoints")


def _provenance(
    strong: ImportedPolicy,
    weak: ImportedPolicy | None,
    differences: Mapping[str, Mapping[str, float]],
    also: Sequence[ImportedPolicy],
) -> dict[str, Any]:
    sources: dict[str, Any] = {"strong": strong.source} | ({} if weak is None else {"weak": weak.source})
    sources |= {"also": [item.source for item in also]} if also else {}
    return {
        **strong.provenance,
        "imported": {"type": strong.kind, **sources},
        "command": command_line(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "weights": "float32",
        "torch": str(torch.__version__),
        "difference_to_pytorch": {key: dict(value) for key, value in differences.items()},
    }


def frames_graph(encoder: ObservationNetwork) -> FunctionGraph:
    """Return the graph that reads images, from one uint8 ``(1, h, w, 3)`` a camera to features ``(1, P)``."""
    return FunctionGraph(encoder.frame, encoder=encoder)


def _condition(encoder: ObservationNetwork, *values: torch.Tensor) -> torch.Tensor:
    """Return the condition ``(1, C)`` of points ``(To, P)``, where there are cameras, and vectors ``(To, S)``."""
    given = list(values)
    points = given.pop(0) if encoder.cameras else None
    return encoder.condition(points, dict(zip(encoder.vectors, given, strict=True)))


def write_graphs(
    policy: ImportedPolicy, folder: Path, strength: str, member: int = 1
) -> tuple[dict[str, str], dict[str, float]]:
    """Write the graphs of a policy; return their file names by role, and how they differ from PyTorch.

    Args:
        policy: with its weights.
        folder: of the bundle.
        strength: ``strong`` or ``weak``.
        member: number of a policy among several, which its roles end in from the second on.

    Raises:
        BundleError: a graph differs from PyTorch or is too large, or a feature has a name that the graphs use.
    """
    examples = {member_role(role, member): example for role, example in examples_of(policy).items()}
    roles, differences = {}, {}
    runtime = build_runtime("onnx")
    for role, (network, feeds, output, axes) in examples.items():
        size = sum(value.numel() * value.element_size() for value in network.state_dict().values())
        if size > LARGEST:
            raise BundleError(
                f"{strength} policy: {role} has weights of {size / 1e9:.1f} GB; valid is up to {LARGEST / 1e9:.0f} GB, "
                "which a file of ONNX holds"
            )
        roles[role] = f"{strength}_{role}.onnx"
        example = {name: torch.from_numpy(value) for name, value in feeds.items()}
        export_graph(network, example, folder / roles[role], output, axes)
        with torch.no_grad():
            expected = network(*example.values()).numpy()
        found = runtime.load(folder / roles[role]).run(feeds)
        differences[role] = float(np.abs(found - expected).max())
        limit = TOLERANCE * max(1.0, float(np.abs(expected).max())) * (10 if role == "sampler" else 1)
        if not differences[role] <= limit:
            raise BundleError(
                f"{strength} policy: {role} differs from PyTorch by {differences[role]:.2e}; valid is up to {limit:.0e}"
            )
    return roles, differences


def examples_of(policy: ImportedPolicy) -> dict[str, GraphExample]:
    """Return each graph of a policy with example inputs, by role."""
    return (policy.graph_examples or _graph_examples)(policy)


def _graph_examples(policy: ImportedPolicy) -> dict[str, GraphExample]:
    """Return network, example inputs, name of the output and open extents of each graph."""
    assert isinstance(policy.settings, DiffusionConfig)
    encoder, denoiser, rng = policy.encoder.eval(), policy.denoiser.eval(), np.random.default_rng(0)
    shapes = {item.name: item.shape for item in policy.features}
    steps, chunk = policy.observation_steps, (policy.horizon, policy.action_dim)

    def numbers(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape, dtype=np.float32)

    vectors = {name: numbers(steps, *shapes[name]) for name in encoder.vectors}
    examples: dict[str, GraphExample] = {}
    points: dict[str, NDArray[Any]] = {}
    if encoder.cameras:
        if POINTS in vectors:
            raise BundleError(f"a vector beside cameras is named '{POINTS}'; valid is any other name")
        images = {name: rng.integers(0, 256, (1, *shapes[name]), np.uint8) for name in encoder.cameras}
        examples["frames"] = (frames_graph(encoder), images, POINTS, {})
        points = {POINTS: numbers(steps, encoder.points)}
    rest = FunctionGraph(partial(_condition, encoder), encoder=encoder)
    examples["encoder"] = (rest, {**points, **vectors}, "condition", {})
    condition = numbers(1, encoder.size(steps))
    level = np.array([policy.settings.train_steps // 2], dtype=np.int64)
    feeds: dict[str, NDArray[Any]] = {"sample": numbers(2, *chunk), "step": level, "condition": condition}
    axes = {"sample": {0: "samples"}, "prediction": {0: "samples"}}
    examples["denoiser"] = (denoiser, feeds, "prediction", axes)
    if policy.settings.calls <= MOST_CALLS_OF_ONE_GRAPH:
        graph = SamplerGraph(denoiser, policy.settings).eval()
        feeds = {"noise": numbers(graph.sampler.noises, 2, *chunk), "condition": condition}
        examples["sampler"] = (graph, feeds, "chunks", {"noise": {1: "samples"}, "chunks": {0: "samples"}})
    return examples
