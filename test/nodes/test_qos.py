"""The quality of service that nodes offer is the one that the table of topics, and with it every bag, says."""

from __future__ import annotations

import re

from bid_ros.core import topics
from bid_ros.core.task import load_task
from bid_ros.nodes import qos
from bid_ros.nodes.qos import profile

OFFERED = re.compile(r"create_publisher\(\w+, (\w+)(\(\w+\))?, (\w+)\)")


def offered(root) -> list[tuple[str, str]]:
    """Topic, of the camera or body ``cup`` where there are several, and profile of each publisher in the nodes."""
    found = []
    for path in sorted((root / "bid_ros" / "nodes").glob("*.py")):
        for name, call, used in OFFERED.findall(path.read_text()):
            said = getattr(topics, name)
            found.append((said("cup" if name == "body_topic" else "wrist") if call else said, used))
    return found


def test_every_recorded_topic_is_offered_as_the_table_says(root):
    table = topics.recorded_topics(load_task(root / "config" / "franka_place" / "task.yaml"))
    seen = set()
    for topic, used in offered(root):
        if topic in table:
            wanted, given = profile(table[topic].qos), getattr(qos, used)
            assert (given.depth, given.durability, given.reliability) == (
                wanted.depth,
                wanted.durability,
                wanted.reliability,
            ), topic
            seen.add(topic)
    others = {topics.ROSOUT, *(topics.body_topic(name) for name in ("object", "saucer"))}  # ROS's own, other tasks'
    assert set(table) - seen - others == {name for name in table if "third_person" in name}
