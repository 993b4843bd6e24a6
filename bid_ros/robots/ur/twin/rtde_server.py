"""The RTDE server of the twin: sessions that set up recipes, read outputs at their rate and write inputs.

What it reports is written once a cycle for all clients.
"""

import math
import struct
from collections.abc import Callable
from typing import Final

from bid_ros.robots.ur.rtde import PROTOCOL_VERSION, PackageError, PackageReader, PackageType, package
from bid_ros.robots.ur.twin.fields import (
    CONSTANTS,
    COUNTS,
    IN_USE,
    INPUT_REGISTERS,
    MAX_RECIPES,
    NOT_FOUND,
    FieldTable,
)
from bid_ros.robots.ur.twin.machine import SAFETY_BITS, UrMachine
from bid_ros.sim.net import Misbehaviour, TwinSession

STALL_LIMIT_S: Final = 5.0  # a client that takes nothing for this long is dropped, and its inputs are free again
OUTPUT_RECIPE_ID: Final = 1
ERROR: Final = 1  # severity of a text message, of 0 exception, 1 error, 2 warning, 3 information
# The guide's limit for the list of field names of one recipe.
MAX_NAMES: Final = 2048
ECHOED: Final = tuple(INPUT_REGISTERS)
# Torque per motor current behind the gear, N m/A. Not published; plausible for the robot's two sizes of joints.
TORQUE_PER_CURRENT: Final = (12.0, 12.0, 12.0, 9.0, 9.0, 9.0)


class RtdeSession(TwinSession):
    """One RTDE client: protocol version first, then recipes, then data. ``machine`` is the controller."""

    def __init__(self, machine: UrMachine) -> None:
        self._machine, self._rate = machine, machine.config.rate
        self._started = False
        self._reader = PackageReader()
        self._negotiated = False
        self._output: Callable[[], bytes] | None = None
        self._inputs: list[Callable[[bytes], None]] = []
        self._share = 1.0  # packages per cycle
        self._due = 0.0
        self._stalled = 0
        self._answers = {
            PackageType.REQUEST_PROTOCOL_VERSION: self._negotiate,
            PackageType.GET_URCONTROL_VERSION: self._tell_version,
            PackageType.SETUP_OUTPUTS: self._set_up_outputs,
            PackageType.SETUP_INPUTS: self._set_up_inputs,
            PackageType.START: self._start,
            PackageType.PAUSE: self._pause,
            PackageType.TEXT_MESSAGE: lambda _: None,  # it is for the controller's log, which the twin does not keep
            PackageType.DATA_PACKAGE: self._take,
        }

    def received(self, data: bytes) -> None:
        """Answer every package that ``data`` completes; a broken one is answered with a text message.

        Raises:
            Misbehaviour: if a package is not valid, which ends the connection.
        """
        try:
            for kind, payload in self._reader.feed(data):
                self._answers[kind](payload)
        except (Misbehaviour, PackageError) as error:
            self.send(text_message(str(error), "RTDE", ERROR))
            raise Misbehaviour(f"{self.name} sent {error}") from error

    def lost(self) -> None:
        """Let go of the input fields."""
        self._machine.inputs.release(self)

    def publish(self) -> None:
        """Send a data package if one is due; one that does not read misses packages, then its connection.

        Raises:
            Misbehaviour: if the client has taken nothing for too long.
        """
        if not self._started or self._output is None:
            return
        self._due += self._share
        if self._due < 1.0:
            return
        self._due -= 1.0
        if self.offer(package(PackageType.DATA_PACKAGE, self._output())):
            self._stalled = 0
            return
        self._stalled += 1
        if self._stalled > STALL_LIMIT_S * self._rate * self._share:
            raise Misbehaviour(f"{self.name} has not read for {STALL_LIMIT_S:.0f} s")

    def _reply(self, kind: PackageType, payload: bytes) -> None:
        self.send(package(kind, payload))

    def _tell_version(self, payload: bytes) -> None:
        self._reply(PackageType.GET_URCONTROL_VERSION, struct.pack(">4I", *self._machine.config.version))

    def _negotiate(self, payload: bytes) -> None:
        if len(payload) != 2:
            raise Misbehaviour(f"a protocol version of {len(payload)} bytes; valid is 2")
        self._negotiated = int.from_bytes(payload, "big") == PROTOCOL_VERSION
        self._reply(PackageType.REQUEST_PROTOCOL_VERSION, bytes([self._negotiated]))

    def _set_up_outputs(self, payload: bytes) -> None:
        self._need_version()
        if len(payload) < 8:
            raise Misbehaviour(f"an output setup of {len(payload)} bytes; valid is 8 bytes of frequency and names")
        (frequency,) = struct.unpack_from(">d", payload)
        if not (math.isfinite(frequency) and frequency > 0):
            raise Misbehaviour(f"an output frequency of {frequency} Hz; valid is above 0 to {self._rate}")
        names = field_names(payload[8:])
        types = self._machine.outputs.reply(names)
        self._output = None
        self._started = False
        if NOT_FOUND not in types:
            self._output = self._machine.outputs.packer(names, OUTPUT_RECIPE_ID)
            self._share = min(1.0, frequency / self._rate)
            self._due = 1.0 - self._share
        number = OUTPUT_RECIPE_ID if self._output else 0
        self._reply(PackageType.SETUP_OUTPUTS, bytes([number]) + ",".join(types).encode())

    def _set_up_inputs(self, payload: bytes) -> None:
        self._need_version()
        names = field_names(payload)
        inputs = self._machine.inputs
        types = inputs.reply(names)
        types = [IN_USE if inputs.taken(name, self) else kind for name, kind in zip(names, types, strict=True)]
        number = 0
        if not {NOT_FOUND, IN_USE} & set(types):
            if len(self._inputs) == MAX_RECIPES:
                raise Misbehaviour(f"one more than {MAX_RECIPES} input recipes")
            inputs.claim(names, self)
            self._inputs.append(inputs.unpacker(names))
            number = len(self._inputs)
        self._reply(PackageType.SETUP_INPUTS, bytes([number]) + ",".join(types).encode())

    def _start(self, payload: bytes) -> None:
        self._started = self._output is not None
        self._reply(PackageType.START, bytes([self._started]))

    def _pause(self, payload: bytes) -> None:
        self._started = False
        self._reply(PackageType.PAUSE, b"\x01")

    def _take(self, payload: bytes) -> None:
        if not payload or not 1 <= payload[0] <= len(self._inputs):
            number = payload[0] if payload else "none"
            raise Misbehaviour(f"a data package for input recipe {number}; valid are 1 to {len(self._inputs)}")
        self._inputs[payload[0] - 1](payload)

    def _need_version(self) -> None:
        if not self._negotiated:
            raise Misbehaviour(f"a setup before it asked for protocol version {PROTOCOL_VERSION}")


def text_message(text: str, source: str, level: int) -> bytes:
    """Return a text message package; text and source are cut at 255 bytes."""
    parts = [part.encode()[:255] for part in (text, source)]
    payload = b"".join(bytes([len(part)]) + part for part in parts) + bytes([level])
    return package(PackageType.TEXT_MESSAGE, payload)


def field_names(payload: bytes) -> list[str]:
    """Return the names of a comma-separated list, of which the last comma is optional.

    Raises:
        Misbehaviour: if the list is empty, too long or not ASCII.
    """
    if not payload or len(payload) > MAX_NAMES:
        raise Misbehaviour(f"a recipe of {len(payload)} bytes of field names; valid are 1 to {MAX_NAMES}")
    if not payload.isascii():
        raise Misbehaviour("field names that are not ASCII")
    return [name.strip() for name in payload.decode().removesuffix(",").split(",")]


def write_constants(outputs: FieldTable) -> None:
    """Write what never changes."""
    for name, (kind, value) in CONSTANTS.items():
        outputs.set(name, *[value] * COUNTS[kind])


def write_outputs(machine: UrMachine) -> None:
    """Write the state after a cycle."""
    outputs, robot, tool = machine.outputs, machine.robot, machine.robot.tool
    q, qd = robot.plant.joint_positions, robot.plant.joint_velocities
    outputs.set("timestamp", machine.clock_s)
    outputs.set("target_q", *robot.q.tolist())
    outputs.set("target_qd", *robot.qd.tolist())
    outputs.set("target_qdd", *robot.qdd.tolist())
    outputs.set("actual_q", *q.tolist())
    outputs.set("actual_qd", *qd.tolist())
    outputs.set("actual_TCP_pose", *tool.forward(q).tolist())
    outputs.set("target_TCP_pose", *tool.forward(robot.q).tolist())
    for name, values in zip(("elbow_position", "elbow_velocity"), tool.arm.elbow(q, qd), strict=True):
        outputs.set(name, *values)
    jacobian = tool.jacobian(q)
    outputs.set("actual_TCP_speed", *(jacobian @ qd).tolist())
    outputs.set("target_TCP_speed", *(jacobian @ robot.qd).tolist())
    outputs.set("target_moment", *robot.plant.joint_torques.tolist())
    currents = (robot.plant.joint_torques / TORQUE_PER_CURRENT).tolist()
    for name in ("actual_current", "target_current", "joint_control_output"):
        outputs.set(name, *currents)
    outputs.set("speed_scaling", 1.0)
    outputs.set("target_speed_fraction", robot.speed_fraction)
    outputs.set("payload", robot.payload[0])
    outputs.set("payload_cog", *robot.payload[1:])
    outputs.set("robot_mode", machine.robot_mode)
    outputs.set("safety_mode", machine.safety_mode)
    outputs.set("joint_mode", *[machine.joint_mode] * 6)
    outputs.set("runtime_state", machine.runtime)
    outputs.set("robot_status_bits", machine.status_bits)
    outputs.set("safety_status_bits", SAFETY_BITS[machine.safety_mode])
    outputs.copy(machine.inputs, ECHOED)
