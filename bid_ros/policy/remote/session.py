"""The server's end of a client's connections: one, or several that carry the parts of each message."""

import asyncio
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from bid_ros.core.errors import RemoteError
from bid_ros.policy.remote.delivery import STEP_S, Delivery, unhindered
from bid_ros.policy.remote.parts import MOST, Assembly, cut
from bid_ros.policy.remote.wire import pack

BAD: Final = 1002  # status with which an end of a websocket refuses what is not of its protocol (RFC 6455, 7.4.1)
BYTES: Final = 16  # of chance in the name of a session
WAITING: Final = 2  # parts of a connection that are in memory
MOST_S: Final = 0.3  # that an answer is watched for


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
        self._all = {0: first}
        self._assembly, self._number = Assembly(largest), 0
        self._came: asyncio.Queue[bytes | str | None] = asyncio.Queue(WAITING)
        self._before = deque[Delivery](maxlen=MOST)
        self._readers = [asyncio.create_task(self._read(first))]
        self._watching: asyncio.Task[None] | None = None

    def offer(self) -> dict[str, Any]:
        """Return what the client is told, so that it can open more connections."""
        return {"session": self.name, "connections": MOST}

    def has_place(self, index: int) -> bool:
        """Return whether a connection may join with this number."""
        return 0 < index < MOST and index not in self._all

    async def join(self, connection: Any, index: int) -> None:
        """Let a connection carry parts until it ends. It ends at once if its place is taken."""
        if not self.has_place(index):
            return
        self._all[index] = connection
        self._readers.append(asyncio.create_task(self._read(connection)))
        await connection.send(pack({}))
        await connection.wait_closed()

    @property
    def is_open(self) -> bool:
        """Whether no connection has ended."""
        from websockets.protocol import State

        return all(connection.state is State.OPEN for connection in self._all.values())

    async def messages(self) -> AsyncIterator[bytes | str]:
        """Yield questions until a connection ends. What is no part of a question ends the first one."""
        while (came := await self._came.get()) is not None:
            try:
                message = came if isinstance(came, str) or len(self._all) == 1 else self._assembly.take(came)
            except RemoteError as error:
                await self._all[0].close(BAD, str(error)[:100])
                return
            if message is not None:
                yield message

    async def send(self, answer: bytes | str) -> None:
        """Send an answer. Raises ConnectionClosed when a connection ends."""
        if isinstance(answer, str):
            await self._all[0].send(answer)
            return
        if self._watching is not None:
            self._watching.cancel()
        everyone = list(self._all.values())
        used = unhindered(everyone, _sockets(everyone), self._before)
        self._number += 1
        parts = cut(answer, self._number, len(used)) if len(everyone) > 1 else [answer]
        await asyncio.gather(*(connection.send(part) for connection, part in zip(used, parts, strict=True)))
        self._watching = asyncio.create_task(self._watch(used, parts))

    async def close(self) -> None:
        """End the connections."""
        for task in (*self._readers, self._watching):
            if task is not None:
                task.cancel()
        with suppress(OSError):
            await asyncio.gather(*(connection.close() for connection in self._all.values()))

    async def _read(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            async for part in connection:
                await self._came.put(part)
        await self._came.put(None)

    async def _watch(self, used: list[Any], parts: list[bytes]) -> None:
        """See to it that the parts of an answer arrive."""
        from websockets.exceptions import ConnectionClosed

        end = time.monotonic() + MOST_S
        while any(connection.transport.get_write_buffer_size() for connection in used) and time.monotonic() < end:
            await asyncio.sleep(STEP_S)  # it is not in the kernel's hands yet
        delivery = Delivery(_sockets(used))
        self._before.append(delivery)
        with suppress(ConnectionClosed):
            while not delivery.is_done and time.monotonic() < end:
                for index in delivery.pongs():
                    await used[index].pong()
                for index in delivery.late():
                    if (spare := delivery.spare(index)) is not None:
                        await used[spare].send(parts[index])
                await asyncio.sleep(STEP_S)


def _sockets(connections: list[Any]) -> list[Any]:
    return [connection.transport.get_extra_info("socket") for connection in connections]


def parse_place(text: str) -> tuple[str, int]:
    """Return session and number of a connection that wants to join; ("", 0) for what names none."""
    found = re.fullmatch(rf"([0-9a-f]{{{2 * BYTES}}}) (\d{{1,3}})", text)
    return (found[1], int(found[2])) if found else ("", 0)
