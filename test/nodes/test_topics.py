"""Type and quality of service that nodes offer are those that the table of topics, and with it every bag, says."""

from __future__ import annotations

import re

from bid_ros.core import topics
from bid_ros.core.task import load_task
from bid_ros.tasks.topics import system_topics

# By its constant or function; a replay also offers what a bag names.
NAME = r"(?:topics\.)?([A-Z]\w+|\w+_topic)(\(\w+\))?"
OFFERED = re.compile(rf"\b(?:self|node)\.advertise\({NAME}(?:, (?:topics\.)?(\w+))?")


def offered(root) -> list[tuple[str, topics.Topic]]:
    """Name, of the camera ``wrist`` or body ``cup`` where there are several, and topic of each publisher."""
    found = []
    for path in sorted((root / "bid_ros" / "nodes").glob("*.py")):
        for name, call, given in OFFERED.findall(path.read_text()):
            said = getattr(topics, name)
            said = said("cup" if name == "body_topic" else "wrist") if call else said
            found.append((said, getattr(topics, given) if given and given != "Topic" else topics.TOPICS.get(said)))
    return found


def test_every_recorded_topic_is_offered_as_the_table_says(root):
    table = system_topics(load_task(root / "config" / "franka_place" / "task.yaml"))
    seen = {name: topic for name, topic in offered(root) if name in table}
    assert seen == {name: table[name] for name in seen}
    others = {topics.ROSOUT, *(topics.body_topic(name) for name in ("object",))}  # ROS's own, another body
    assert set(table) - set(seen) - others == {name for name in table if "third_person" in name}


def test_no_node_publishes_past_the_table(root):
    files = (root / "bid_ros" / "nodes").glob("*.py")
    found = {file.name for file in files if "create_publisher" in file.read_text()}
    assert found == {"topics.py", "ros_bus.py"}  # the other speaks with the drivers of robots
