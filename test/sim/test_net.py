"""The servers of a twin, polled from the test's own thread: clients that are slow, rude, many or gone."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest
from ur_twin import free_address

from bid_ros.core.errors import ArmError
from bid_ros.sim.net import MAX_CLIENTS, MAX_LINE, MAX_PENDING, LineSession, Misbehaviour, Switchboard

PORT = 29_000


class Parrot(LineSession):
    """Says every line back. ``more`` lets it talk on its own, ``swear`` is refused, ``break`` is its own fault."""

    talkative = False

    def opened(self) -> None:
        self.send(b"hello\n")

    def take(self, line: str) -> None:
        if line == "swear":
            raise Misbehaviour(f"{self.name} swears")
        if line == "break":
            raise ZeroDivisionError
        if line == "more":
            self.talkative = True
        self.send(f"{line}\n".encode())

    def publish(self) -> None:
        if self.talkative:
            self.offer(bytes(8192))


@pytest.fixture
def board():
    board = Switchboard(free_address())
    board.listen(PORT, "parrot", Parrot)
    yield board
    board.close()


def client(board):
    return socket.create_connection((board.address, PORT), 5.0)


def poll_until(board, condition, polls=20_000):
    """Serve until a condition holds."""
    for _ in range(polls):
        board.poll()
        if condition():
            return
    raise AssertionError("the condition was not met")


def hear(board, connection, count):
    """Serve until so many bytes came."""
    connection.setblocking(False)
    found = bytearray()

    def enough() -> bool:
        with suppress(BlockingIOError):
            found.extend(connection.recv(count - len(found)))
        return len(found) == count

    poll_until(board, enough)
    return bytes(found)


def ended(board, connection):
    """Serve until the connection is closed, whatever was on its way."""

    def gone() -> bool:
        try:
            return connection.recv(65_536) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    connection.setblocking(False)
    poll_until(board, gone)
    return True


def test_lines_come_whole_however_they_are_cut(board):
    with client(board) as connection:
        connection.sendall(b"one\ntw")
        assert hear(board, connection, 10) == b"hello\none\n"
        connection.sendall(b"o\r\n\xff\n")
        assert hear(board, connection, 8) == "two\n\ufffd\n".encode()


@pytest.mark.parametrize("words", [b"swear\n", bytes(MAX_LINE + 1)])
def test_who_breaks_the_protocol_is_cut_off_and_nobody_else(board, caplog, words):
    with client(board) as rude, client(board) as polite:
        assert hear(board, polite, 6) == hear(board, rude, 6) == b"hello\n"
        rude.sendall(words)
        assert ended(board, rude)
        polite.sendall(b"still here\n")
        assert hear(board, polite, 11) == b"still here\n"
    assert board.dropped == 1 and "its connection is closed" in caplog.text


def test_who_does_not_read_misses_what_is_offered_and_is_dropped_for_what_is_sent(board):
    with client(board) as slow:
        slow.sendall(b"more\n")
        assert hear(board, slow, 11) == b"hello\nmore\n"
        for _ in range(2000):
            board.publish()
            board.poll()
        assert board.left_out > 0 and board.dropped == 0
        (session,) = board.sessions
        session.attempt(lambda: session.send(bytes(MAX_PENDING + 1)))
        poll_until(board, lambda: not board.sessions)
        assert board.dropped == 1


def test_a_fault_of_the_twin_is_raised_where_it_is_polled(board):
    with client(board) as connection:
        connection.sendall(b"break\n")
        with pytest.raises(ZeroDivisionError):
            poll_until(board, lambda: False)
    board.fault = None


def test_one_client_too_many_is_not_let_in(board):
    clients = [client(board) for _ in range(MAX_CLIENTS)]
    poll_until(board, lambda: len(board.sessions) == MAX_CLIENTS)
    with client(board) as late:
        assert ended(board, late)
    clients.pop().close()
    poll_until(board, lambda: len(board.sessions) == MAX_CLIENTS - 1)
    with client(board) as next_one:
        assert hear(board, next_one, 6) == b"hello\n"
    for connection in clients:
        connection.close()


def test_a_port_that_is_taken_or_of_another_computer_is_one_sentence(board):
    for address in (board.address, "192.0.2.1"):
        other = Switchboard(address)
        with pytest.raises(ArmError, match=rf"the twin cannot serve parrot on {address}:{PORT}: .+"):
            other.listen(PORT, "parrot", Parrot)
        other.close()


def test_a_close_ends_every_connection_and_frees_the_port(board):
    with client(board) as connection:
        assert hear(board, connection, 6) == b"hello\n"
        board.close()
        board.close()
        connection.setblocking(True)
        with pytest.raises(ConnectionResetError):
            while connection.recv(100):
                pass
            raise ConnectionResetError  # an end in order is one, too
    again = Switchboard(board.address)
    again.listen(PORT, "parrot", Parrot)
    again.close()
