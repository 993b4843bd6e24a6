"""Compare what a decision takes between bundles and decoders: all alternate in one run, alone, on one thread.

Usage: decision-time TASK BUNDLE[:DECODER[:SAMPLES]]... [--rounds 200]. The first one is the reference of the ratios.
Example: decision-time franka_place models/franka_place models/mine models/franka_place:vanilla:1
The last line is the resident memory of the process after the first tenth, and at the end.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from bid_ros.commands.tasks import task_path
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task, load_task
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy
from results.timing import stream_of_noise

WARM_UP = 10  # rounds
PARTS = ("encode_ns", "sample_ns", "choose_ns")


@dataclass
class Contender:
    """A bundle with a decoder, and the duration of its decisions so far."""

    name: str
    maker: DecisionMaker
    rows: list[list[int]] = field(default_factory=list)

    def decide(self, observation: Observation) -> None:
        """Decide once, and note the duration of the parts, ns."""
        record = self.maker.decide(observation)
        assert record is not None
        self.rows.append([getattr(record, part) for part in PARTS])


def contender(words: str, task: Task) -> Contender:
    """Return what ``BUNDLE:DECODER:SAMPLES`` names."""
    path, _, rest = words.partition(":")
    decoder, _, last = rest.rpartition(":")
    if not last.isdecimal():  # a decoder has a colon too, as in bid:terms=backward
        decoder, last = rest or "bid", "16"
    samples = int(last)
    bundle = load_bundle(path, task)
    policy = load_policy(bundle, task, "auto", 1)
    policy.warm_up(samples)
    return Contender(words, DecisionMaker(policy, bundle_decoder(decoder, bundle, task, samples, 1), task))


def table(contenders: Sequence[Contender]) -> str:
    """Return a row for each contender: medians of the parts and of the whole, p99, and the ratio to the first one."""
    lines = ["| contender | encode | sample | choose | decision p50 | p99 ms | reference / this |"]
    lines.append("|---|---|---|---|---|---|---|")
    reference = 0.0
    for item in contenders:
        milliseconds = np.array(item.rows[WARM_UP:]) / 1e6
        whole = milliseconds.sum(axis=1)
        median = float(np.median(whole))
        reference = reference or median
        parts = " | ".join(f"{value:.2f}" for value in np.median(milliseconds, axis=0))
        lines.append(
            f"| {item.name} | {parts} | {median:.2f} | {np.quantile(whole, 0.99):.2f} | {reference / median:.2f} |"
        )
    return "\n".join(lines)


def resident_mb() -> float:
    """Return the resident memory of this process, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    task = load_task(task_path(options.task))
    contenders, rng = [contender(words, task) for words in options.bundles], np.random.default_rng(0)
    memory = [0.0]
    for index, observation in enumerate(islice(stream_of_noise(task, rng), WARM_UP + options.rounds)):
        if index == WARM_UP + options.rounds // 10:
            memory = [resident_mb()]
        for place in rng.permutation(len(contenders)):  # whoever is first finds cold caches
            contenders[place].decide(observation)
    print(table(contenders))
    print(f"\nresident memory {memory[0]:.1f} MB, at the end {resident_mb():.1f} MB")


if __name__ == "__main__":
    main()
