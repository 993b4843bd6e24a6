"""Whose fault a stop was: safety refused what the policy asked for, or a part failed that is no part of the policy."""

from collections.abc import Mapping
from typing import Final

from bid_ros.core.fault_words import BUSY, CLOCK_GAINED, COMMANDS_LOST, DRIVER, LINK, NO_SETPOINT
from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY, EpisodeOutcome
from bid_ros.system.ended import Ended

CAMERA, CLOCK, NETWORK, ROBOT, COMPUTER = PARTS = ("camera", "clock", "network", "robot", "computer")
"""What can fail beside the policy: codes of outcomes of class infrastructure."""

RULES: Final[Mapping[str, str]] = {
    "heartbeat:camera": CAMERA,
    "heartbeat": COMPUTER,  # of any other node
    "grant": COMPUTER,  # the episode node, which renews it, was held up
    "waiting": COMPUTER,  # the safety node waits again for a node that was silent
    "measurement": COMPUTER,  # the arm's state comes late
    "time": COMPUTER,  # chunks come late; by more than LATE_S, or early: CLOCK
    "fault": ROBOT,  # a fault whose sentence has one of the words below: that part
    "publisher": NETWORK,  # a second node publishes what moves the arm
    "partner": ROBOT,  # another arm of the same policy stopped; what it says comes first where it is known
}
"""The failed part of each rule of :class:`bid_msgs.msg.SafetyState` that says nothing against the policy.

Every other rule is a limit that the policy broke: an outcome of class safety, whose code is the rule.
"""

PACE: Final = "real_time_factor"
"""Key of a twin's diagnostics: the share of real time that its physics kept over the last 5 s."""
BEHIND: Final = "lost_s"
"""Key of a twin's diagnostics: the time in s that its physics left out since its start."""
SLOW_TWIN: Final = 0.9
"""Share of real time below which a twin's physics lags behind what is commanded by this computer's clock."""

LATE_S: Final = 5.0  # no computer that still decides is later; a clock may be
_EARLY: Final = "ahead of now"  # in the envelope's sentence of a stamp from the future
# In order: what is said of a twin that was late names the computer, too. A robot's reflex after lost commands has three
# causes that nobody tells apart here, cable, switch and computer: it counts as the network between them.
_FAULTS: Final[Mapping[str, str]] = {
    CLOCK_GAINED: CLOCK,
    NO_SETPOINT: COMPUTER,
    DRIVER: COMPUTER,
    BUSY: COMPUTER,
    COMMANDS_LOST: NETWORK,
    **dict.fromkeys(LINK, NETWORK),
}
# Beginnings of the arm node's own reasons, and the rule of the safety node that says the same.
_SAFETY_SAID: Final = "safety stopped: "
_ARM_RULES: Final[Mapping[str, str]] = {
    "no sign of life from 'camera'": "heartbeat:camera",
    "no sign of life from": "heartbeat",
    "nobody renewed the grant": "grant",
}
_PUBLISHERS: Final = "nodes publish"
# Words in the reasons of pauses. The first that is found counts: a clock that was set makes images look old, too.
_WORDS: Final[Mapping[str, str]] = {
    "clock": CLOCK,
    "images of": CAMERA,
    "camera": CAMERA,
    "grants": COMPUTER,
    "no sign of life": COMPUTER,
    BUSY: COMPUTER,  # from a twin that was silent
    "samples of": ROBOT,
    "robot at": ROBOT,
}
ARM_ENDS: Final = "the arm node ends"
"""What the arm node says last. It stops nothing by itself: whoever ends the run says why."""


def outcome_of_safety(
    rule: str, reason: str, measured: float = float("nan"), twin: bool = False, pace: float = 1.0
) -> EpisodeOutcome:
    """Return how an episode ended that the safety node stopped.

    Args:
        rule, reason, measured: of its state; ``measured`` is in the unit of the rule.
        twin: the robot is a twin. Its link is this computer, so one that is silent tells of a computer that is late.
        pace: share of real time that the twin kept. Below ``SLOW_TWIN`` a stop tells of the computer.
    """
    part = RULES.get(rule) or RULES.get(rule.partition(":")[0])
    text = f"stopped: {reason}"
    if twin and pace < SLOW_TWIN and part in (None, ROBOT):
        return EpisodeOutcome(f"{text} (the twin kept {pace:.2f} of real time)", INFRASTRUCTURE, COMPUTER)
    if part is None:
        return EpisodeOutcome(text, SAFETY, rule or "stopped")
    if rule == "time" and (_EARLY in reason or measured > LATE_S):
        part = CLOCK
    if rule == "fault":
        part = next((named for word, named in _FAULTS.items() if word in reason), part)
        part = COMPUTER if twin and part == NETWORK else part
    return EpisodeOutcome(text, INFRASTRUCTURE, part)


def rule_of_arm(reason: str, fault: bool) -> str:
    """Return the rule under which the safety node would have stopped for what the arm node says.

    Args:
        reason: of the arm's status.
        fault: the robot reports it; otherwise the arm node stopped the arm by itself.
    """
    if fault:
        return "fault"
    if of_safety(reason):
        return "arm"
    if _PUBLISHERS in reason:
        return "publisher"
    found = (rule for beginning, rule in _ARM_RULES.items() if reason.startswith(beginning))
    return next(found, "fault")  # by itself it stops for a gripper that fails, and for no more


def part_of_pause(reason: str) -> str:
    """Return the failed part that the reason of a pause names; empty if it names none, as for a slow policy."""
    return next((part for word, part in _WORDS.items() if word in reason), "")


def of_safety(reason: str) -> bool:
    """Whether the arm node stopped because the safety node had: that one says why."""
    return reason.startswith(_SAFETY_SAID)


def outcome_of_end(ended: Ended | None) -> EpisodeOutcome:
    """Return how an episode ended during which the run ended; None: because somebody asked for its end.

    A node that ends by itself says that its device failed. One that is killed or hangs tells of the computer.
    """
    if ended is None:
        return EpisodeOutcome("aborted: shut down", INFRASTRUCTURE, "shutdown")
    devices = {"camera": CAMERA, "arm": ROBOT}
    by_itself = ended.status is not None and ended.status > 0
    part = devices.get(ended.name.rpartition(".")[2], COMPUTER) if by_itself else COMPUTER
    return EpisodeOutcome(f"aborted: {ended}", INFRASTRUCTURE, part)
