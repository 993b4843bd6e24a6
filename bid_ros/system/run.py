"""The arguments of a run, declared once. Verbs and launch files are both made from such declarations."""

from collections.abc import Mapping
from dataclasses import Field as DataclassField
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar, get_args, get_type_hints

from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.core.topics import check_namespace
from bid_ros.decoding.decoder_config import MOST_SAMPLES
from bid_ros.policy.decision_rate import FASTEST_HZ

_VALID: Final = {int: "is a whole number", float: "is a number", bool: "are true and false"}
RENAMED: Final = {"acts": "driver", "person": "human"}
LOG_LEVELS: Final = ("debug", "info", "warn", "error", "fatal")


def argument(default: Any, text: str, *ends: float) -> Any:
    """Return the field of an argument with its help; ``ends`` are those of the valid range of a number."""
    return field(default=default, metadata={"help": text, "ends": ends})


@dataclass(frozen=True)
class RunArguments:
    """The arguments of one run, besides the folder of its system. None: take the value of ``system.yaml``.

    Raises:
        BidError: a value is outside its range.
    """

    robot_ip: str = argument("", "address of the robot; without it the twin is started")
    peers: tuple[str, ...] = argument(
        (), "other computers on a robot's ROS graph, such as one with RViz: names or addresses"
    )
    driver: str | None = argument(None, "policy, or a teleoperation device such as scripted (default: system.yaml's)")
    styles: tuple[str, ...] = argument(
        (), "styles of scripted demonstrations, cycled over the episodes (default: all of the task's)"
    )
    device_settings: str = argument("", "settings of the teleoperation device in YAML, such as 'deadzone: 0.2'")
    takeover: str = argument("", "device with which a person takes over from the policy, such as gamepad")
    shadow: bool = argument(False, "the policy decides and is judged, and moves nothing; with takeover a person drives")
    unstaged: bool = argument(False, "let a robot move faster than its passed stages allow")
    prepare: bool = argument(True, "the arm goes to a start before each episode; else a person drives from where it is")
    human: bool = argument(False, "a person starts, ends and takes back episodes; each gets a bag of its own")
    image_codec: str = argument(
        "", "codec of recorded images: raw, png (without loss), jpeg or jpeg:QUALITY (default: nodes.yaml's, else raw)"
    )
    decoder: str | None = argument(None, "the decoder, such as bid or bid:variant=paper (default: system.yaml's)")
    samples: int | None = argument(None, "N, strong samples a decision (default: system.yaml's)", 1, MOST_SAMPLES)
    action_horizon: int | None = argument(None, "actions a decision; 1 = closed loop (default: system.yaml's)", 1, 64)
    decision_rate: float | None = argument(
        None,
        "decisions a second, a multiple of the task's rate, or 0: its rate (default: system.yaml's)",
        0.0,
        FASTEST_HZ,
    )
    bundle: str = argument("", "folder of the policy bundle (default: system.yaml's)")
    moving: float | None = argument(
        None, "target speed in the twin, m/s; 0 = static (default: system.yaml's)", 0.0, 0.1
    )
    slow: float = argument(1.0, "factor of the speed of the policy's motion and of homing, for first tries", 0.05, 1.0)
    episodes: int = argument(3, "how many episodes", 1, 100_000)
    seed: int = argument(0, "seed of the first episode", 0, 2**31 - 1)
    timeout: float | None = argument(None, "s after which an episode ends (default: the task's)", 1.0, 86_400.0)
    rviz: bool = argument(False, "start RViz, and the monitor that draws into it")
    record: bool = argument(True, "write a bag")
    out: str = argument("out", "folder for everything the run writes")
    namespace: str = argument("", "namespace of every node and topic, such as /left (default: the root)")
    parameters: str = argument("", "parameter file, laid over nodes.yaml")
    log_level: str = argument("info", f"log level of every node: {', '.join(LOG_LEVELS)}")

    def __post_init__(self) -> None:
        check_arguments(self)
        check_namespace(self.namespace)
        if self.peers and not self.robot_ip:
            raise BidError(
                f"peers are {', '.join(self.peers)}; valid with robot_ip: a twin's graph stays on this computer"
            )
        if self.log_level not in LOG_LEVELS:
            raise BidError(f"log_level is '{self.log_level}'; valid are {', '.join(LOG_LEVELS)}")


def check_arguments(given: Any) -> None:
    """Raise BidError if a number of a dataclass of arguments is outside its range."""
    for item in fields(given):
        if item.metadata["ends"] and getattr(given, item.name) is not None:
            low, high = item.metadata["ends"]
            check_range("", item.name, getattr(given, item.name), low, high, BidError)


def argument_fields(of: type[Any] = RunArguments) -> tuple[DataclassField[Any], ...]:
    """Return name, default and help (in ``metadata``) of every argument of a dataclass."""
    return fields(of)


def argument_kind(name: str, of: type[Any] = RunArguments) -> type[Any]:
    """Return the type of an argument without None; ``tuple`` for several texts."""
    hint = get_type_hints(of)[name]
    kind: type[Any] = next((part for part in get_args(hint) if part is not type(None)), hint)
    return tuple if get_args(hint)[-1:] == (Ellipsis,) else kind


Arguments = TypeVar("Arguments")


def parse_arguments(texts: Mapping[str, str], of: type[Arguments] = RunArguments) -> Arguments:  # type: ignore[assignment]
    """Build the arguments from texts, as a launch file has them. An empty text means the default.

    Raises:
        BidError: an argument is unknown, or a text has the wrong type or is outside its range.
    """
    names = [item.name for item in argument_fields(of)]
    for name in texts:
        if name in RENAMED:
            raise BidError(f"argument '{name}' is now '{RENAMED[name]}'")
        if name not in names:
            raise BidError(f"argument '{name}' does not exist; valid are {', '.join(names)}")
    return of(**{name: _parse(argument_kind(name, of), name, text) for name, text in texts.items() if text})


def _parse(kind: type[Any], name: str, text: str) -> Any:
    if kind is tuple:
        return tuple(text.replace(",", " ").split())
    try:
        return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise BidError(f"{name} is '{text}'; valid {_VALID[kind]}") from None
