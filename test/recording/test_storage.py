from __future__ import annotations

from bid_ros.recording.storage import Backlog, Pending


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
