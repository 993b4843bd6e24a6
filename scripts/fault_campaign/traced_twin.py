"""The twin node, with a trace of the true joints 100 times a second, and buttons that a robot's pendant has.

It is a program that takes the arguments of the node. ``FAULT_TRACE`` names the file of the trace: rows of float64 with
the steady time in s, the simulated time in s, and seven joints in rad (of a robot with six, the seventh means nothing).
The word in the file of that name with ``.press`` is a button, which is pressed once, and the file removed.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.core.schedule import PeriodicThread, Tick
from bid_ros.nodes.twin_node import TwinNode

PERIOD_NS: Final = 10_000_000
JOINTS: Final = 7
EVERY: Final = 6  # joints that each robot has
STILL_RAD: Final = 1e-3  # of a joint in ``STILL_S``: the tool moves by less than 1 mm
STILL_S: Final = 0.6
LONGEST_S: Final = 3.0


def press(twin: Any, button: str) -> None:
    """Press a button of a twin, between two steps: ``protective stop``, ``emergency stop``, ``reflex``."""
    if hasattr(twin.controller, "machine"):
        machine = twin.controller.machine
        {"protective stop": lambda: machine.protective_stop("contact"), "emergency stop": machine.emergency_stop}[
            button
        ]()
        return
    from bid_ros.robots.franka.twin.reflexes import Reflex

    robot = twin.controller.robot
    robot._abort(Reflex.COMMUNICATION, "the campaign asked for a reflex")


class TracedTwin(TwinNode):
    """The twin node with a trace. Its steps are those of the plain one, but it ends only once its robot is still.

    A robot that brakes does so whoever has ended. A twin that ended before would be one that nobody saw at rest.
    """

    def begin(self) -> None:
        """Serve the robot, then begin the trace."""
        super().begin()
        path = Path(os.environ["FAULT_TRACE"])
        self._trace = path.open("wb", buffering=0)
        self._buttons = path.with_suffix(path.suffix + ".press")
        self._stood, self._moved_s = np.zeros(EVERY), time.monotonic()
        self._tracer = PeriodicThread("trace", PERIOD_NS, self._note)
        self._tracer.start()

    def close(self) -> None:
        """Wait for rest, end the trace, then the simulation."""
        most = time.monotonic() + LONGEST_S
        while time.monotonic() < min(most, self._moved_s + STILL_S):
            time.sleep(PERIOD_NS / 1e9)
        self._tracer.stop()
        super().close()

    def _note(self, _: Tick) -> None:
        twin: Any = self._twin
        data = twin._data if hasattr(twin, "_data") else twin._simulator.data
        if self._buttons.exists():
            button = self._buttons.read_text()
            self._buttons.unlink()
            twin._loop.call(lambda: press(twin, button))
        row = twin._loop.call(lambda: np.array([time.monotonic(), data.time, *data.qpos[:JOINTS]]))
        joints = row[2 : 2 + EVERY]
        if np.abs(joints - self._stood).max() > STILL_RAD:
            self._stood, self._moved_s = joints, float(row[0])
        self._trace.write(row.tobytes())


if __name__ == "__main__":
    TracedTwin.main()
