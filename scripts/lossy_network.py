"""A slow network that loses packets, between two network namespaces of Linux: the kernel's own TCP runs over it.

Each link is a pair of TUN devices. An IP packet that one end sends is dropped by chance, or written to the other end
after a delay. So retransmission and congestion control are those of Linux. It needs root and /dev/net/tun.

As a program it makes the links DELAY_MS:LOSS:CONGESTION of its arguments, prints its number once they are there, and
passes packets until its standard input ends. :class:`Network` starts it.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

CLONE_NEWNET: Final = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LARGEST: Final = 65536  # bytes of a packet
PRIORITY: Final = -15


class Network:
    """Links from this process, which moves to a namespace of its own, to another namespace.

    Args:
        links: delay each way in ms, share of packets that are lost, and Linux's congestion control, of each link.

    Attributes:
        within: words of a command that runs another one in the other namespace.
    """

    def __init__(self, links: Iterable[tuple[float, float, str]]) -> None:
        new_namespace()
        words = [":".join(map(str, link)) for link in links]
        self._relay = subprocess.Popen(
            [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        number = self._relay.stdout.readline().strip()
        if not number:
            raise SystemExit("error: the links could not be made; valid is root on Linux with /dev/net/tun")
        self.within: Sequence[str] = ("nsenter", f"--net=/proc/{number}/ns/net")

    def server(self, number: int) -> str:
        """Return the address of the other end of a link."""
        return f"10.77.{number}.2"

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: Any) -> None:
        self._relay.stdin.close()
        self._relay.wait()


def device(number: int, end: int, congestion: str) -> int:
    """Return the file of a new TUN device of this process's namespace, with the address of that end of a link."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name, own = f"link{number}", f"10.77.{number}.{end}"
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    command(f"ip address add {own}/24 dev {name}")
    command(f"ip link set {name} up")
    command(f"ip route replace 10.77.{number}.0/24 dev {name} src {own} congctl {congestion}")
    return file


def command(line: str) -> None:
    """Run a command in this process's namespace."""
    subprocess.run(line.split(), check=True)


def new_namespace() -> None:
    """Move this process to a network namespace of its own, with a loopback."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise SystemExit(f"error: no network namespace: {os.strerror(ctypes.get_errno())}; valid is root on Linux")
    command("ip link set lo up")


def relay(pairs: Iterable[tuple[int, int, float, float]]) -> None:
    """Pass packets both ways until the standard input ends.

    Args:
        pairs: files of both ends, delay in s, share of packets that are lost.
    """
    ways: dict[int, tuple[int, float, float]] = {}
    for one, other, delay_s, loss in pairs:
        ways |= {one: (other, delay_s, loss), other: (one, delay_s, loss)}
    rng, waiting, order = random.Random(0), list[tuple[float, int, int, bytes]](), 0
    poll = select.poll()
    for file in (*ways, sys.stdin.fileno()):
        poll.register(file, select.POLLIN)
    while True:
        left = 1000 * (waiting[0][0] - time.monotonic()) if waiting else 1000.0
        for file, _ in poll.poll(max(0.0, left)):
            if file == sys.stdin.fileno():
                return
            sink, delay_s, loss = ways[file]
            with suppress(BlockingIOError):  # no packet more
                while packet := os.read(file, LARGEST):
                    order += 1
                    if rng.random() >= loss:
                        heapq.heappush(waiting, (time.monotonic() + delay_s, order, sink, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, sink, packet = heapq.heappop(waiting)
            os.write(sink, packet)


def main() -> None:
    """Make the links and serve them."""
    links = [each.split(":") for each in sys.argv[1:]]
    near = [device(number, 1, control) for number, (*_, control) in enumerate(links)]
    new_namespace()
    far = [device(number, 2, control) for number, (*_, control) in enumerate(links)]
    with suppress(OSError):
        os.nice(PRIORITY)  # the network does not wait for a computation
    print(os.getpid(), flush=True)
    shares = [(float(delay_ms) / 1000, float(loss)) for delay_ms, loss, _ in links]
    relay((one, other, *share) for one, other, share in zip(near, far, shares, strict=True))


if __name__ == "__main__":
    main()
