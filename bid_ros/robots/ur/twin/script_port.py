"""The script port: the twin knows ur_rtde's control script when it sees it and refuses every other program.

It does not interpret URScript, but for the line ``stop program``. What the control script does is emulated
(``program.py``).
"""

import re
import socket
import struct
from typing import Final

from bid_ros.robots.ur.twin.machine import UrMachine
from bid_ros.sim.net import Misbehaviour, TwinSession

# The real-time interface, to which ur_rtde uploads.
SCRIPT_PORT: Final = 30003
OTHER_PORTS: Final = (30001, 30002)  # the primary and the secondary interface take programs too
STOP: Final = "stop program"  # what any program on the network may send to end the one that runs
MAX_SCRIPT: Final = 1_000_000  # bytes
_OFFSET: Final = re.compile(r"reg_offset_float = # float register offset\n(\d+)")
_MARKS: Final = ("def process_cmd(cmd):", "RTDE Control Script Loaded")


class ScriptSession(TwinSession):
    """A client that uploads programs; ``machine`` is the controller."""

    def __init__(self, machine: UrMachine) -> None:
        self.machine = machine
        self._text = bytearray()

    def received(self, data: bytes) -> None:
        """Collect programs, and run each once it is complete.

        Raises:
            Misbehaviour: if one is too long or not a program the twin knows.
        """
        self._text += data
        try:
            while text := cut_program(self._text):
                if text.strip() == STOP:
                    self.machine.stop_by_script()
                    continue
                demand_control_script(text)
                self.machine.run()
        except Misbehaviour as error:
            self.refuse()
            raise Misbehaviour(f"{self.name} sent {error}") from error

    def refuse(self) -> None:
        """Let the connection be reset so that the client's next write fails, instead of vanishing."""
        linger = struct.pack("ii", True, 0)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.machine.release_uploader()


def demand_control_script(text: str) -> None:
    """Raise Misbehaviour if a program is another one than ur_rtde's control script, or uses other registers."""
    offset = _OFFSET.search(text)
    if offset is None or any(mark not in text for mark in _MARKS):
        first = text.strip().splitlines()[0][:60] if text.strip() else ""
        shown = first.encode("unicode_escape").decode("ascii")  # no control character reaches a terminal
        raise Misbehaviour(f"a program that begins '{shown}'; the twin runs ur_rtde's control script only")
    if int(offset[1]) != 0:
        raise Misbehaviour(f"a control script with register offset {offset[1]}; valid is 0")


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
