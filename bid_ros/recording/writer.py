"""Recording of serialized messages into a rosbag2 folder that survives the death of the recorder."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import Field

from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import settings
from bid_ros.core.topics import IMAGE_TYPE, Qos
from bid_ros.recording.backlog import Backlog, Pending
from bid_ros.recording.definitions import Definition
from bid_ros.recording.metadata import qos_profiles
from bid_ros.recording.storage import CHUNK_BYTES, BagFile, Compression

CLOSE_SECONDS: Final = 30.0


@settings(error=RecordingError)
class WriterConfig:
    """Settings of the writing of a bag.

    Attributes:
        flush_period_s: longest time in s that a message waits before it is written to the file.
        metadata_period_s: s between two updates of ``metadata.yaml`` and two synchronisations of the disk.
        queue_bytes: bytes of messages that may wait in memory. Images get half of it.
        compression: compression of the chunks: ``none``, ``lz4`` or ``zstd``.

    Raises:
        RecordingError: a value is outside its range.
    """

    flush_period_s: Annotated[float, Field(ge=0.01, le=1)] = 0.2
    metadata_period_s: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    queue_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 32)] = 64 << 20
    compression: Compression = "zstd"


class BagWriter:
    """A rosbag2 MCAP bag, written by its own thread. Every method may be called from any thread.

    A message is in the file at most ``flush_period_s`` (and one write) after :meth:`write` took it. If this process is
    killed later, the bag can be read up to that message: at once, or, if the kill fell inside a write, with
    ``BagReader`` or after ``repair_bag``.

    Args:
        directory: bag folder to create; the file in it is ``<folder name>_0.mcap``.
        config: periods and limits.
        custom_data: text by key for the bag's metadata.

    Raises:
        RecordingError: the folder exists or cannot be created.
    """

    def __init__(
        self,
        directory: str | Path,
        config: WriterConfig | None = None,
        custom_data: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        self._config = config or WriterConfig()
        self._custom = dict(custom_data or {})
        try:
            self.directory.mkdir(parents=True)
            self._file = BagFile(self.directory / f"{self.directory.name}_0.mcap", self._config.compression)
            self._file.write_metadata(self._custom)
        except FileExistsError as error:
            raise RecordingError(f"bag {self.directory} exists already; valid is a new folder") from error
        except OSError as error:
            raise RecordingError(f"bag {self.directory} cannot be created: {error.strerror}") from error
        self._file_lock = threading.Lock()
        self._changed = threading.Condition()
        self._backlog = Backlog(self._config.queue_bytes)
        self._expendable: dict[str, bool] = {}
        self._taken_count = 0
        self._drained_count = 0
        self._flush_asked = False
        self._closing = False
        self._error: Exception | None = None
        self._refresh_at = 0.0
        self._thread = threading.Thread(target=self._run, name="bag-writer", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> dict[str, int]:
        """Messages in the file by topic."""
        with self._file_lock:
            return self._file.counts

    @property
    def dropped(self) -> Counter[str]:
        """Messages lost by topic because the file could not be written fast enough."""
        with self._changed:
            return Counter(self._backlog.dropped)

    def add_topic(
        self,
        name: str,
        type_name: str,
        message_definition: str,
        type_hash: str = "",
        qos: Qos | None = None,
        expendable: bool | None = None,
    ) -> None:
        """Register a topic before its first message.

        Args:
            name: topic.
            type_name: ``package/msg/Name``.
            message_definition: ros2msg text with all dependencies (``find_definition(type_name).text``).
            type_hash: RIHS01 hash of the type, empty if unknown.
            qos: what the publisher offers.
            expendable: whether its messages are dropped first when the disk is slow; default: images.

        Raises:
            RecordingError: the topic is registered already, or the bag can no longer be written.
        """
        profile = yaml.safe_dump(qos_profiles(qos or Qos()), sort_keys=False).strip()
        with self._file_lock:
            self._raise_failure()
            if name in self._expendable:
                raise RecordingError(f"topic {name} is recorded already; valid is to add it once")
            self._file.add_topic(name, Definition(type_name, message_definition, type_hash), profile)
            self._file.write_metadata(self._custom)
            self._expendable[name] = type_name == IMAGE_TYPE if expendable is None else expendable

    def write(self, topic: str, stamp_ns: int, data: bytes) -> bool:
        """Queue one serialized message (CDR) and return at once.

        Args:
            topic: a registered topic.
            stamp_ns: time of receipt, ns since the epoch.
            data: the message as it came from the middleware.

        Returns:
            False if the queue was full and the message was dropped (and counted in ``dropped``).

        Raises:
            RecordingError: the topic is not registered, the stamp is negative, or the bag is closed or failed.
        """
        if topic not in self._expendable:
            raise RecordingError(f"topic {topic} was not added to the bag; valid are {', '.join(self._expendable)}")
        if stamp_ns < 0:
            raise RecordingError(f"a message on {topic} has stamp {stamp_ns} ns; valid is 0 or later")
        with self._changed:
            self._raise_failure()
            if self._closing:
                raise RecordingError(f"bag {self.directory} is closed")
            taken = self._backlog.offer(Pending(topic, stamp_ns, bytes(data)), self._expendable[topic])
            self._taken_count += 1
            if self._backlog.size_bytes >= CHUNK_BYTES:
                self._changed.notify_all()
            return taken

    def flush(self, timeout_s: float = 10.0) -> None:
        """Wait until every message that was queued before this call is in the file.

        Raises:
            RecordingError: it took longer than ``timeout_s``, or the disk failed.
        """
        with self._changed:
            target = self._taken_count
            self._flush_asked = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._drained_count >= target or self._error, timeout_s)
            self._raise_failure()
            if not done:
                raise RecordingError(f"bag {self.directory} was not flushed within {timeout_s} s")

    def close(self) -> None:
        """Write what is queued, the index and the metadata. A second call does nothing.

        Raises:
            RecordingError: the disk failed; the bag holds everything up to the last successful flush.
        """
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            raise RecordingError(f"bag {self.directory} could not be finished within {CLOSE_SECONDS:.0f} s")
        self._raise_failure()

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise RecordingError(f"bag {self.directory} can no longer be written: {self._error}") from self._error

    def _run(self) -> None:
        try:
            while self._write_batch():
                self._refresh()
            with self._file_lock:
                self._file.finish()
                self._file.write_metadata(self._custom)
        # Pass every error to the callers: an exception in a thread would be lost.
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
            self._file.abandon()

    def _write_batch(self) -> bool:
        """Wait for work or the end of the period, then write the queue. Return False when the bag is to be closed."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing or self._flush_asked or self._backlog.size_bytes >= CHUNK_BYTES,
                self._config.flush_period_s,
            )
            closing = self._closing
            self._flush_asked = False
            batch, taken = self._backlog.drain(), self._taken_count
        if batch:
            with self._file_lock:
                for item in batch:
                    self._file.add_message(item.topic, item.stamp_ns, item.data)
                self._file.commit()
        with self._changed:
            self._drained_count = taken
            self._changed.notify_all()
        return not closing

    def _refresh(self) -> None:
        now = time.monotonic()
        if self._drained_count and now >= self._refresh_at:
            self._refresh_at = now + self._config.metadata_period_s
            with self._file_lock:
                self._file.write_metadata(self._custom)
            # Outside the lock: a slow disk must block only this thread.
            self._file.sync()
