"""The server's end of a client's connections: one, or several that carry the parts of each message."""

import asyncio
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bid_ros.core.errors import RemoteError
from bid_ros.policy.remote.delivery import STEP_S, Delivery, unhindered
from bid_ros.policy.remote.parts import MOST, Assembly, cut, is_part
from bid_ros.policy.remote.wire import pack

BAD: Final = 1002  # status with which an end of a websocket refuses what is not of its protocol (RFC 6455, 7.4.1)
BYTES: Final = 16  # of chance in the name of a session
WAITING: Final = 2  # messages or parts of one client that are in memory, besides one of each connection
WATCH_S: Final = 0.3  # that an answer is watched for
SEND_S: Final = 5.0  # for an answer
CLOSE_S: Final = 1.5  # for an orderly end


@dataclass(eq=False)
class _Lane:
    """A connection of ``websockets.asyncio``, its socket, and whether parts have come over it."""

    connection: Any
    plain: Any
    carries: bool = False


class Session:
    """One client: its first connection, and those that join it.

    Args:
        first: connection of ``websockets.asyncio``.
        largest: bytes of the largest message that is taken.

    Attributes:
        name: nobody can guess it. Whoever knows it may join.
    """

    def __init__(self, first: Any, largest: int) -> None:
        self.name = secrets.token_hex(BYTES)
        self._lanes: dict[int, _Lane] = {}
        self._assembly, self._number, self._in_parts = Assembly(largest), 0, False
        self._came: asyncio.Queue[bytes | str | None] = asyncio.Queue(WAITING)
        self._before = deque[Delivery](maxlen=MOST)
        self._readers: list[asyncio.Task[None]] = []
        self._watching: asyncio.Task[None] | None = None
        self._add(0, first)

    def offer(self) -> dict[str, Any]:
        """Return what the client is told, so that it can open more connections."""
        return {"session": self.name, "connections": MOST}

    def has_place(self, index: int) -> bool:
        """Return whether a connection may join with this number."""
        return 0 < index < MOST and index not in self._lanes

    async def join(self, connection: Any, index: int) -> None:
        """Let a connection carry parts until it ends. It ends at once if its place is taken."""
        if not self.has_place(index):
            return
        self._add(index, connection)
        await connection.send(pack({}))
        await connection.wait_closed()

    @property
    def is_open(self) -> bool:
        """Whether no connection has ended."""
        from websockets.protocol import State

        return all(lane.connection.state is State.OPEN for lane in self._lanes.values())

    async def messages(self) -> AsyncIterator[bytes | str]:
        """Yield questions until a connection ends. A part that is none ends them, too."""
        while (came := await self._came.get()) is not None:
            self._in_parts = isinstance(came, bytes) and len(self._lanes) > 1 and is_part(came)
            try:
                message = self._assembly.take(came) if isinstance(came, bytes) and self._in_parts else came
            except RemoteError as error:
                async with asyncio.timeout(CLOSE_S):
                    await self._lanes[0].connection.close(BAD, str(error)[:100])
                return
            if message is not None:
                yield message

    async def send(self, answer: bytes | str) -> None:
        """Send an answer, in parts if the question came in parts.

        Raises:
            ConnectionClosed: a connection has ended.
            TimeoutError: a connection did not take it in time.
        """
        if self._watching is not None:
            self._watching.cancel()
        used, messages = [self._lanes[0]], [answer]
        if isinstance(answer, bytes) and self._in_parts:
            carriers = [lane for lane in self._lanes.values() if lane.carries]
            used = unhindered(carriers, [lane.plain for lane in carriers], self._before)
            self._number += 1
            messages = [*cut(answer, self._number, len(used))]
        async with asyncio.timeout(SEND_S):
            await asyncio.gather(*(lane.connection.send(each) for lane, each in zip(used, messages, strict=True)))
        self._watching = asyncio.create_task(self._watch(used, messages))

    async def close(self) -> None:
        """End the connections, if need be by force."""
        for task in (*self._readers, self._watching):
            if task is not None:
                task.cancel()
        ends = [asyncio.create_task(lane.connection.close()) for lane in self._lanes.values()]
        await asyncio.wait(ends, timeout=CLOSE_S)
        for lane in self._lanes.values():
            lane.connection.transport.abort()  # one that took nothing any more would never end

    def _add(self, index: int, connection: Any) -> None:
        lane = self._lanes[index] = _Lane(connection, connection.transport.get_extra_info("socket"))
        self._readers.append(asyncio.create_task(self._read(lane)))

    async def _read(self, lane: _Lane) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            async for message in lane.connection:
                lane.carries = lane.carries or (isinstance(message, bytes) and is_part(message))
                await self._came.put(message)
        await self._came.put(None)

    async def _watch(self, used: list[_Lane], messages: list[bytes | str]) -> None:
        """See to it that the parts of an answer arrive."""
        from websockets.exceptions import ConnectionClosed

        end = time.monotonic() + WATCH_S
        while any(lane.connection.transport.get_write_buffer_size() for lane in used) and time.monotonic() < end:
            await asyncio.sleep(STEP_S)  # it is not in the kernel's hands yet
        delivery = Delivery([lane.plain for lane in used])
        self._before.append(delivery)
        with suppress(ConnectionClosed):
            while not delivery.is_done and time.monotonic() < end:
                for index in delivery.pongs():
                    await used[index].connection.pong()
                for index, spare in delivery.late():
                    await used[spare].connection.send(messages[index])
                await asyncio.sleep(STEP_S)


def parse_place(text: str) -> tuple[str, int]:
    """Return session and number of a connection that wants to join; ("", 0) for what names none."""
    found = re.fullmatch(rf"([0-9a-f]{{{2 * BYTES}}}) (\d{{1,3}})", text)
    return (found[1], int(found[2])) if found else ("", 0)
