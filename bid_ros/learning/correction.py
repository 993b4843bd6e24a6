"""Trains a correction head: what the newest observation adds to an action that was decided earlier.

The policy decides on every step of the demonstrations. What its chunk says of each later step is held against what was
demonstrated there. The head learns this difference. Source: see :mod:`bid_ros.policy.correction`.

Observations are augmented as in the training of the policy. Without that the head copies: from where the tool was and
is it knows the demonstrated action, and in a closed loop it goes on as it is. On Push-T that took .6 of the score.
"""

import hashlib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import nn
from tqdm import tqdm

from bid_ros.core.errors import BidError, BundleError
from bid_ros.core.files import replacing
from bid_ros.core.observation import Observation
from bid_ros.core.settings import Count, Positive, settings
from bid_ros.core.task import Task
from bid_ros.learning.batch import TrainingData
from bid_ros.learning.config import Batch
from bid_ros.learning.distillation import encode_windows
from bid_ros.learning.families import bundle_networks, training_of
from bid_ros.learning.graphs import export_graph
from bid_ros.learning.run_folder import command_line, source_commit
from bid_ros.learning.windows import held_out_episodes, window_rows
from bid_ros.policy.base import Bundle
from bid_ros.policy.correction import ABOUT, FORMAT, GRAPH, CorrectionAbout, place_in_chunk, scaled_action
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.recording.dataset import Dataset

Floats = NDArray[np.float32]
HELD_PAIRS: Final = 4096  # of held-out episodes, on which the errors are measured


@settings
class CorrectionConfig:
    """How a correction head is trained. The same configuration, data and thread count give the same weights.

    Attributes:
        steps: of the optimiser.
        batch: actions a step.
        seed: of weights, order and samples.
        samples: chunks of the policy at every step of the demonstrations.
        width: of the two hidden layers.
        learning_rate: peak; it falls along a cosine to 0.
        validation_share: share of the episodes that are held out.
    """

    steps: Count = 4000
    batch: Batch = 512
    seed: Annotated[int, Field(ge=0)] = 0
    samples: Annotated[int, Field(ge=1, le=64)] = 4
    width: Annotated[int, Field(ge=8, le=1024)] = 256
    learning_rate: Positive = 1e-3
    validation_share: Annotated[float, Field(gt=0, lt=1)] = 0.1


@dataclass(frozen=True)
class CorrectionResult:
    """What a training came to.

    Attributes:
        out: folder of the head.
        before, after: root mean square difference to the demonstrated actions of held-out episodes, in spreads of the
            training actions: of the policy's actions, and of the corrected ones.
    """

    out: Path
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class _Decided:
    """The policy's decisions on W windows.

    Attributes:
        encoded: ``(A, W, C)`` of each window's observation: the first as recorded, the others augmented.
        anchors: ``(W, D)``, task units.
        chunks: ``(W, S, K, D)`` executable rows, task units.
        rows: ``(W,)`` row of the data set.
        ahead: ``(W,)`` how many later windows of the same episode there are.
    """

    encoded: Floats
    anchors: NDArray[np.float64]
    chunks: NDArray[np.float64]
    rows: NDArray[np.int64]
    ahead: NDArray[np.int64]


class CorrectionNetwork(nn.Module):  # type: ignore[misc]
    """Two hidden layers, from what :class:`bid_ros.policy.correction.Correction` gives to a correction in spreads."""

    def __init__(self, condition: int, actions: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2 * condition + actions + 2, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, actions),
        )
        # It begins by correcting nothing.
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.zeros_(self.layers[-1].bias)

    def forward(
        self, newest: torch.Tensor, decided: torch.Tensor, action: torch.Tensor, place: torch.Tensor
    ) -> torch.Tensor:
        """Return corrections ``(B, D)`` of encodings ``(B, C)`` twice, actions ``(B, D)`` and places ``(B, 2)``."""
        return self.layers(torch.cat([newest, decided, action, place], dim=1))


def train_correction(
    bundle: Bundle, dataset: Dataset, task: Task, out: str | Path, config: CorrectionConfig, progress: bool = True
) -> CorrectionResult:
    """Train the correction head of a policy, and write it.

    Args:
        bundle: a diffusion policy, or a flow, of this package.
        dataset: demonstrations of its task: those of its training, or others.
        task: of both.
        out: folder of the head; one that is there is replaced.
        config: settings.
        progress: whether to print progress lines on the standard error stream.

    Raises:
        BundleError: the policy is of another family, was not written by ``bid policy export``, or was trained for
            delays.
        RecordingError: the data set does not fit the task.
        BidError: the data set is too short, or ``out`` holds something else.
    """
    _check(bundle)
    dataset.validate(task)
    _check_out(Path(out))
    torch.manual_seed(config.seed)
    # An episode that is cut off early has no window.
    windows = window_rows(dataset.episode_ends, dataset.truncated, task.observation_steps, task.horizon)
    whole, owners = np.unique(windows[1], return_inverse=True)
    if len(whole) < 2:
        raise BidError(
            f"the data set has {len(whole)} episodes with a whole window of {task.horizon} rows; valid are 2 or more, "
            "as one is held out"
        )
    found = _decide(bundle, dataset, task, windows[0], owners, config, progress)
    pairs = _Pairs(found, dataset, bundle, task)
    held = held_out_episodes(len(whole), config.validation_share, config.seed)[owners]
    training, validation = np.flatnonzero(~held), np.flatnonzero(held)
    network = CorrectionNetwork(found.encoded.shape[2], task.action_dim, config.width)
    _train(network, pairs, training, config, progress)
    before, after = _errors(network, pairs, validation)
    _write(network, Path(out), bundle, dataset, task, config, pairs.centre, before, after)
    return CorrectionResult(Path(out), before, after)


def _check(bundle: Bundle) -> None:
    training_of(bundle)
    if bundle.settings.simulated_delay:
        raise BundleError(
            f"bundle {bundle.path} was trained for delays: what it predicts depends on the delay; valid is one without "
            "--simulated-delay"
        )


def _check_out(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(item.name not in (ABOUT, GRAPH) for item in out.iterdir())):
        raise BidError(f"{out} holds something else than a correction head; valid is a new folder, or that of a head")


def _decide(
    bundle: Bundle,
    dataset: Dataset,
    task: Task,
    windows: NDArray[np.int64],
    owners: NDArray[np.int64],
    config: CorrectionConfig,
    progress: bool,
) -> _Decided:
    """Let the policy decide on every step of the demonstrations: windows ``(W, H)``, each with its owner, ascending."""
    policy, past, rng = DiffusionPolicy(bundle, task), task.observation_steps - 1, np.random.default_rng(config.seed)
    seen, rows = windows[:, : task.observation_steps], windows[:, past]
    recorded, anchors, chunks = [], [], []
    bar = tqdm(seen, desc="decisions", disable=not progress, unit="step", mininterval=0.5, file=sys.stderr)
    for history in bar:
        values = {item.name: dataset.observations[item.name][history] for item in task.observation}
        condition = policy.encode(Observation(0, values), weak=False)
        strong, _ = policy.sample(condition, config.samples, 0, rng)
        recorded.append(condition.strong)
        anchors.append(condition.anchor)
        chunks.append(strong[:, past:])
    ahead = np.searchsorted(owners, owners, side="right") - 1 - np.arange(len(owners))
    encoder = bundle_networks(bundle, task)["strong"].encoder
    data = TrainingData(dataset, task, bundle.action_reference, bundle)
    augmented = encode_windows(encoder, data, training_of(bundle), recorded=False)[0].numpy()
    encoded = np.concatenate([np.concatenate(recorded)[None], augmented])
    return _Decided(encoded, np.array(anchors), np.array(chunks), rows, ahead)


class _Pairs:
    """Pairs of a decision and a later step of the same demonstration, as the network takes them."""

    def __init__(self, found: _Decided, dataset: Dataset, bundle: Bundle, task: Task) -> None:
        self._found, self._spread = found, bundle.action_spread
        self._demonstrated = dataset.actions[found.rows]
        self._length = task.horizon - (task.observation_steps - 1)
        self.centre = (found.chunks - found.anchors[:, None, None]).mean(axis=(0, 1, 2))

    def drawn(
        self, windows: NDArray[np.int64], rng: np.random.Generator, augmented: bool = True
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Return the inputs of the network and what it should return, for a row of each window's chunk."""
        found, count = self._found, len(windows)
        copies = rng.integers(1, len(found.encoded), (2, count)) if augmented else np.zeros((2, count), np.int64)
        rows = (rng.random(count) * (1 + np.minimum(found.ahead[windows], self._length - 1))).astype(np.int64)
        samples, later = rng.integers(found.chunks.shape[1], size=count), windows + rows
        actions = found.chunks[windows, samples, rows]
        missing = ((self._demonstrated[later] - actions) / self._spread).astype(np.float32)
        inputs = (
            found.encoded[copies[0], later],
            found.encoded[copies[1], windows],
            scaled_action(actions, found.anchors[later], self.centre, self._spread),
            place_in_chunk(rows, self._length),
        )
        return [torch.from_numpy(item) for item in inputs], torch.from_numpy(missing)


def _train(
    network: CorrectionNetwork, pairs: _Pairs, windows: NDArray[np.int64], config: CorrectionConfig, progress: bool
) -> None:
    optimiser = torch.optim.AdamW(network.parameters(), lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.steps)
    rng = np.random.default_rng([config.seed, 1])
    bar = tqdm(
        range(config.steps), desc="training", disable=not progress, unit="step", mininterval=0.5, file=sys.stderr
    )
    for _ in bar:
        inputs, missing = pairs.drawn(rng.choice(windows, config.batch), rng)
        loss = nn.functional.mse_loss(network(*inputs), missing)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if not torch.isfinite(loss):
            raise BidError("training diverged; give a lower learning_rate")


def _errors(network: CorrectionNetwork, pairs: _Pairs, windows: NDArray[np.int64]) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    inputs, missing = pairs.drawn(rng.choice(windows, HELD_PAIRS), rng, augmented=False)
    with torch.no_grad():
        left = missing - network(*inputs)
    return float(missing.square().mean().sqrt()), float(left.square().mean().sqrt())


def _write(
    network: CorrectionNetwork,
    out: Path,
    bundle: Bundle,
    dataset: Dataset,
    task: Task,
    config: CorrectionConfig,
    centre: NDArray[np.float64],
    before: float,
    after: float,
) -> None:
    width = (network.layers[0].in_features - task.action_dim - 2) // 2
    sizes = {"newest": width, "decided": width, "action": task.action_dim, "place": 2}
    feeds = {name: torch.zeros(2, size) for name, size in sizes.items()}
    about: dict[str, Any] = {
        "bundle": bundle.name,
        "data_sha256": dataset.sha256,
        "data_episodes": dataset.episodes,
        "config": asdict(config),
        "error_before": before,
        "error_after": after,
        "commit": source_commit(),
        "command": command_line(),
    }
    with replacing(out / GRAPH) as part:
        export_graph(network, feeds, part, "correction", {name: {0: "rows"} for name in (*feeds, "correction")})
        digest = hashlib.sha256(part.read_bytes()).hexdigest()
    found = CorrectionAbout(FORMAT, bundle.sha256, task.signature(), digest, tuple(centre.tolist()), about)
    found.write(out / ABOUT)
