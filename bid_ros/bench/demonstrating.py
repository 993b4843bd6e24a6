"""Demonstrations of scripted operators, as data sets: one after the other, as many as are wanted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.demonstrations import as_dataset
from bid_ros.bench.scene import Environment
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset, joined
from bid_ros.recording.made_with import keep_made_with

Array = NDArray[np.float64]
Attempt = Callable[[int], Dataset | None]
"""From a seed to one demonstration. None: the operator did not succeed within the time of an episode."""

MOST_DEMONSTRATIONS: Final = 10_000
"""Each tries a seed of its own. Episodes of a comparison begin at seed 100,000."""
ATTEMPTS: Final = 3  # for each demonstration that is wanted
LABEL: Final = "scripted"
STREAM: Final = 7  # of an operator's random numbers beside those of the scene


class Performer(Protocol):
    """Whoever acts by a script.

    Attributes:
        state: the newest.
    """

    state: Any


def demonstration(task: Task, seed: int, shown: Sequence[Mapping[str, Array]], actions: Sequence[Array]) -> Dataset:
    """Return one episode as a data set.

    Args:
        task: what its rows are of.
        seed: of the scene and of the operator.
        shown: what was seen at each step, by feature.
        actions: that followed, one for each step.
    """
    rows = np.arange(len(actions), dtype=np.int64)
    observations = {name: np.array([row[name] for row in shown]) for name in shown[0]}
    return as_dataset(task, observations, np.array(actions), np.array([len(rows)]), rows, LABEL, [seed])


def performed(
    env: Environment,
    task: Task,
    seed: int,
    operator: Performer,
    script: Iterator[Array],
    observe: Callable[[Any], Mapping[str, Array]],
    done: Callable[[Any], bool],
) -> Dataset | None:
    """Let an operator act; return the demonstration. None: it was not done within the time of an episode.

    Row ``t`` holds what was seen at step ``t`` and the action that followed. Nothing is recorded after the script.

    Args:
        env: the world.
        task: what the rows are of.
        seed: of the scene and of the operator.
        operator: is given each new state.
        script: its actions ``(D,)``, one a step.
        observe: from a state to the newest value of every observed feature.
        done: whether the task is done in a state; once is enough.
    """
    shown, actions, reached = list[Mapping[str, Array]](), list[Array](), False
    for action in script:
        if len(actions) >= task.episode_timeout * task.rate_hz:
            return None
        shown.append(observe(operator.state))
        actions.append(action)
        operator.state = env.step(action)
        reached = reached or done(operator.state)
    return demonstration(task, seed, shown, actions) if reached else None


def check_count(count: int) -> None:
    """Raise BidError for a number of demonstrations that is not valid."""
    if not 1 <= count <= MOST_DEMONSTRATIONS:
        raise BidError(f"count is {count}; valid is 1 to {MOST_DEMONSTRATIONS}")


def record(
    task: Task,
    attempt: Attempt,
    count: int,
    out: Path,
    progress: Callable[[int, int], object],
    **made_with: str,
) -> Dataset:
    """Return ``count`` demonstrations, and keep each in a folder beside ``out``: run again, it goes on.

    Args:
        task: what the demonstrations are of.
        attempt: makes one.
        count: demonstrations that are wanted.
        out: file that will hold them.
        progress: called with the demonstrations and the attempts so far.
        made_with: what else counts, by name: the simulator with its version.

    Raises:
        BidError: the count is not valid, the folder holds demonstrations that were made with something else or does
            not say with what, or too few attempts succeed.
    """
    check_count(count)
    parts, folder = list[Dataset](), out.with_suffix(".parts")
    keep_made_with(folder, task, **made_with)
    for seed in range(ATTEMPTS * count):
        file, failed = folder / f"{seed}.npz", folder / f"{seed}.failed"
        if file.exists():
            parts.append(Dataset.load(file))
        elif not failed.exists():
            found = attempt(seed)
            if found is None:
                failed.touch()
            else:
                found.save(file)
                parts.append(found)
        progress(len(parts), seed + 1)
        if len(parts) == count:
            return joined(parts)
    raise BidError(f"only {len(parts)} of {ATTEMPTS * count} attempts at {task.name} succeeded; {count} are wanted")
