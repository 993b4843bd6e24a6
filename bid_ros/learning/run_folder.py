"""The folder of one training run: settings, checkpoints, log. It makes a run resumable.

====================  ===================================================================================
``run.json``          configuration, data and command of the run, and the normalisation
``checkpoint.pt``     weights, averaged weights and optimiser of the last checkpoint
``weak.pt``           averaged weights of the weak policy, ``strong.pt`` of the strong one: when it exists,
                      the run is complete
``log.jsonl``         one line of numbers every ``log_every`` steps and one every ``validate_every`` steps
``loss.png``          the same as a plot
====================  ===================================================================================

Of a distillation, ``strong.pt`` and ``weak.pt`` are the last checkpoints of the two students.
"""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import torch

from bid_ros.core.errors import BidError
from bid_ros.core.files import replace_text, replacing
from bid_ros.core.settings import parse_settings
from bid_ros.learning.config import TrainConfig

# These may differ when a run is resumed: none of them changes the result.
FREE: Final = ("device", "threads", "validate_every", "checkpoint_every", "log_every")


class RunFolder:
    """Reads and writes the files of a run. Every write is atomic."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def begin(self, about: Mapping[str, Any], trains: bool = False) -> None:
        """Create the folder, or check that it holds the same run.

        Args:
            about: ``config``, ``data_sha256``, ``task_signature`` and further content of ``run.json``.
            trains: whether ``config`` is a :class:`TrainConfig`. Then a field that an older version did not write has
                its default: that is what the older version did.

        Raises:
            BidError: the folder holds a run with another configuration, task or data, or is damaged.
        """
        if not (self.path / "run.json").exists():
            self.path.mkdir(parents=True, exist_ok=True)
            replace_text(self.path / "run.json", json.dumps(about, indent=1))
            return
        before = self.about()
        for key in ("task_signature", "data_sha256"):
            if before[key] != about[key]:
                raise BidError(
                    f"{self.path} holds a run with another {key.replace('_', ' ')}; "
                    "resume with the same, or use another folder"
                )
        old = asdict(self.config()) if trains else before["config"]
        told, now = (_flat(json.loads(json.dumps(config))) for config in (old, about["config"]))
        for name in [key for key in now if key not in FREE]:
            if told.get(name) != now[name]:
                raise BidError(
                    f"{self.path} holds a run with {name} {told.get(name)}, not {now[name]}; "
                    "resume with the same configuration, or use another folder"
                )

    def about(self) -> dict[str, Any]:
        """Return the content of ``run.json``.

        Raises:
            BidError: it is missing or damaged.
        """
        try:
            content = json.loads((self.path / "run.json").read_text())
            wanted = {"config", "data_sha256", "task", "task_signature"}
            if not isinstance(content, dict) or not wanted <= set(content):
                raise ValueError("it is of no training; valid is a folder of its own")
        except FileNotFoundError as error:
            raise BidError(f"{self.path} is not the folder of a training run: it has no run.json") from error
        except (OSError, ValueError) as error:
            raise BidError(f"{self.path / 'run.json'} cannot be read as that of a training run: {error}") from error
        return content

    def config(self) -> TrainConfig:
        """Return the configuration of the run; raises BidError as :meth:`about` does."""
        return parse_settings(TrainConfig, self.about()["config"], f"{self.path / 'run.json'}: config")

    def has(self, name: str) -> bool:
        """Whether checkpoint ``name`` exists."""
        return (self.path / f"{name}.pt").is_file()

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Write checkpoint ``name``. Raises OSError, which PyTorch alone does not say of a full disk."""
        content = BytesIO()
        torch.save(dict(state), content)
        with replacing(self.path / f"{name}.pt") as part:
            part.write_bytes(content.getbuffer())

    def load(self, name: str, device: torch.device | str = "cpu") -> dict[str, Any]:
        """Read checkpoint ``name``.

        Raises:
            BidError: if it is missing or damaged.
        """
        path = self.path / f"{name}.pt"
        try:
            state = torch.load(path, map_location=device, weights_only=True)
        except FileNotFoundError as error:
            raise BidError(f"{path} does not exist: the run has not come that far") from error
        except (OSError, RuntimeError, ValueError, EOFError, KeyError, pickle.UnpicklingError) as error:
            reason = str(error).strip().split("\n")[0]
            raise BidError(f"{path} is damaged, remove it to start from the beginning: {reason}") from error
        if not isinstance(state, dict):
            raise BidError(f"{path} is damaged, remove it to start from the beginning: it holds no checkpoint")
        return state

    def restore(
        self, name: str, restore: Callable[[Mapping[str, Any]], None], device: torch.device | str = "cpu"
    ) -> None:
        """Continue from checkpoint ``name``; raises BidError as :meth:`load` does, and if ``restore`` cannot use it."""
        try:
            restore(self.load(name, device))
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).strip().split("\n")[0]
            raise BidError(
                f"{self.path / name}.pt does not fit this run, remove it to start from the beginning: {reason}"
            ) from error

    def log(self, row: Mapping[str, Any]) -> None:
        """Append a line to the log."""
        with (self.path / "log.jsonl").open("a") as stream:
            stream.write(json.dumps(row) + "\n")

    def log_rows(self, until: int | None = None) -> list[dict[str, Any]]:
        """Return the lines of the log. With ``until``, first drop those of later steps from the file."""
        path = self.path / "log.jsonl"
        rows = []
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                rows.append(json.loads(line))
            except ValueError:
                break  # the process died while writing this line
        if until is not None:
            rows = [row for row in rows if row["step"] <= until]
            replace_text(path, "".join(json.dumps(row) + "\n" for row in rows))
        return rows


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return each value of a nested mapping, by its sections and its name."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        found |= (
            {f"{name}.{key}": item for key, item in _flat(value).items()} if isinstance(value, dict) else {name: value}
        )
    return found


def command_line() -> str:
    """Return the command that this process was started with, for a provenance."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])


def source_commit() -> str:
    """Return the git commit of the checkout this package is in, ``-dirty`` appended if tracked files differ.

    ``unknown`` where the package is installed without its history.
    """
    root = Path(__file__).resolve().parent
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return result.stdout.strip() or "unknown"
