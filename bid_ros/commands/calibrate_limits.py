"""``bid calibrate limits``: the table, the workspace and the start box, from points that a person shows."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from bid_ros.core.errors import CalibrationError
from bid_ros.core.topics import check_namespace
from bid_ros.system.folder import System
from bid_ros.system.stages import read_record

if TYPE_CHECKING:
    from bid_ros.calibration.limits import LimitBox, MeasuredLimits, TablePlane


def run_limits(system: System, options: argparse.Namespace) -> int:
    """Measure limits of a system, show a person what changes, and write it if the answer is yes. Return 0.

    Args:
        system: whose limits; it runs.
        options: of ``bid calibrate``; ``camera`` names the part, none means all.

    Raises:
        BidError: an option is not valid, the arm is silent, or the person ends it or does not say yes; nothing is
            written.
    """
    from bid_ros.calibration.limits import MARGIN_M, PARTS, check_margin, limits_of
    from bid_ros.nodes.limits_run import LimitsSession, guided_limits

    if options.camera and options.camera not in PARTS:
        raise CalibrationError(f"'{options.camera}' is no limit; valid are {', '.join(PARTS)}, or none for all")
    for name, given in (("--drive", options.drive), ("--from", options.taken), ("--out", options.out)):
        if given:
            raise CalibrationError(f"{name} is given; it is not valid with limits: a person moves the arm there")
    margin = MARGIN_M if options.margin is None else options.margin
    check_margin(margin)
    parts = (options.camera,) if options.camera else PARTS
    namespace, say = check_namespace(options.namespace), partial(print, file=sys.stderr, flush=True)
    session = LimitsSession(system, parts, margin, not options.robot_ip, namespace, say, _asked)
    before = limits_of(system.task)
    limits = guided_limits(session, lambda new: _agreed(system, before, new, parts, options.robot_ip))
    if options.json:
        told = {part: {"before": _plain(before, part), "after": _plain(limits, part)} for part in parts}
        print(json.dumps(told))
    else:
        print(f"wrote        {system.folder / 'task.yaml'}; start the system again: what runs has the old limits")
    return 0


def changes(before: "MeasuredLimits", after: "MeasuredLimits", parts: Sequence[str]) -> str:
    """Return for a person what changes, a line each: the part, old values -> new ones, in m."""
    return "\n".join(f"{part:<12} {_told(getattr(before, part))} -> {_told(getattr(after, part))}" for part in parts)


def _agreed(
    system: System, before: "MeasuredLimits", after: "MeasuredLimits", parts: Sequence[str], address: str
) -> bool:
    from bid_ros.calibration.limits_file import FILE, write_limits

    print(changes(before, after, parts), file=sys.stderr)
    if address and read_record(system, address).passed:
        print(f"the stages that {address} has passed begin anew after it", file=sys.stderr)
    if _asked(f"write this into {system.folder / FILE}? yes, or anything else:").lower() != "yes":
        return False
    write_limits(system, after, parts)
    return True


def _told(limit: "LimitBox | TablePlane | None") -> str:
    from bid_ros.calibration.limits import TablePlane

    if limit is None:
        return "none"
    if isinstance(limit, TablePlane):
        return f"offset {limit.offset:.4f} m, normal [{', '.join(f'{value:.4f}' for value in limit.normal)}]"
    corners = (", ".join(f"{value:.3f}" for value in corner) for corner in (limit.low, limit.high))
    return f"{' to '.join(f'[{corner}]' for corner in corners)} m"


def _plain(limits: "MeasuredLimits", part: str) -> Any:
    found = getattr(limits, part)
    return None if found is None else asdict(found)


def _asked(question: str) -> str:
    print(question, end=" ", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise CalibrationError("nobody answers here any more, so nothing is written; valid is a terminal")
    return answer.strip()
