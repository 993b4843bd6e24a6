"""A twin of its own from the command line, with the teach pendant and the emergency stop on standard input."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TextIO

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import Kinematics
from bid_ros.robots.ur.twin.config import ARMS, RATES, UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.machine import UrMachine
from bid_ros.robots.ur.twin.plant import KinematicPlant, Plant

# Upright over the table in front, tool down: rad, base to wrist 3.
INITIAL_Q: Final = (0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0)
READY: Final = "ready"
STATISTICS: Final = "statistics"


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
    for line in lines:
        print(_obey(twin, line.strip()), file=answers, flush=True)


def _obey(twin: UrController, line: str) -> str:
    if line == STATISTICS:
        return str(twin.statistics())
    for name, command in COMMANDS.items():
        if line == name or line.startswith(name + " "):
            try:
                twin.loop.call(partial(command, twin.machine, line[len(name) :].strip()))
            except ArmError as error:
                return str(error)
            return "ok"
    return f"unknown command '{line}'; valid are {', '.join([*COMMANDS, STATISTICS])}"


def _switch(remote: bool, machine: UrMachine, _: str) -> None:
    """Switch to remote or local control. A program that runs goes on.

    In local mode the e-Series takes no scripts and no dashboard commands that act.
    """
    machine.remote_control = remote


def _set_speed(machine: UrMachine, percent: str) -> None:
    """Move the speed slider to 0 to 100 %."""
    try:
        fraction = float(percent) / 100
    except ValueError:
        fraction = -1.0
    if not 0.0 <= fraction <= 1.0:
        raise ArmError(f"speed is '{percent}'; valid is 0 to 100")
    machine.robot.speed_fraction = fraction


COMMANDS: Final[dict[str, Callable[[UrMachine, str], None]]] = {
    "protective stop": lambda machine, reason: machine.protective_stop(reason or "the pendant asked for it"),
    "emergency stop": lambda machine, _: machine.emergency_stop(),
    "release emergency stop": lambda machine, _: machine.release_emergency_stop(),
    "power off": lambda machine, _: machine.power_off(),
    "power on": lambda machine, _: machine.brake_release(),
    "stop program": lambda machine, _: machine.end_program("the pendant stopped it"),
    "speed": _set_speed,
    "local": partial(_switch, False),
    "remote": partial(_switch, True),
}


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
