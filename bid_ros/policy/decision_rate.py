"""Decides more often than a chunk has rows: as often as cameras give images."""

from typing import Final

from bid_ros.core.errors import DecodingError
from bid_ros.core.task import Task
from bid_ros.decoding.written import read_decoder, write_decoder

FASTEST_HZ: Final = 100.0
"""The most decisions a second that a run makes."""


def decisions_a_step(task: Task, rate_hz: float) -> int:
    """Return how many decisions are made in a step of the task.

    A whole number, so that some image was taken each step of the observation's history ago.

    Args:
        task: its rate is that of the rows of a chunk.
        rate_hz: decisions a second; 0: the task's rate.

    Raises:
        DecodingError: the rate is no multiple of the task's.
    """
    count = round(rate_hz / task.rate_hz)
    if rate_hz and (count < 1 or abs(count * task.rate_hz - rate_hz) > 1e-6):
        raise DecodingError(
            f"decision_rate_hz is {rate_hz:g}; valid are multiples of the rate of task '{task.name}', "
            f"{task.rate_hz:g} Hz: {task.rate_hz:g}, {2 * task.rate_hz:g}, {3 * task.rate_hz:g} and so on, or 0"
        )
    return max(1, count)


def scenes_a_second(task: Task, rate_hz: float) -> int:
    """Return how many scenes a second the twin has at a rate of decisions, Hz: one for each.

    Raises:
        DecodingError: the rate is no whole number, as a twin's rate of scenes is.
    """
    if rate_hz == round(rate_hz):
        return round(rate_hz)
    multiples = (count * task.rate_hz for count in range(1, int(FASTEST_HZ / task.rate_hz) + 1))
    valid = [f"{each:g}" for each in multiples if each == round(each)]
    raise DecodingError(
        f"decision_rate_hz is {rate_hz:g}, and the twin has a whole number of scenes a second; valid in the twin of "
        f"task '{task.name}' are {', '.join([*valid, '0'])}"
    )


def decoder_between(text: str, count: int) -> str:
    """Return the text of a decoder that is asked ``count`` times a step.

    More than once, it interpolates the previous decision, unless the text says how it remembers. The text stands in
    recorded decisions, so a replay remembers in the same way.
    """
    name, settings = read_decoder(text)
    return write_decoder(name, {"memory": "between", **settings}) if count > 1 else text


def remembered_as(changed: str | None, recorded: str) -> str:
    """Return the text of the decoder of a replay: the changed one, which remembers as the recorded one did, or that."""
    said = read_decoder(recorded)[1]
    if not changed or "memory" not in said:
        return changed or recorded
    name, settings = read_decoder(changed)
    return write_decoder(name, {"memory": said["memory"], **settings})


def budget_within(budget_ms: float, task: Task, count: int) -> float:
    """Return the budget of a decision in ms: at most the time until the next one, where a step has ``count`` > 1."""
    return min(budget_ms, task.dt_ns / count / 1e6) if count > 1 else budget_ms
