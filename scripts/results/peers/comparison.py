"""Times ours beside the peers' procedures in one run, and beside what the machine could do."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Final

import onnx
import torch

from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Graphs
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.diffusion.policy import ENCODING, DiffusionPolicy
from bid_ros.policy.diffusion.sampler import Sampler
from bid_ros.policy.runtimes.registry import build_runtime
from results.floor import FLOAT_BYTES, Work, operations
from results.machine import Machine
from results.peers.eager import EagerMaker, Networks, SchedulerName
from results.timing import STAGES, Durations, Procedure, StageTime, alternate, summarise

OURS: Final = "bid_ros"
_MODE_SIZE: Final = 3
_DOUBLE_BYTES: Final = 8


@dataclass(frozen=True)
class Peer:
    """A procedure to compare with.

    Attributes:
        scheduler: how it denoises.
        steps: network calls a sample; 0: as many as the bundle's own sampler.
    """

    scheduler: SchedulerName
    steps: int = 0

    def name(self, own_steps: int) -> str:
        """Return its name in the table."""
        return f"eager, {self.scheduler.upper()} {self.steps or own_steps}"


@dataclass(frozen=True)
class Setup:
    """What is compared.

    Attributes:
        bundle: the policy.
        networks: the same policy in PyTorch: strong, and weak where there is one.
        task: its task.
        samples: N, of the strong and of the weak policy each.
        runtime: of ours.
        threads: of ours and of PyTorch.
    """

    bundle: Bundle
    networks: list[Networks]
    task: Task
    samples: int = 16
    runtime: str = "auto"
    threads: int = 1


@dataclass(frozen=True)
class Floor:
    """What a stage does at least, and how long the machine needs for it at least.

    Attributes:
        flops, bytes: see :class:`Work`.
        ms: the floor.
        ratio: of our median to it.
    """

    flops: float
    bytes: float
    ms: float
    ratio: float


@dataclass(frozen=True)
class Comparison:
    """The result.

    Attributes:
        ours: name of our sampling.
        times: per procedure and stage.
        floors: per stage.
        flops_per_s, bytes_per_s: what the machine delivered in this run, medians.
        best_flops_per_s, best_bytes_per_s: at best.
        decisions: of each procedure.
    """

    ours: str
    times: dict[str, dict[str, StageTime]]
    floors: dict[str, Floor]
    flops_per_s: float
    bytes_per_s: float
    best_flops_per_s: float
    best_bytes_per_s: float
    decisions: int

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)


def compare_peers(setup: Setup, peers: Sequence[Peer], decisions: int, warm_up: int) -> Comparison:
    """Alternate ours and the peers, decision by decision, and measure the machine between them.

    Args:
        setup: what is compared.
        peers: procedures to compare with.
        decisions: of each procedure that count.
        warm_up: decisions of each procedure before these.

    Raises:
        BidError: a number is outside its range.
    """
    own = setup.bundle.settings.sampling_steps
    for name, value, most in (
        ("samples", setup.samples, 256),
        ("decisions", decisions, 100_000),
        ("threads", setup.threads, 256),
    ):
        if not 1 <= value <= most:
            raise BidError(f"{name} is {value}; valid is 1 to {most}")
    for peer in peers:
        if peer.steps > setup.bundle.settings.train_steps:
            raise BidError(f"{peer.steps} steps are asked for; valid is up to {setup.bundle.settings.train_steps}")
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(setup.threads)
    try:
        ours = f"{OURS}, {setup.bundle.settings.sampler.upper()} {own}"
        procedures: dict[str, Procedure] = {ours: our_procedure(setup)}
        for peer in peers:
            maker = EagerMaker(
                setup.networks, setup.bundle, setup.task, peer.scheduler, peer.steps or own, setup.samples
            )
            procedures[peer.name(own)] = maker.decide
        work = decision_work(setup.bundle, setup.task, setup.samples)
        machine = Machine(build_runtime(setup.runtime, setup.threads), _working_set(setup))
        rows = alternate(procedures, setup.task, decisions, warm_up, machine.measure)
    finally:
        torch.set_num_threads(threads)
    times = summarise(rows, ours)
    floors = {}
    for stage in STAGES:
        floor_ms = 1e3 * work[stage].seconds(machine.flops_per_s, machine.bytes_per_s)
        floors[stage] = Floor(work[stage].flops, work[stage].bytes, floor_ms, times[ours][stage].p50_ms / floor_ms)
    return Comparison(ours, times, floors, machine.flops_per_s, machine.bytes_per_s, *machine.best, decisions)


def our_procedure(setup: Setup) -> Procedure:
    """Return a live decision: policy, decoder BID and decision maker, as the policy node has them."""
    policy = DiffusionPolicy(setup.bundle, setup.task, setup.runtime, setup.threads)
    policy.warm_up(setup.samples)
    maker = DecisionMaker(policy, bundle_decoder("bid", setup.bundle, setup.task, setup.samples, 1), setup.task, 0)

    def decide(observation: Observation) -> Durations:
        record = maker.decide(observation)
        if record is None:
            raise BidError("the decoder made no decision")
        return record.encode_ns, record.sample_ns, record.choose_ns

    return decide


def decision_work(bundle: Bundle, task: Task, samples: int) -> dict[str, Work]:
    """Return what each stage of one decision does at least: N strong samples, and N weak ones where there are any."""
    policies = [files for files in (bundle.strong, bundle.weak) if files is not None]
    # Of each observation, one frame is new.
    encoders = {files[role] for files in policies for role in ENCODING if role in files}
    work = {
        "encode": sum((operations(path, {}) for path in encoders), Work()),
        "sample": sum((_sampling_work(files, bundle, task, samples) for files in policies), Work()),
        "choose": _choice_work(samples, task, len(policies)),
    }
    return work | {"whole": sum(work.values(), Work())}


def _sampling_work(files: Graphs, bundle: Bundle, task: Task, samples: int) -> Work:
    chunks = (samples, task.horizon, task.action_dim)
    if "sampler" in files:
        return operations(files["sampler"], {"noise": (Sampler(bundle.settings).noises, *chunks)})
    return operations(files["denoiser"], {"sample": chunks}) * int(bundle.settings.calls)


def _choice_work(samples: int, task: Task, policies: int) -> Work:
    """Distances to the previous decision, and of the kept samples to each other: three operations a value."""
    values, kept = prod((task.horizon, task.action_dim)), max(1, samples // _MODE_SIZE)
    pairs = policies * (samples + kept**2)
    return Work(3.0 * values * pairs, float(_DOUBLE_BYTES * values * policies * samples))


def _working_set(setup: Setup) -> float:
    """Return the bytes of the weights that a network call reads again and again."""
    graph = onnx.load(setup.bundle.strong["denoiser"]).graph
    return float(sum(FLOAT_BYTES * prod(item.dims) for item in graph.initializer))
