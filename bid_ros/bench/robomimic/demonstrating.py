"""Demonstrations of the scripted operators, as a data set."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.can import can
from bid_ros.bench.robomimic.catalogue import CAN, LIFT, SQUARE, TOOL_HANG
from bid_ros.bench.robomimic.env import RATE_HZ, RobomimicEnv
from bid_ros.bench.robomimic.lift import lift
from bid_ros.bench.robomimic.scripted_operator import Array, Motion, ScriptedOperator
from bid_ros.bench.robomimic.square import square
from bid_ros.bench.robomimic.tool_hang import tool_hang
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset, joined

SCRIPTS: Final[Mapping[str, Callable[[ScriptedOperator], Motion]]] = {
    LIFT: lift,
    CAN: can,
    SQUARE: square,
    TOOL_HANG: tool_hang,
}
MOST_DEMONSTRATIONS: Final = 10_000
"""Each tries a seed of its own. Episodes of a comparison begin at seed 100,000."""
ATTEMPTS: Final = 3  # for each demonstration that is wanted
LABEL: Final = "scripted"
_STREAM: Final = 7  # of the operator's random numbers beside those of the scene


def demonstrate(env: RobomimicEnv, task: Task, seed: int) -> Dataset | None:
    """Return one demonstration. None: the operator did not succeed within the time of an episode.

    Row ``t`` holds what was seen at step ``t`` and the action that followed. Nothing is recorded after the script.

    Args:
        env: the world.
        task: what its rows are of.
        seed: of the scene and of the operator.
    """
    state = env.reset(seed)
    operator = ScriptedOperator(state, np.random.default_rng((seed, _STREAM)), env.task)
    shown: list[Mapping[str, Array]] = []
    actions: list[Array] = []
    done = False
    for action in SCRIPTS[env.task.name](operator):
        if len(actions) >= task.episode_timeout * RATE_HZ:
            return None
        shown.append(state.shown)
        actions.append(action)
        operator.state = state = env.step(action)
        done = done or state.coverage >= 1.0
    if not done:
        return None
    rows = len(actions)
    return Dataset(
        observations={name: np.array([row[name] for row in shown]) for name in shown[0]},
        actions=np.array(actions),
        stamps_ns=np.arange(rows, dtype=np.int64) * task.dt_ns,
        episode_ends=np.array([rows], dtype=np.int64),
        labels=(LABEL,),
        seeds=np.array([seed], dtype=np.uint64),
        task=task.name,
        task_signature=task.signature(),
    )


def record(env: RobomimicEnv, task: Task, count: int, out: Path, progress: Callable[[int, int], object]) -> Dataset:
    """Return ``count`` demonstrations, and keep each in a folder beside ``out``: run again, it goes on.

    Args:
        env: the world.
        task: what the rows are of.
        count: demonstrations that are wanted.
        out: file that will hold them.
        progress: called with the demonstrations and the attempts so far.

    Raises:
        BidError: the count is not valid, or too few attempts succeed.
    """
    if not 1 <= count <= MOST_DEMONSTRATIONS:
        raise BidError(f"count is {count}; valid is 1 to {MOST_DEMONSTRATIONS}")
    parts, folder = list[Dataset](), out.with_suffix(".parts")
    for seed in range(ATTEMPTS * count):
        file, failed = folder / f"{seed}.npz", folder / f"{seed}.failed"
        if file.exists():
            parts.append(Dataset.load(file))
        elif not failed.exists():
            found = demonstrate(env, task, seed)
            if found is None:
                folder.mkdir(parents=True, exist_ok=True)
                failed.touch()
            else:
                found.save(file)
                parts.append(found)
        progress(len(parts), seed + 1)
        if len(parts) == count:
            return joined(parts)
    raise BidError(f"only {len(parts)} of {ATTEMPTS * count} attempts at {env.task.name} succeeded; {count} are wanted")
