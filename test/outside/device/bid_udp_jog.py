"""A teleoperation device: another program, that of a space mouse for example, sends velocities of the tool over UDP.

A packet is four little-endian doubles: velocity along x, y, z of the base frame in m/s, opening of the gripper in m.
"""

from __future__ import annotations

import socket
import struct

import numpy as np

from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.teleop.base import DeviceDescriptor, EpisodeStart, TeleopDevice

PORT = 47007
PACKET = struct.Struct("<4d")
FASTEST = 0.1  # m/s
SILENT_NS = 200_000_000  # without a packet for so long, the tool stops


class UdpJog(TeleopDevice):
    """Moves the tool as the newest packet says, inside the task's workspace."""

    def __init__(self, task: Task) -> None:
        limits = task.limits
        self._low, self._high = np.array(limits.workspace_min) + 0.01, np.array(limits.workspace_max) - 0.01
        self._frame, self._width = task.base_frame, limits.gripper_max
        self._velocity, self._heard_ns, self._sequence = np.zeros(3), 0, 0
        self._start: EpisodeStart | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(("127.0.0.1", PORT))
        except OSError as error:
            raise BidError(f"device 'udp_jog' cannot listen on UDP port {PORT}: {error.strerror}") from error

    def begin(self, start: EpisodeStart) -> None:
        """Take the arm where it is."""
        self._start, self._position, self._at_ns = start, start.tool.copy(), start.now_ns
        self._velocity, self._heard_ns = np.zeros(3), start.now_ns

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return where the tool goes in the next steps if the newest packet goes on to hold."""
        if self._start is None:
            return None
        self._listen(now_ns)
        moved = self._velocity * (now_ns - self._at_ns) / NANOSECONDS
        self._position, self._at_ns = np.clip(self._position + moved, self._low, self._high), now_ns
        times = dt_ns * np.arange(steps)[:, None] / NANOSECONDS
        positions = np.clip(self._position + times * self._velocity, self._low, self._high)
        rows = np.hstack([positions, np.tile(self._start.rotation, (steps, 1)), np.full((steps, 1), self._width)])
        self._sequence += 1
        return ActionChunk(now_ns, dt_ns, rows, self._frame, "teleop", self._sequence)

    def end(self) -> None:
        """Let go of the arm."""
        self._start = None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _listen(self, now_ns: int) -> None:
        while True:
            try:
                x, y, z, self._width = PACKET.unpack(self._socket.recv(PACKET.size))
            except BlockingIOError:
                break
            velocity = np.array([x, y, z])
            self._velocity = velocity * min(1.0, FASTEST / max(float(np.linalg.norm(velocity)), 1e-9))
            self._heard_ns = now_ns
        if now_ns - self._heard_ns > SILENT_NS:
            self._velocity = np.zeros(3)


DEVICE = DeviceDescriptor("udp_jog", UdpJog)
