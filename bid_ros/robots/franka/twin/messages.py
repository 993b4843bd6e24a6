"""libfranka's messages over TCP: a header, and a payload whose format the command decides (those of franky-sim)."""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from franky_sim.franka_gripper_protocol import GripperCommand, GripperGraspCommand, GripperMoveCommand
from franky_sim.franka_robot_protocol import (
    COMMAND_PORT,
    MoveCommand,
    RobotCommand,
    SetCollisionBehaviorCommand,
    SetEEToKCommand,
    SetLoadCommand,
    SetNEToEECommand,
)

from bid_ros.sim.net import Misbehaviour

CONNECT: Final = 0
CONNECT_PAYLOAD: Final = struct.Struct("<HH")  # library version, UDP port of the client
NOTHING: Final = struct.Struct("")
SPARE: Final = 64  # bytes that a newer library may append to a payload


@dataclass(frozen=True)
class Dialect:
    """How one of the two services speaks.

    Attributes:
        name: of the service in log sentences.
        port: of TCP.
        version: of the library that it accepts.
        header: command, its number, size of the whole message in bytes.
        status: of an answer.
        stamp: of a state, its number since the connection.
        payloads: format of each command's payload.
    """

    name: str
    port: int
    version: int
    header: struct.Struct
    status: struct.Struct
    stamp: struct.Struct
    payloads: Mapping[int, struct.Struct]

    def cut(self, buffer: bytearray) -> tuple[int, int, tuple[Any, ...]] | None:
        """Cut the first complete message off and return command, number and payload; None if there is none yet.

        Raises:
            Misbehaviour: if it is no message of this service.
        """
        if len(buffer) < self.header.size:
            return None
        command, number, size = self.header.unpack_from(buffer)
        payload = self.payloads.get(command)
        if payload is None:
            raise Misbehaviour(f"a command {command}; valid are {', '.join(map(str, sorted(self.payloads)))}")
        least = self.header.size + payload.size
        if not least <= size <= least + SPARE:
            raise Misbehaviour(f"a command {command} of {size} bytes; valid are {least} to {least + SPARE}")
        if len(buffer) < size:
            return None
        values = payload.unpack_from(buffer, self.header.size)
        del buffer[:size]
        if not all(map(math.isfinite, values)):
            raise Misbehaviour(f"a command {command} with a number that is not finite")
        return command, number, values

    def answer(self, command: int, number: int, status: int, payload: bytes = b"") -> bytes:
        """Return the answer to a command with its number."""
        size = self.header.size + self.status.size + len(payload)
        return self.header.pack(command, number, size) + self.status.pack(status) + payload

    def connect_answer(self, number: int, status: int) -> bytes:
        """Return the answer to a Connect, which says the version of this service."""
        payload = self.status.pack(status) + struct.pack("<H", self.version)
        return self.header.pack(CONNECT, number, self.header.size + len(payload)) + payload


ROBOT: Final = Dialect(
    "robot",
    COMMAND_PORT,
    10,
    struct.Struct("<III"),
    struct.Struct("<B"),
    struct.Struct("<Q"),
    {
        CONNECT: CONNECT_PAYLOAD,
        RobotCommand.kMove: MoveCommand.STRUCT,
        RobotCommand.kStopMove: NOTHING,
        RobotCommand.kSetCollisionBehavior: SetCollisionBehaviorCommand.STRUCT,
        RobotCommand.kSetJointImpedance: struct.Struct("<7d"),
        RobotCommand.kSetCartesianImpedance: struct.Struct("<6d"),
        RobotCommand.kSetEEToK: SetEEToKCommand.STRUCT,
        RobotCommand.kSetNEToEE: SetNEToEECommand.STRUCT,
        RobotCommand.kSetLoad: SetLoadCommand.STRUCT,
        RobotCommand.kAutomaticErrorRecovery: NOTHING,
        RobotCommand.kGetRobotModel: NOTHING,
    },
)

HAND: Final = Dialect(
    "hand",
    1338,
    3,
    struct.Struct("<HII"),
    struct.Struct("<H"),
    struct.Struct("<I"),
    {
        CONNECT: CONNECT_PAYLOAD,
        GripperCommand.kHoming: NOTHING,
        GripperCommand.kGrasp: GripperGraspCommand._STRUCT,
        GripperCommand.kMove: GripperMoveCommand._STRUCT,
        GripperCommand.kStop: NOTHING,
    },
)
