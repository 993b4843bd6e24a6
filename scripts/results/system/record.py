"""What the bag of a run tells about its cost: when it worked, and what each node counted."""

from pathlib import Path
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import DIAGNOSTICS, EPISODE_EVENT
from bid_ros.recording.episodes import END, PREPARE
from bid_ros.recording.reader import BagReader
from results.system.watch import Course

COUNTERS: Final = ("messages_in", "messages_out", "executor_s")
"""Values in the diagnostics of every node since its start: messages, and CPU time that its executor took itself."""


def working_time(bag: BagReader) -> tuple[int, int]:
    """Return the first preparation and the last end of an episode, wall time in ns.

    Raises:
        RecordingError: no episode was completed.
    """
    events = [(message.message.kind, message.stamp_ns) for message in bag.messages([EPISODE_EVENT])]
    begins = [stamp for kind, stamp in events if kind == PREPARE]
    ends = [stamp for kind, stamp in events if kind == END]
    if not begins or not ends:
        raise RecordingError(f"bag {bag.path} holds no complete episode; valid is a run that ends an episode")
    return begins[0], ends[-1]


def counted(bag: BagReader) -> dict[str, Course]:
    """Return :data:`COUNTERS` over time, by node. A node of an earlier version may count nothing."""
    courses: dict[str, Course] = {}
    for item in bag.messages([DIAGNOSTICS]):
        for status in item.message.status:
            # In bags of an earlier version, as of a checkout that is compared, spaces were in the names.
            values = {pair.key.replace(" ", "_"): pair.value for pair in status.values}
            if all(name in values for name in COUNTERS):
                node = Path(status.name).name.removeprefix("bid_ros: ")
                courses.setdefault(node, Course()).add(item.stamp_ns, tuple(float(values[key]) for key in COUNTERS))
    return courses
