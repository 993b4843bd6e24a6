"""A twin of its own from the command line, with the teach pendant and the emergency stop on standard input."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import Kinematics
from bid_ros.robots.ur.twin.controller import ARMS, RATES, UrController, UrControllerConfig
from bid_ros.robots.ur.twin.plant import KinematicPlant, Plant

# Upright over the table in front, tool down: rad, base to wrist 3.
INITIAL_Q: Final = (0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0)
READY: Final = "ready"

Lines = dict[str, Callable[[str], object]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a twin until its standard input ends; print ``ready ADDRESS`` once clients can connect."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        config = UrControllerConfig(
            address=options.address,
            generation=options.generation,
            remote_control=not options.local,
            unlock_delay_s=options.unlock_delay,
        )
        kinematics = ARMS[config.generation]
        twin = UrController(config, _plant(options.physics, options.initial_q, kinematics), kinematics)
        twin.start()
    except ArmError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        print(f"{READY} {twin.hostname}", flush=True)
        operate(twin, sys.stdin, sys.stdout)
    except KeyboardInterrupt:
        pass
    finally:
        twin.stop()
    return 0


def operate(twin: UrController, lines: TextIO, answers: TextIO) -> None:
    """Obey one pendant command a line until ``lines`` ends, with one answer each: ``ok`` or what is wrong."""
    commands: Lines = {
        "protective stop": lambda reason: twin.protective_stop(reason or "the pendant asked for it"),
        "emergency stop": lambda _: twin.emergency_stop(pressed=True),
        "release emergency stop": lambda _: twin.emergency_stop(pressed=False),
        "power off": lambda _: twin.power_off(),
        "stop program": lambda _: twin.stop_program(),
        "local": lambda _: twin.set_local_mode(True),
        "remote": lambda _: twin.set_local_mode(False),
        "statistics": lambda _: twin.statistics(),
    }
    for line in lines:
        print(_obey(commands, line.strip()), file=answers, flush=True)


def _obey(commands: Lines, line: str) -> str:
    for name, command in commands.items():
        if line == name or line.startswith(name + " "):
            try:
                answer = command(line[len(name) :].strip())
            except ArmError as error:
                return str(error)
            return "ok" if answer is None else str(answer)
    return f"unknown command '{line}'; valid are {', '.join(commands)}"


def _plant(physics: bool, initial_q: Sequence[float], kinematics: Kinematics) -> Plant:
    if not physics:
        return KinematicPlant(initial_q)
    from bid_ros.robots.ur.twin.mujoco_plant import standing_arm

    return standing_arm(initial_q, kinematics)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bid_ros.robots.ur.twin", description=main.__doc__)
    parser.add_argument("--address", default="127.0.0.1", help="IPv4 address of this computer to serve on")
    parser.add_argument(
        "--generation", choices=sorted(RATES), default="e-series", help="UR5e at 500 Hz or UR5 at 125 Hz"
    )
    parser.add_argument("--initial-q", type=float, nargs=6, default=INITIAL_Q, metavar="RAD", help="joint angles")
    parser.add_argument("--no-physics", dest="physics", action="store_false", help="the arm is where it is told to be")
    parser.add_argument("--local", action="store_true", help="start in local control")
    parser.add_argument("--unlock-delay", type=float, default=5.0, metavar="S", help="after a protective stop, s")
    return parser
