"""Measure the period at which set-points go to a UR: a minute on a circle, in the twin, at 125 and at 500 Hz.

Usage: ur-servo-period [SECONDS] [BUSY]. BUSY processes that do nothing but compute run beside it (default 0).
"""

from __future__ import annotations

import math
import subprocess
import sys
import time

import numpy as np
from computing import computing

from bid_ros.control.setpoint import Setpoint
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.driver import UrArm

PERIOD_S = 0.01
RADIUS_M, SPEED_M_S = 0.05, 0.1
ADDRESSES = {"cb3": "127.0.0.21", "e-series": "127.0.0.22"}  # 125 and 500 Hz


def stream_circle(arm: UrArm, seconds: float) -> None:
    """Stream set-points on a horizontal circle through where the tool is, on an absolute schedule."""
    state = arm.state()
    place, quaternion = state.tool_position, state.tool_quaternion
    rate = SPEED_M_S / RADIUS_M
    begin = time.monotonic()
    for k in range(round(seconds / PERIOD_S)):
        angle = rate * (time.monotonic() - begin)
        offset = RADIUS_M * np.array([math.cos(angle) - 1.0, math.sin(angle), 0.0])
        velocity = SPEED_M_S * np.array([-math.sin(angle), math.cos(angle), 0.0])
        arm.command(Setpoint(place + offset, quaternion, velocity, np.zeros(3)))
        time.sleep(max(0.0, begin + (k + 1) * PERIOD_S - time.monotonic()))


def measure(generation: str, seconds: float) -> str:
    """Return a line of the table."""
    address = ADDRESSES[generation]
    command = [
        sys.executable,
        "-m",
        "bid_ros.robots.ur.twin",
        "--address",
        address,
        "--generation",
        generation,
    ]
    twin = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert twin.stdout is not None and twin.stdout.readline().startswith("ready")
        arm = UrArm(UrConfig(address, twin=True, model="ur5e", gripper=None))
        arm.connect()
        arm.start()
        stream_circle(arm, seconds)
        found = arm.statistics()
        arm.stop()
        arm.close()
    finally:
        twin.communicate(timeout=10.0)
    numbers = f"{found.p50_ms:.2f} | {found.p99_ms:.2f} | {found.max_ms:.1f} | {found.longest_echo_ms:.0f}"
    return f"| {generation} | {found.nominal_ms:g} | {numbers} | {found.count} | {found.skipped} |"


def main() -> int:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    print(
        "| controller | nominal ms | p50 | p99 | max | longest echo | periods | skipped |\n" + "|---" * 8 + "|",
        flush=True,
    )
    with computing(int(sys.argv[2]) if len(sys.argv) > 2 else 0):
        for generation in ADDRESSES:
            print(measure(generation, seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
