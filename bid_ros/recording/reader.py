"""Reads bags: decoded messages in order of time, from complete and from broken recordings."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rosbags.highlevel import AnyReader

from bid_ros.core.errors import RecordingError
from bid_ros.recording.metadata import custom_data
from bid_ros.recording.repair import bag_files, copy_whole, is_complete


@dataclass(frozen=True)
class BagMessage:
    """A message of a bag.

    Attributes:
        topic: its topic, as it was asked for; the recorded name if all topics were.
        stamp_ns: time of receipt by the recorder, ns since the epoch.
        message: object with the fields of the type; arrays of numbers are NumPy arrays.
    """

    topic: str
    stamp_ns: int
    message: Any


class BagReader:
    """A rosbag2 MCAP bag, decoded with the definitions inside it. It needs no ROS installation.

    A bag holds the full names of its topics. A relative name (``arm/status``) is looked for in the namespace that the
    recorder wrote into the bag's metadata, in a bag of another recorder by how its names end.

    A file without an index (its recorder was killed, or still runs) is read from a repaired copy in a temporary
    folder, up to the last complete message. The bag itself is never changed.

    Args:
        path: bag folder, or one MCAP file.

    Raises:
        RecordingError: the bag is missing, is not a recording, or is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.was_complete = True
        self._custom = custom_data(self.path if self.path.is_dir() else self.path.parent)
        self._stack = ExitStack()
        try:
            self._reader = self._open(bag_files(self.path))
        except RecordingError:
            self._stack.close()
            raise
        # Damaged bytes can make the decoders of a foreign format raise anything.
        except Exception as error:
            self._stack.close()
            raise self._damaged(error) from error

    def _open(self, files: Iterable[Path]) -> Any:
        readable = []
        for file in files:
            if not is_complete(file):
                self.was_complete = False
                folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bid_bag_"))
                readable.append(Path(folder, file.name))
                copy_whole(file, readable[-1])
            else:
                readable.append(file)
        return self._stack.enter_context(AnyReader(readable))

    @property
    def topics(self) -> dict[str, str]:
        """Type name by topic."""
        return {name: info.msgtype for name, info in self._reader.topics.items()}

    def says(self, topic: str, field: str) -> bool:
        """Whether the messages of a topic have a field; True if the bag has no such topic."""
        kind = self.topics.get(self.recorded_name(topic))
        return kind is None or field in {name for name, _ in self._reader.typestore.fielddefs[kind][1]}

    @property
    def counts(self) -> dict[str, int]:
        """Messages by topic."""
        return {name: info.msgcount for name, info in self._reader.topics.items()}

    @property
    def frame_prefix(self) -> str:
        """What precedes the name of every frame of the recorded system."""
        return self._custom.get("frame_prefix", "")

    def recorded_name(self, topic: str) -> str:
        """Return the full name of a topic in this bag, also if it holds no such topic.

        Raises:
            RecordingError: ``topic`` is relative, and several systems of this bag have one.
        """
        remapped: dict[str, str] = json.loads(self._custom.get("remapped", "{}"))
        if topic.startswith("/"):
            return remapped.get(topic, topic)
        if "namespace" in self._custom:
            return remapped.get(topic, f"{self._custom['namespace'].rstrip('/')}/{topic}")
        found = [name for name in self.topics if name.endswith(f"/{topic}")] or [f"/{topic}"]
        if f"/{topic}" not in found and len(found) > 1:
            raise RecordingError(f"bag {self.path} holds {' and '.join(sorted(found))}; valid is a bag of one system")
        return f"/{topic}" if f"/{topic}" in found else found[0]

    def messages(
        self, topics: Iterable[str] | None = None, start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[BagMessage]:
        """Yield the messages in the order of their ``stamp_ns``.

        Args:
            topics: only these (default: all), by full or relative name; one that the bag does not have yields
                nothing.
            start_ns: only messages at or after this time of receipt.
            stop_ns: only messages before this time of receipt.

        Raises:
            RecordingError: at the first message that cannot be read, or as :meth:`recorded_name`.
        """
        asked = self.topics if topics is None else topics
        names = {self.recorded_name(topic): topic for topic in asked}
        connections = [item for item in self._reader.connections if item.topic in names]
        if not connections:
            return
        try:
            for item, stamp, data in self._reader.messages(connections, start_ns, stop_ns):
                yield BagMessage(names[item.topic], stamp, self._reader.deserialize(data, item.msgtype))
        except Exception as error:
            raise self._damaged(error) from error

    def close(self) -> None:
        """Close the files and remove temporary copies."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _damaged(self, error: BaseException) -> RecordingError:
        reason = " ".join(str(error).split()).rstrip(".")
        return RecordingError(f"bag {self.path} is damaged ({reason}); repair_bag keeps what can be read")
