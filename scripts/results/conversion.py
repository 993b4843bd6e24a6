"""Measure how long conversions of data sets take, and how much memory: each format is written once and read once.

A data set of the placing task is made: two cameras of 96x96, tool and gripper, in episodes of 200 rows. Its pictures
are random and smooth, so that they can be compressed. Then it goes from format to format, each conversion as
``bid data convert`` in a process of its own, with the check of what was written. Beside each stands a plain copy of the
files that it wrote. MB/s are of the values of the rows as they are in memory.

Usage: conversion [--rows 5000] [--out data/conversion] [--keep]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final

SYSTEM: Final = "franka_place"
EPISODE, SIZE, COARSE = 200, 96, 24
FORMATS: Final = {
    "zarr": "a.zarr",
    "robomimic": "b.hdf5",
    "lerobot_v21": "c",
    "lerobot_v30": "d",
    "npz": "e.npz",
    "bag": "f",
}
VALUES: Final = 2 * SIZE * SIZE * 3 + 8 * (10 + 10 + 1)  # bytes of a row: pictures, what is measured and asked, time


class Made:
    """The data set that is made, one episode at a time. An episode depends on its number alone."""

    def __init__(self, rows: int) -> None:
        from bid_ros.formats.base import Column, Contents
        from bid_ros.system.folder import find_system

        self.task = task = find_system(SYSTEM).task
        whole, rest = divmod(rows, EPISODE)
        columns = tuple(Column(item.name, item.shape, item.dtype, item.kind == "image") for item in task.observation)
        action = Column("action", (task.action_dim,), "float64")
        lengths = (EPISODE,) * whole + ((rest,) if rest else ())
        extras = frozenset({"stamps", "success"})
        self.contents = Contents("made", columns, action, lengths, task.rate_hz, task.name, task.signature(), extras)

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[Any]:
        """Yield the episodes from number ``start`` on: the tool goes round, and the pictures pass by."""
        import cv2
        import numpy as np

        from bid_ros.formats.base import DataEpisode

        for number, rows in enumerate(self.contents.lengths[start:], start):
            rng, times = np.random.default_rng(number), np.arange(rows)
            angle = times / 25.0
            place = np.stack([0.45 + 0.05 * np.cos(angle), 0.05 * np.sin(angle), 0.3 + 0 * angle], axis=1)
            turn = np.tile([1.0, 0, 0, 0, -1.0, 0], (rows, 1))
            values = {"tool_position": place, "tool_rotation": turn, "gripper_width": np.full((rows, 1), 0.04)}
            for camera in self.task.cameras:
                coarse = rng.integers(0, 256, (COARSE, COARSE, 3), np.uint8)
                scene = cv2.resize(coarse, (2 * SIZE, 2 * SIZE), interpolation=cv2.INTER_CUBIC)
                values[camera.name] = np.stack([scene[at % SIZE :, at % SIZE :][:SIZE, :SIZE] for at in times])
            actions = np.concatenate([values[item.name] for item in self.task.action], axis=1)
            stamps = np.arange(rows, dtype=np.int64) * self.task.dt_ns + 1_700_000_000 * 10**9
            yield DataEpisode(values, actions, stamps, success=True)


def make(rows: int, target: Path) -> None:
    """Write the data set as it is converted first."""
    from bid_ros.formats import Options, convert

    source = Made(rows)
    convert(source, target, next(iter(FORMATS)), Options(task=source.task))


def measured(command: list[str]) -> tuple[float, float]:
    """Run a command; return its duration, s, and the most memory that it had, MB.

    This process is small, because the memory of who starts a process counts as the process's own.
    """
    begin = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None, "it is a pipe"
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"error: {' '.join(command)} failed: {said.decode()[-2000:]}")
    return perf_counter() - begin, usage.ru_maxrss / 1e3


def copied(path: Path) -> tuple[float, float]:
    """Copy a file or a folder; return MB and s."""
    target = path.with_name(f"{path.name}.copy")
    begin = perf_counter()
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, target)
    took = perf_counter() - begin
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    size = sum(item.stat().st_size for item in files) / 1e6
    remove(target)
    return size, took


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main() -> None:
    """Make, convert, and print a line for each conversion when it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000, help="rows of the data set (default 5000)")
    parser.add_argument("--out", type=Path, default=Path("data/conversion"), help="folder; it must not exist")
    parser.add_argument("--keep", action="store_true", help="keep what was written")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make is not None:
        make(options.rows, options.make)
        return
    options.out.mkdir(parents=True)
    places = [(name, options.out / file) for name, file in FORMATS.items()]
    again = [(name, options.out / f"z{file}") for name, file in list(FORMATS.items())[:1]]
    own = [sys.executable, str(Path(__file__).parent), "conversion", "--rows", str(options.rows)]
    measured([*own, "--make", str(places[0][1])])
    print(f"| from | to, of {options.rows} rows | s | rows/s | MB/s | most memory, MB | files, MB | copy of these, s |")
    print("|" + "---|" * 8, flush=True)
    for (name, source), (other, target) in zip(places, [*places[1:], *again], strict=True):
        words = ["data", "convert", str(source), str(target), "--to", other, "--task", SYSTEM]
        took, memory = measured([sys.executable, "-m", "bid_ros.cli", *words])
        size, copy = copied(target)
        speed = f"{took:.0f} | {options.rows / took:.0f} | {options.rows * VALUES / took / 1e6:.1f}"
        print(f"| {name} | {other} | {speed} | {memory:.0f} | {size:.0f} | {copy:.1f} |", flush=True)
        if not options.keep:
            remove(source)
    if not options.keep:
        shutil.rmtree(options.out)


if __name__ == "__main__":
    main()
