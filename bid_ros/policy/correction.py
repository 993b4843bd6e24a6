"""A correction head: corrects each action of a chunk by what was observed since the chunk was decided.

A chunk is decided on an old observation. The head is a small network that runs at every step. It adds to the action of
this step what the newest observation says. The policy stays as it is.

Source: Sendai, Alvarez, Matsushima, Matsuo, Iwasawa, "Leave No Observation Behind: Real-time Correction for VLA Action
Chunks", 2025 (arXiv 2509.23224), there called A2C2.

=====================  ===========================================================================
paper                  here
=====================  ===========================================================================
latest observation     ``newest``, the encoding of it by the policy's own encoder
base policy's feature  ``decided``, the encoding of the observation that the chunk was decided on
base action            ``action``
position in the chunk  ``row``, as sine and cosine of half a turn over the chunk
=====================  ===========================================================================
"""

import hashlib
import json
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.files import replace_text
from bid_ros.core.settings import parse_settings, settings
from bid_ros.core.task import Task
from bid_ros.policy.base import Array, Bundle
from bid_ros.policy.runtimes.registry import build_runtime

GRAPH: Final = "correction.onnx"
ABOUT: Final = "correction.json"
FORMAT: Final = 1


@settings(error=BundleError)
class CorrectionAbout:
    """What ``correction.json`` says.

    Attributes:
        format: of the file.
        bundle_sha256: of the policy whose chunks it corrects.
        task_signature: of the task.
        graph_sha256: of ``correction.onnx``.
        centre: D values, mean of what the policy predicts, task units, counted from where its positions count from.
        provenance: data, command, commit, settings, errors. For people.
    """

    format: int
    bundle_sha256: str
    task_signature: str
    graph_sha256: str
    centre: tuple[float, ...]
    provenance: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the file, as a whole or not at all."""
        replace_text(path, json.dumps(asdict(self), indent=1) + "\n")


def place_in_chunk(rows: ArrayLike, ahead: int) -> NDArray[np.float32]:
    """Return ``(..., 2)``: where rows ``(...)`` stand among the ``ahead`` executable ones; 0 is the current one."""
    turn = np.pi * np.asarray(rows, dtype=np.float64) / ahead
    return np.stack([np.sin(turn), np.cos(turn)], axis=-1).astype(np.float32)


def scaled_action(action: ArrayLike, anchor: ArrayLike, centre: ArrayLike, spread: ArrayLike) -> NDArray[np.float32]:
    """Return actions ``(..., D)`` as the head takes them.

    Args:
        action: task units.
        anchor: ``(..., D)`` where predicted positions count from at the newest observation, task units.
        centre: ``(D,)`` as in :class:`CorrectionAbout`.
        spread: ``(D,)`` of the policy's training data, task units.
    """
    value = np.asarray(action, dtype=np.float64) - np.asarray(anchor) - np.asarray(centre)
    scaled: NDArray[np.float32] = (value / np.asarray(spread)).astype(np.float32)
    return scaled


class Correction:
    """A correction head, checked. One thread only.

    Args:
        folder: which ``bid policy correct`` wrote.
        bundle: the policy whose chunks are corrected.
        task: of the policy.

    Attributes:
        sha256: hash of ``correction.json``, hexadecimal.

    Raises:
        BundleError: a file is missing or damaged, or the head belongs to another policy or task.
    """

    def __init__(self, folder: str | Path, bundle: Bundle, task: Task) -> None:
        path = Path(folder)
        text = _bytes(path / ABOUT)
        self.sha256 = hashlib.sha256(text).hexdigest()
        about = _about(path / ABOUT, text)
        _check(path, about, bundle, task)
        self._centre, self._spread = np.array(about.centre), bundle.action_spread
        self._ahead = task.horizon - (task.observation_steps - 1)
        self._graph = build_runtime("onnx").load(path / GRAPH)

    def correct(self, action: Array, row: int, newest: Any, decided: NDArray[np.float32]) -> Array:
        """Return an action ``(D,)``, corrected, task units.

        Args:
            action: ``(D,)`` of a chunk, task units.
            row: of it in the chunk; 0 was current when the chunk was decided.
            newest: the newest observation, as the policy encoded it.
            decided: ``(1, C)`` encoding of the observation that the chunk was decided on.
        """
        feeds = {
            "newest": newest.strong,
            "decided": decided,
            "action": scaled_action(action, newest.anchor, self._centre, self._spread)[None],
            "place": place_in_chunk([row], self._ahead),
        }
        corrected: Array = action + self._graph.run(feeds)[0].astype(np.float64) * self._spread
        return corrected


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(
            f"{path} cannot be read ({error.strerror}); valid is a folder of bid policy correct"
        ) from error


def _about(path: Path, text: bytes) -> CorrectionAbout:
    try:
        return parse_settings(CorrectionAbout, json.loads(text), str(path))
    except ValueError as error:
        raise BundleError(f"{path} is not JSON ({error}); valid is a file of bid policy correct") from error


def _check(path: Path, about: CorrectionAbout, bundle: Bundle, task: Task) -> None:
    if about.format != FORMAT:
        raise BundleError(f"{path / ABOUT}: format is {about.format}; valid is {FORMAT}")
    if about.bundle_sha256 != bundle.sha256:
        raise BundleError(
            f"{path} corrects the policy with the hash {about.bundle_sha256[:12]}; bundle {bundle.label} has another: "
            "valid is a head of bid policy correct for this bundle"
        )
    if about.task_signature != task.signature():
        raise BundleError(f"{path} was trained for another version of task '{task.name}'")
    if hashlib.sha256(_bytes(path / GRAPH)).hexdigest() != about.graph_sha256:
        raise BundleError(f"{path / GRAPH} is not the file that {ABOUT} names: it is damaged, or was replaced")
    if len(about.centre) != task.action_dim or not np.isfinite(about.centre).all():
        raise BundleError(
            f"{path / ABOUT}: centre has {len(about.centre)} values; valid are {task.action_dim} finite ones"
        )
