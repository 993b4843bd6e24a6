"""Measure what a decision's samples take with an imported policy of full size, on the CPU.

The network is that of LeRobot's type ``diffusion`` in its published size (one camera, 263 million weights in its
U-Net), with random weights: the time does not depend on them. It is imported, written as a bundle and sampled.

Each row is the median over the rounds, and each round visits all N. Before each decision a product of two matrices of
1024x1024 is timed: the reference. CPU time is what the process used, all threads together; on a computer with other
work the time on the clock is longer. "calls" is what a network call takes, in products, by CPU time: hardly any load
changes that number.

Usage: imported_latency.py [--widths 512,1024,2048] [--steps 10] [--samples 1,2,4,8,16,32] [--rounds 5] [--threads 1]
"""

from __future__ import annotations

import argparse
import tempfile
from os import getloadavg
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
import torch

from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.task import Task, parse_task
from bid_ros.importing.bundling import write_imported
from bid_ros.importing.networks.images import CameraEncoder, KeypointNetwork, Preparation
from bid_ros.importing.networks.observation import ObservationNetwork
from bid_ros.importing.networks.unet import ConditionalUnet
from bid_ros.importing.policy import ImportedPolicy, NetworkFeature
from bid_ros.policy.base import Policy
from bid_ros.policy.diffusion.sampler import DiffusionConfig
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.registry import load_policy

IMAGE, STATE, ACTION, CROP = (96, 96), 7, 7, (84, 84)
PRODUCT = 1024
TASK = {
    "name": "full_size",
    "robot": "franka",
    "rate_hz": 10,
    "observation_steps": 2,
    "horizon": 16,
    "observation": [
        {"name": "observation.image", "kind": "image", "shape": [*IMAGE, 3]},
        {"name": "observation.state", "kind": "joints", "shape": [STATE]},
    ],
    "action": [{"name": "action", "kind": "joints", "shape": [ACTION]}],
    "limits": {"workspace_min": [0.0, -0.5, 0.0], "workspace_max": [0.9, 0.5, 0.8]},
}


def full_size(task: Task, widths: tuple[int, ...], steps: int) -> ImportedPolicy:
    """Return a policy with random weights."""
    torch.manual_seed(0)
    camera = KeypointNetwork("resnet18", True, CROP, 32)
    prepared = Preparation(IMAGE, (2.0, 2.0, 2.0), (-1.0, -1.0, -1.0), None, CROP)
    names = ("observation.state", "observation.image")
    cameras = {names[1]: CameraEncoder(prepared, camera, camera.features)}
    encoder = ObservationNetwork(names, cameras, {names[0]: STATE})
    unit = {size: LinearNormaliser(-np.ones(size), np.ones(size)) for size in (STATE, ACTION)}
    return ImportedPolicy(
        source="random weights",
        kind="diffusion",
        features=(NetworkFeature(names[0], (STATE,)), NetworkFeature(names[1], (*IMAGE, 3))),
        observation_steps=task.observation_steps,
        horizon=task.horizon,
        action_dim=ACTION,
        encoder=encoder,
        denoiser=ConditionalUnet(ACTION, task.observation_steps * encoder.step, widths),
        settings=DiffusionConfig(prediction="epsilon", sampling_steps=steps, spacing="leading", kept_noise="predicted"),
        observation={names[0]: unit[STATE]},
        action=unit[ACTION],
        action_spread=np.ones(ACTION),
    )


class Times(NamedTuple):
    """What one decision took, s: CPU time of encoding and sampling, time on the clock, CPU time of the reference."""

    encode: float
    sample: float
    clock: float
    product: float


def decided(policy: Policy, task: Task, samples: int, index: int) -> Times:
    """Time the samples of one decision, after the reference."""
    rng = np.random.default_rng(index)
    values = dict(blank_observation(task).values)
    values["observation.image"] = rng.integers(0, 256, (task.observation_steps, *IMAGE, 3), np.uint8)
    observation = Observation(0, values)  # of frames that are new, so that each is encoded
    matrix = torch.from_numpy(rng.standard_normal((PRODUCT, PRODUCT), dtype=np.float32))
    start, clock = process_time(), perf_counter()
    torch.mm(matrix, matrix)
    middle = process_time()
    clock = perf_counter()
    encoded = policy.encode(observation)
    after = process_time()
    policy.sample(encoded, samples, 0, rng)
    return Times(after - middle, process_time() - after, perf_counter() - clock, middle - start)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("widths", "512,1024,2048"), ("samples", "1,2,4,8,16,32")):
        parser.add_argument(f"--{name}", default=default)
    for name, number in (("steps", 10), ("rounds", 5), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    task = parse_task(TASK)
    made = full_size(task, tuple(map(int, options.widths.split(","))), options.steps)
    weights = sum(value.numel() for value in made.denoiser.parameters())
    with tempfile.TemporaryDirectory() as folder:
        bundle = write_imported(made, None, Path(folder) / "bundle", task)
        del made
        policy = load_policy(bundle, task, "onnx", options.threads)
        print(f"{weights / 1e6:.0f} million weights, {options.steps} steps, {options.threads} thread(s), onnxruntime\n")
        found: dict[int, list[Times]] = {int(count): [] for count in options.samples.split(",")}
        policy.warm_up(max(found))
        loads = [getloadavg()[0]]
        for index in range(options.rounds):
            for samples, times in found.items():
                times.append(decided(policy, task, samples, index))
            loads.append(getloadavg()[0])
        print("| N | encode, CPU ms | sample, CPU ms | a network call, CPU ms | calls | on the clock, ms |")
        print("|---|---|---|---|---|---|")
        for samples, times in found.items():
            encode, sample, clock, _ = 1e3 * np.median(times, axis=0)
            calls = np.median([item.sample / options.steps / item.product for item in times])
            each = sample / options.steps
            print(f"| {samples} | {encode:.1f} | {sample:.0f} | {each:.0f} | {calls:.1f} | {clock:.0f} |")
    product = 1e3 * np.median([item.product for times in found.values() for item in times])
    print(f"\nreference {product:.1f} ms; load {min(loads):.1f} to {max(loads):.1f}")


if __name__ == "__main__":
    main()
