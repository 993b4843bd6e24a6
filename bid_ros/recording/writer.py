"""Recording of serialized messages into a rosbag2 folder that survives the death of the recorder."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import settings
from bid_ros.core.topics import IMAGE_TYPE, Qos
from bid_ros.recording.backlog import Backlog, Pending
from bid_ros.recording.definitions import Definition
from bid_ros.recording.metadata import qos_text
from bid_ros.recording.storage import CHUNK_BYTES, COMMIT_BYTES, BagFile, Compression

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
        self._file_lock, self._queue_lock = threading.Lock(), threading.Lock()
        self._backlog = Backlog(self._config.queue_bytes)
        self._expendable: dict[str, bool] = {}
        self._wake = threading.Event()
        self._closing = False
        self._error: Exception | None = None
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
        with self._queue_lock:
            return Counter(self._backlog.dropped)

    def add_topic(self, name: str, definition: Definition, qos: Qos | None = None) -> None:
        """Register a topic before its first message. Images are dropped first when the disk is slow.

        Args:
            name: topic.
            definition: of its type, from :func:`bid_ros.recording.definitions.find_definition`.
            qos: what the publisher offers.

        Raises:
            RecordingError: the topic is registered already, or the bag can no longer be written.
        """
        if name in self._expendable:
            raise RecordingError(f"topic {name} is recorded already; valid is to add it once")
        with self._file_lock, self._kept_errors():
            self._file.add_topic(name, definition, qos_text(qos or Qos()))
            self._file.write_metadata(self._custom)
        self._expendable[name] = definition.type_name == IMAGE_TYPE

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
        with self._queue_lock:
            self._raise_failure()
            if self._closing:
                raise RecordingError(f"bag {self.directory} is closed")
            taken = self._backlog.offer(Pending(topic, stamp_ns, bytes(data)), self._expendable[topic])
            if self._backlog.size_bytes >= CHUNK_BYTES:
                self._wake.set()
            return taken

    def flush(self) -> None:
        """Write every message that was queued before this call. Raises RecordingError if the disk failed."""
        with self._file_lock, self._kept_errors():
            self._write_queue()

    def close(self) -> None:
        """Write what is queued, the index and the metadata. A second call does nothing.

        Raises:
            RecordingError: the disk failed; the bag holds everything up to the last successful flush.
        """
        with self._queue_lock:
            if self._closing:
                return
            self._closing = True
        self._wake.set()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            raise RecordingError(f"bag {self.directory} could not be finished within {CLOSE_SECONDS:.0f} s")
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise RecordingError(f"bag {self.directory} can no longer be written: {self._error}") from self._error

    @contextmanager
    def _kept_errors(self) -> Iterator[None]:
        """Keep an error, so that this call and every later one raises it. After one, the file is not written again."""
        self._raise_failure()
        try:
            yield
        except Exception as error:
            self._error = self._error or error
            self._file.abandon()
            self._raise_failure()

    def _run(self) -> None:
        refresh_at, closing = 0.0, False
        with suppress(RecordingError):  # the callers raise it: an exception in a thread would be lost
            while not closing:
                self._wake.wait(self._config.flush_period_s)
                self._wake.clear()
                closing = self._closing
                self.flush()
                if time.monotonic() >= refresh_at:
                    refresh_at = time.monotonic() + self._config.metadata_period_s
                    with self._file_lock, self._kept_errors():
                        self._file.write_metadata(self._custom)
                    # Outside the lock: a slow disk must block only this thread.
                    with self._kept_errors():
                        self._file.sync()
            with self._file_lock, self._kept_errors():
                self._file.finish()
                self._file.write_metadata(self._custom)

    def _write_queue(self) -> None:
        with self._queue_lock:
            batch = self._backlog.drain()
        waiting = 0
        for item in batch:
            self._file.add_message(item.topic, item.stamp_ns, item.data)
            waiting += len(item.data)
            if waiting > COMMIT_BYTES:
                self._file.commit()
                waiting = 0
        if batch:
            self._file.commit()
