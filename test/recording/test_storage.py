from __future__ import annotations

import tracemalloc

from mcap.reader import make_reader

from bid_ros.recording.storage import Backlog, BagFile, Pending


def item(topic: str, stamp: int, size: int) -> Pending:
    return Pending(topic, stamp, bytes(size))


def test_images_get_half_of_the_queue():
    backlog = Backlog(1000)
    taken = [backlog.offer(item("/image", n, 200), expendable=True) for n in range(4)]
    assert taken == [True, True, False, False]
    assert backlog.dropped == {"/image": 2}
    assert backlog.offer(item("/state", 9, 600), expendable=False)


def test_oldest_images_make_room_for_the_rest():
    backlog = Backlog(1000)
    for stamp in range(2):
        assert backlog.offer(item("/image", stamp, 250), expendable=True)
    assert all(backlog.offer(item("/state", 10 + n, 250), expendable=False) for n in range(3))
    assert backlog.dropped == {"/image": 1}
    assert [waiting.stamp_ns for waiting in backlog.drain()] == [1, 10, 11, 12]


def test_without_images_left_the_newest_message_is_dropped():
    backlog = Backlog(1000)
    assert [backlog.offer(item("/state", n, 400), expendable=False) for n in range(3)] == [True, True, False]
    assert backlog.dropped == {"/state": 1}


def test_drain_empties_and_orders_by_stamp():
    backlog = Backlog(1000)
    for stamp, expendable in ((3, False), (1, True), (2, False)):
        backlog.offer(item("/t", stamp, 100), expendable)
    assert backlog.size_bytes == 300
    assert [waiting.stamp_ns for waiting in backlog.drain()] == [1, 2, 3]
    assert backlog.drain() == []
    assert backlog.size_bytes == 0
    assert backlog.offer(item("/image", 4, 500), expendable=True)


def test_the_index_that_waits_for_the_end_takes_little_memory(tmp_path):
    """An hour has 18,000 writes. 5.4 kB each, as the objects of the package take, would be 97 MB."""
    topics, writes = [f"/topic_{number}" for number in range(20)], 500
    file = BagFile(tmp_path / "bag_0.mcap", "none")
    for name in topics:
        file.add_channel(name, None, "cdr", {})

    def write(first: int) -> None:
        for number in range(first, first + writes):
            for topic in topics:
                file.add_message(topic, 1 + number, b"data")
            file.commit()

    write(0)
    tracemalloc.start()
    write(writes)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / writes < 600, "bytes for each write"
    file.finish()
    with file.path.open("rb") as stream:
        reader = make_reader(stream)
        chunks = reader.get_summary().chunk_indexes
        assert len(chunks) == 2 * writes and all(len(chunk.message_index_offsets) == len(topics) for chunk in chunks)
        assert [chunk.message_start_time for chunk in chunks] == list(range(1, 2 * writes + 1))
        found = [message.log_time for *_, message in reader.iter_messages(topics[3], start_time=400, end_time=500)]
        assert found == list(range(400, 500))
