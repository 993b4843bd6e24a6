"""What a computer runs out of: room on the disk, and file descriptors."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from fault_campaign.fault import Fault, Robot, Scene
from fault_campaign.system import DRIVER, NODES, SUPERVISOR, Plan

DISK: Final = 256  # MB of the small disk
_BLOCK: Final = bytes(1 << 20)


def resources() -> Iterator[Fault]:
    """Yield a full disk, files that may not grow, and descriptors that are used up, node by node."""
    yield Fault(
        "disk-full",
        "resources",
        "disk of the run's folder is full",
        _fill,
        lambda _: None,
        prepare=_mount,
        clean=_unmount,
        may_stop=True,
        missing=_no_mount,
    )
    yield Fault(
        "bag-cannot-grow", "resources", "bag cannot grow any more", _limit_bag, lambda _: None, may_stop=True
    )  # fmt: skip
    for part in (*NODES, DRIVER, SUPERVISOR):
        yield Fault(
            f"descriptors-{part}",
            "resources",
            f"{part} has no file descriptor left",
            partial(_use_up, part),
            lambda _: None,
            may_stop=True,
        )


def _out(plan: Plan) -> Path:
    return Path(plan.arguments["out"])


def _no_mount() -> str:
    return "" if os.geteuid() == 0 else "only root may mount a small disk; left out"


def _mount(plan: Plan, _: Robot) -> None:
    """Give the run a small disk: a folder above its own, so that the run may move the latter."""
    disk = Path(plan.trace).with_name("disk")
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", disk], check=True)
    plan.arguments["out"] = str(disk / "out")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", folder / "disk"], check=False)


def _fill(scene: Scene) -> None:
    with (scene.folder / "disk" / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(_BLOCK)
        except OSError:
            return


def _limit_bag(scene: Scene) -> None:
    sizes = [file.stat().st_size for file in (_out(scene.system.plan) / "bag").iterdir()]
    limit = max(sizes) + 1
    resource.prlimit(scene.system.names["recorder"], resource.RLIMIT_FSIZE, (limit, limit))


def _use_up(part: str, scene: Scene) -> None:
    """Let a process open nothing more: its limit is below every free number."""
    pid = scene.system.names[part]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))
