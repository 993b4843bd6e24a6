"""The nodes of a replay: a bag in the place of cameras and arm. Nothing of it reaches a robot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError
from bid_ros.core.topics import CLOCK, TF, TF_STATIC, check_namespace
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.system.description import NodeSpec
from bid_ros.system.folder import BESIDE_BUNDLE, POLICY, PolicySettings, System
from bid_ros.system.run import LOG_LEVELS, argument, check_arguments

REPLAY: Final = "replay"
OVERRIDES: Final = ("decoder", "samples", "action_horizon", "seed")
LIVE_ONLY: Final = ("budget_ms",)
"""Parameters of the live policy node alone."""
NAMESPACED: Final = {f"/{CLOCK}": CLOCK, TF: TF.strip("/"), TF_STATIC: TF_STATIC.strip("/")}
"""Names that live systems share, and those that a replay has in its namespace."""


@dataclass(frozen=True)
class ReplayArguments:
    """The arguments of a replay through live nodes. None: as recorded, or as ``system.yaml`` says.

    Raises:
        BidError: a value is outside its range.
    """

    bag: str = argument("", "the bag: its folder or file")
    remap: tuple[str, ...] = argument((), "recorded names of topics, each as TOPIC:=/RECORDED/NAME")
    decoder: str | None = argument(None, "the decoder, such as bid or bid:variant=paper (default: as recorded)")
    samples: int | None = argument(None, "N, strong samples a decision (default: as recorded)", 1, MOST_SAMPLES)
    action_horizon: int | None = argument(None, "actions executed a decision (default: as recorded)", 1, 64)
    seed: int | None = argument(None, "seed of the sampling noise (default: as recorded)", 0, 2**31 - 1)
    bundle: str = argument("", "folder of the policy bundle (default: system.yaml's)")
    speed: float = argument(1.0, "factor of the recorded speed; 0: as fast as the policy decides", 0.0, 100.0)
    step: bool = argument(
        False, "pause at each decision until the service replay/step is called, or [enter] without nodes"
    )
    record: bool = argument(False, "write a bag of the replay")
    rviz: bool = argument(False, "start RViz, and the monitor that draws into it")
    out: str = argument("out/replay", "folder for what the replay writes")
    namespace: str = argument(f"/{REPLAY}", "namespace of its nodes and topics; no live system may have it")
    log_level: str = argument("info", f"log level of every node: {', '.join(LOG_LEVELS)}")

    def __post_init__(self) -> None:
        check_arguments(self)
        if not check_namespace(self.namespace):
            raise BidError("namespace is the root, where live systems are; valid for a replay is one like /replay")


def describe_replay(system: System, arguments: ReplayArguments) -> list[NodeSpec]:
    """Return the nodes of a replay. The one named ``replay`` ends it.

    Raises:
        BidError: a file of the system is not valid, there is no policy bundle, or the bag cannot be read.
    """
    # rosbags takes a tenth of a second to import.
    from bid_ros.recording.bag_topics import origin_of, read_remapped
    from bid_ros.recording.provenance import in_twin
    from bid_ros.recording.reader import BagReader

    if not arguments.bag:
        raise BidError("a replay needs a bag, and none is named; valid is its folder or file, as in bag:=out/run/bag")
    remapped = read_remapped(arguments.remap)
    with BagReader(arguments.bag, remapped) as reader:
        origin, twin = origin_of(reader), in_twin(reader.custom)
    namespace = check_namespace(arguments.namespace)
    out = Path(arguments.out).resolve()
    task = {"task": str(system.file("task.yaml"))}
    policy = _policy_parameters(system, arguments, twin)
    nodes = {
        POLICY: NodeSpec(POLICY, "replay_policy_node", {**task, **policy, "use_sim_time": True}),
        REPLAY: NodeSpec(
            REPLAY,
            "replay_node",
            {
                "task": policy.get("bundle_task", task["task"]),
                "bundle": policy["bundle"],
                **_player_parameters(arguments, out),
            },
        ),
    }
    if arguments.record:
        nodes["recorder"] = NodeSpec(
            "recorder", "recorder_node", {**task, "bag": str(out / "bag"), "use_sim_time": True}
        )
    if arguments.rviz:
        cameras = {"cameras": str(system.file("cameras.yaml")), "twin": twin, "use_sim_time": True}
        nodes["monitor"] = NodeSpec("monitor", "monitor_node", {**task, **cameras, **system.joint_parameters(twin)})
    return [
        NodeSpec(
            spec.name,
            spec.executable,
            {**_node_parameters(system, spec.name), **spec.parameters, **origin},
            namespace,
            arguments.log_level,
            NAMESPACED,
        )
        for spec in nodes.values()
    ]


def _node_parameters(system: System, node: str) -> dict[str, Any]:
    """Return the parameters of a node in the system's folder."""
    return {name: value for name, value in system.parameters.get(node, {}).items() if name not in LIVE_ONLY}


def _policy_parameters(system: System, arguments: ReplayArguments, twin: bool) -> dict[str, Any]:
    given = {name: getattr(arguments, name) for name in OVERRIDES if getattr(arguments, name) is not None}
    settings: PolicySettings = system.settings.policy
    kept = {name: value for name, value in vars(settings).items() if name not in BESIDE_BUNDLE}
    return {
        **kept,
        **system.bundle_parameters(),
        **system.arm_parameters(twin),
        "bundle": str(system.bundle(arguments.bundle)),
        **given,
        "changed": list(given) or [""],
    }


def _player_parameters(arguments: ReplayArguments, out: Path) -> dict[str, Any]:
    return {
        "bag": str(Path(arguments.bag).resolve()),
        "remapped": list(arguments.remap) or [""],
        "speed": float(arguments.speed),
        "paused": arguments.step,
        "out": str(out),
    }
