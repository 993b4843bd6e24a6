"""The primary and the secondary interface: who the controller is, and the robot's state ten times a second.

Layouts are those of Universal Robots' guide to these interfaces, for a controller without an injection moulding
machine: big-endian, a size that counts itself, a type, fields. Every state has the parts of ``PARTS``; force mode,
additional and internal data are left out. Temperatures and voltages are a quiet arm's, inputs are zero, and the
kinematics are nominal, as of a robot that was never calibrated.
"""

import math
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final

from bid_ros.robots.ur.kinematics import JOINT_LIMIT
from bid_ros.robots.ur.twin.joint_motions import MAX_ACCELERATION, MAX_SPEED
from bid_ros.robots.ur.twin.machine import RuntimeState, SafetyMode, UrMachine
from bid_ros.robots.ur.twin.rtde_server import TEMPERATURE, VOLTAGE
from bid_ros.robots.ur.twin.script_port import cut_program, parse_script
from bid_ros.sim.net import Misbehaviour, TwinSession

PRIMARY_PORT: Final = 30001
SECONDARY_PORT: Final = 30002  # state and version, but no other message
RATE: Final = 10  # Hz

HEADER: Final = struct.Struct(">IB")
ROBOT_STATE: Final = 16
ROBOT_MESSAGE: Final = 20
VERSION: Final = 3
RUNTIME_EXCEPTION: Final = 10
SOURCE: Final = -2  # of a message: the controller
UR5: Final = 1  # type of robot, of UR5 and UR5e alike
VOLTS: Final = 1  # range of an analog input
NOT_CALIBRATED: Final = 0xFFFFFFFF
Fields = tuple[Any, ...]  # layout of a part in the notation of struct, and its values
# What UR's moves take where a program does not say: rad/s, rad/s^2, m/s, m/s^2, and m that make a rad.
MOVE_DEFAULTS: Final = (math.radians(60.0), math.radians(80.0), 0.25, 1.2, 0.25)


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
                self.machine.run(parse_script(text))
        except Misbehaviour as error:
            self.refuse(str(error))
            raise Misbehaviour(f"{self.name} sent {error}") from error

    def refuse(self, reason: str) -> None:
        """Let the connection be reset so that the client's next write fails, instead of vanishing."""
        linger = struct.pack("ii", True, 0)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.machine.release_uploader()


class PrimarySession(ScriptSession):
    """A client of one of the two interfaces, which is told the version first and may upload programs.

    Args:
        machine: the controller.
        told: whether the client is told why a program is refused.
    """

    def __init__(self, machine: UrMachine, told: bool) -> None:
        super().__init__(machine)
        self._told, self._cycle = told, 0

    def opened(self) -> None:
        """Say who the controller is."""
        self.send(version_message(self.machine.config.version, self.machine.clock_s))

    def publish(self) -> None:
        """Send the state, if it is due and the client has read the one before."""
        self._cycle = (self._cycle + 1) % (self.machine.config.rate // RATE)
        if not self._cycle:
            self.offer(robot_state(self.machine))

    def refuse(self, reason: str) -> None:
        """Say why a program is refused."""
        if self._told:
            self.send(exception_message(reason, self.machine.clock_s))


def version_message(version: Sequence[int], clock_s: float) -> bytes:
    """Return who the controller is.

    Args:
        version: major, minor, bugfix, build.
        clock_s: of the controller, s.
    """
    name = b"URControl"
    return _message(VERSION, clock_s, f"B{len(name)}sBBii4s", len(name), name, *version, b"twin")


def exception_message(text: str, clock_s: float) -> bytes:
    """Return why a program failed at its first line; ``clock_s`` is the controller's, s."""
    raw = text.encode()
    return _message(RUNTIME_EXCEPTION, clock_s, f"ii{len(raw)}s", 1, 1, raw)


def robot_state(machine: UrMachine) -> bytes:
    """Return the robot's state with all of its parts."""
    state = b"".join(_framed(kind, *part(machine)) for kind, part in enumerate(PARTS))
    return HEADER.pack(HEADER.size + len(state), ROBOT_STATE) + state


def _message(kind: int, clock_s: float, form: str, *values: float | bytes) -> bytes:
    return _framed(ROBOT_MESSAGE, f"QbB{form}", int(clock_s * 1e6), SOURCE, kind, *values)


def _framed(kind: int, form: str, *values: float | bytes) -> bytes:
    payload = struct.pack(f">{form}", *values)
    return HEADER.pack(HEADER.size + len(payload), kind) + payload


def _robot_mode(machine: UrMachine) -> Fields:
    slider, safety = machine.inputs.speed_slider, machine.safety_mode
    stopped = safety is SafetyMode.ROBOT_EMERGENCY_STOP, safety is SafetyMode.PROTECTIVE_STOP
    program = machine.runtime is RuntimeState.PLAYING, machine.paused
    flags = (True, True, machine.powered, *stopped, *program)  # connected and enabled
    speeds = slider, machine.robot.limiter(slider), 1.0
    position_control = 0
    form = "Q7?BB3dB"
    time_us = int(machine.clock_s * 1e6)
    return form, time_us, *flags, machine.robot_mode, position_control, *speeds, 0


def _joints(machine: UrMachine) -> Fields:
    robot, plant = machine.robot, machine.robot.plant
    columns = (plant.joint_positions, robot.q, plant.joint_velocities, plant.joint_currents)
    values: list[float] = []
    for joint in zip(*(column.tolist() for column in columns), strict=True):
        values += (*joint, VOLTAGE, TEMPERATURE, 0.0, machine.joint_mode)
    return "3d4fB" * 6, *values


def _tool(machine: UrMachine) -> Fields:
    inputs, output = (VOLTS, VOLTS, 0.0, 0.0), (0, 0.0)
    return "BBddfBffB", *inputs, VOLTAGE, *output, TEMPERATURE, machine.tool_mode


def _masterboard(machine: UrMachine) -> Fields:
    inputs = machine.inputs
    kinds = inputs.analog_output_types & 1, inputs.analog_output_types >> 1
    board = (TEMPERATURE, VOLTAGE, 0.0, 0.0)
    values = (0, inputs.digital_outputs, VOLTS, VOLTS, 0.0, 0.0, *kinds, *inputs.analog_outputs, *board)
    return "IIBBddBBdd4fBBBIBBB", *values, machine.safety_mode, *(0,) * 6


def _cartesian(machine: UrMachine) -> Fields:
    robot = machine.robot
    return "12d", *robot.pose().tolist(), *robot.tcp


def _kinematics(machine: UrMachine) -> Fields:
    a, d, alpha = zip(*machine.robot.kinematics.table, strict=True)
    return "6I24dI", *(NOT_CALIBRATED,) * 6, *(0.0,) * 6, *a, *d, *alpha, 0


def _configuration(machine: UrMachine) -> Fields:
    a, d, alpha = zip(*machine.robot.kinematics.table, strict=True)
    limits = (-JOINT_LIMIT, JOINT_LIMIT) * 6 + (MAX_SPEED, MAX_ACCELERATION) * 6
    return "53d4i", *limits, *MOVE_DEFAULTS, *a, *d, *alpha, *(0.0,) * 6, 0, 0, UR5, 0


PARTS: Final = (_robot_mode, _joints, _tool, _masterboard, _cartesian, _kinematics, _configuration)
"""The parts of a robot state, in the order of their types from 0."""
