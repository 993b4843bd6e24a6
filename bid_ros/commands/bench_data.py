"""``bid bench data``: the human demonstrations of Push-T as a data set for ``bid train``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bid_ros.core.paths import share
from bid_ros.core.task import load_task


def add_data_parser(subparsers: Any) -> None:
    """Add ``data`` to the verbs of ``bid bench``."""
    data = subparsers.add_parser("data", help="turn the human demonstrations of Push-T into a data set")
    data.add_argument("file", help="pusht_cchi_v7_lowdim.npz, as Diffusion Policy publishes it (Chi et al., 2023)")
    data.add_argument("--out", default="data/pusht.npz", help="file to write (default data/pusht.npz)")
    data.set_defaults(run=run_data)


def run_data(options: argparse.Namespace) -> int:
    """Build the data set."""
    from bid_ros.bench.pusht.data import human_dataset

    out = Path(options.out)
    dataset = human_dataset(options.file, load_task(share("config", "pusht.yaml")))
    dataset.save(out)
    print(f"{out}: {dataset.episodes} episodes, {dataset.rows} rows, sha256 {dataset.sha256}", file=sys.stderr)
    return 0
