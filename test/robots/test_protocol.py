"""Set-points and states in shared memory."""

import mmap
import os
import threading
from dataclasses import replace

from bid_ros.core.margins import Margins
from bid_ros.robots.protocol import (
    MEMORY_SIZE,
    DriverMemory,
    DriverState,
    Mode,
    MotionOutcome,
    SharedRecord,
    TimedSetpoint,
    shared_memory,
)

NO_TURN = (0.0, 0.0, 0.0, 1.0)


def memory_of(size=MEMORY_SIZE):
    descriptor = shared_memory(size)
    return mmap.mmap(descriptor, size), descriptor


def test_a_record_that_is_being_written_is_never_taken():
    memory, descriptor = memory_of()
    writer, reader = SharedRecord(memory, 16), SharedRecord(memory, 16)
    assert reader.read() is None
    writer.write((1.0, 2.0))
    assert reader.read() == (1, (1.0, 2.0))
    memory[30] ^= 0xFF
    assert reader.read() == (1, (1.0, 2.0)), "the last whole one"
    writer.write((3.0, 4.0))
    assert reader.read() == (2, (3.0, 4.0))
    os.close(descriptor)


def test_records_are_whole_while_both_sides_are_busy():
    memory, descriptor = memory_of()
    writer, reader = SharedRecord(memory, 0), SharedRecord(memory, 0)
    done = threading.Event()

    def write():
        for k in range(20_000):
            writer.write([float(k)] * 40)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    while not done.is_set():
        record = reader.read()
        if record is not None:
            assert len(set(record[1])) == 1
            assert record[0] >= seen
            seen = record[0]
    thread.join()
    assert reader.read()[0] == 20_000
    os.close(descriptor)


def test_set_points_and_states_pass_through_memory_unchanged():
    descriptor = shared_memory(MEMORY_SIZE)
    ours, theirs = DriverMemory(os.dup(descriptor)), DriverMemory(descriptor)
    assert theirs.setpoint.read() is None
    assert ours.read_state() is None
    setpoint = TimedSetpoint(7, (1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    ours.setpoint.write(setpoint)
    assert theirs.setpoint.read() == (1, setpoint)
    ours.setpoint.write(None)
    assert theirs.setpoint.read() == (2, None)
    joints = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    state = DriverState(1, 2, Mode.MOVING, MotionOutcome.MISSED, joints, joints, (1.0, 2.0, 3.0), NO_TURN, "größer")
    theirs.write_state(state)
    assert ours.read_state() == state
    theirs.write_state(replace(state, fault="é" * 1000))
    assert set(ours.read_state().fault) == {"é"}


def test_the_margins_of_the_checks_are_shared_beside_the_state():
    descriptor = shared_memory(MEMORY_SIZE)
    ours, theirs = DriverMemory(os.dup(descriptor)), DriverMemory(descriptor)
    assert ours.read_margins() == {}
    margins = Margins()
    for number in range(20):  # more checks than any robot has
        for value in range(1000):
            margins.over(f"the {number}th check of a robot", value, 999.0)
    theirs.write_margins(margins)
    found = ours.read_margins()
    assert found == margins and found.counts == margins.counts
