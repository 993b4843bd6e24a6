"""The script ports: the twin knows ur_rtde's control script when it sees it and refuses every other program.

It does not interpret URScript. What the control script does is emulated (``program.py``); from the uploaded text come
only the offset of its registers and the path that ``movePath`` writes into it.
"""

import re
from dataclasses import dataclass
from typing import Final

from bid_ros.sim.net import Misbehaviour

# The real-time interface, to which ur_rtde uploads. Primary and secondary interface take programs, too.
SCRIPT_PORT: Final = 30003
MAX_SCRIPT: Final = 1_000_000  # bytes
MAX_WAYPOINTS: Final = 1000
LARGEST: Final = 1e6  # of any number a client gives; products of such numbers stay far from the largest float
_OFFSET: Final = re.compile(r"reg_offset_float = # float register offset\n(\d+)")
_MARKS: Final = ("def process_cmd(cmd):", "RTDE Control Script Loaded")
_PATH: Final = re.compile(r"# inject move path\n(.*?)^ *end$", re.DOTALL | re.MULTILINE)
_NUMBER: Final = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d\d?)?)"
_WAYPOINT: Final = re.compile(
    rf"(move[jl])\((p?)\[{','.join([_NUMBER] * 6)}\],a={_NUMBER},v={_NUMBER},r={_NUMBER}\)", re.ASCII
)


@dataclass(frozen=True)
class Waypoint:
    """One move of a path. Its blend radius is not used: the twin stops at each waypoint.

    Attributes:
        linear: straight in space (movel) instead of in joint angles (movej).
        is_pose: the target is a pose instead of joint angles.
        target: ``(6,)``.
        acceleration, speed: of the tool in m if linear, of the joints in rad otherwise.
    """

    linear: bool
    is_pose: bool
    target: tuple[float, ...]
    acceleration: float
    speed: float


@dataclass(frozen=True)
class ControlScript:
    """ur_rtde's control script as uploaded.

    Attributes:
        offset: of its registers: 0, or 24 for the upper range.
        path: what its path function does.
    """

    offset: int
    path: tuple[Waypoint, ...] = ()


def parse_script(text: str) -> ControlScript:
    """Return what a control script says.

    Raises:
        Misbehaviour: if it is another program or its path holds a move the twin does not know.
    """
    offset = _OFFSET.search(text)
    if offset is None or any(mark not in text for mark in _MARKS):
        first = text.strip().splitlines()[0][:60] if text.strip() else ""
        raise Misbehaviour(f"a program that begins '{first}'; the twin runs ur_rtde's control script only")
    if int(offset[1]) not in (0, 24):
        raise Misbehaviour(f"a control script with register offset {offset[1]}; valid are 0 and 24")
    injected = _PATH.search(text)
    return ControlScript(int(offset[1]), _parse_path(injected[1] if injected else ""))


def _parse_path(text: str) -> tuple[Waypoint, ...]:
    moves = [line.strip() for line in text.splitlines() if line.strip().startswith("move")]
    if len(moves) > MAX_WAYPOINTS:
        raise Misbehaviour(f"a path of {len(moves)} waypoints; valid are up to {MAX_WAYPOINTS}")
    return tuple(map(_parse_waypoint, moves))


def _parse_waypoint(line: str) -> Waypoint:
    found = _WAYPOINT.fullmatch(line)
    if found is None:
        raise Misbehaviour(f"a path with '{line[:60]}'; valid are movej and movel with a target, a, v and r")
    kind, pose, *numbers = found.groups()
    values = [float(number) for number in numbers]
    if max(map(abs, values)) > LARGEST:
        raise Misbehaviour(f"a path with '{line[:60]}'; valid are numbers up to {LARGEST:.0e}")
    return Waypoint(kind == "movel", bool(pose), tuple(values[:6]), *values[6:8])


def cut_program(text: bytearray) -> str:
    """Cut the first complete program off and return it, empty if there is none: a single line, or from def to its end.

    Raises:
        Misbehaviour: if the text is too long for a program.
    """
    if len(text) > MAX_SCRIPT:
        raise Misbehaviour(f"a script of over {MAX_SCRIPT} bytes")
    start = len(text) - len(text.lstrip())
    last = b"\nend\n" if text.startswith((b"def ", b"sec "), start) else b"\n"
    found = text.find(last, start)
    end = found + len(last) if found >= 0 else 0
    program = text[:end].decode("utf-8", "replace")
    del text[:end]
    return program
