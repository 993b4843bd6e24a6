"""Recording of serialized messages into a rosbag2 folder that survives the death of the recorder."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import settings
from bid_ros.core.topics import COMPRESSED_IMAGE_TYPE, IMAGE_TYPE, Qos
from bid_ros.recording.compression import Encode
from bid_ros.recording.definitions import Definition
from bid_ros.recording.files import qos_text
from bid_ros.recording.storage import CHUNK_BYTES, COMMIT_BYTES, Backlog, BagFile, Compression, Pending

CLOSE_SECONDS: Final = 10.0  # a node that is asked to end is ended by force after 15, and says nothing then
COMPUTING: Final = 10  # steps of niceness: what computes goes last
ENCODERS: Final = 2  # threads that compress images; OpenCV lets go of Python's lock meanwhile


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

    Images may be compressed on the way. That thread and two of its own do it, never the caller of :meth:`write`.

    A message is in the file at most ``flush_period_s`` (and one write) after :meth:`write` took it. If this process is
    killed later, the bag can be read up to that message: at once, or, if the kill fell inside a write, with
    ``BagReader`` or after ``repair_bag``.

    Attributes:
        problem: why the last image that could not be compressed could not; empty if all could.

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
        self._encoders: dict[str, Encode] = {}
        self.problem = ""
        try:
            self.directory.mkdir(parents=True)
            self._file = BagFile(self.directory / f"{self.directory.name}_0.mcap", self._config.compression)
            self._file.write_metadata(self._custom)
        except FileExistsError as error:
            raise RecordingError(f"bag {self.directory} exists already; valid is a new folder") from error
        except OSError as error:
            raise RecordingError(f"bag {self.directory} cannot be created: {error.strerror}") from error
        self._flush_lock, self._file_lock, self._queue_lock = threading.Lock(), threading.Lock(), threading.Lock()
        self._pool = ThreadPoolExecutor(ENCODERS, "bag-encoder", partial(os.nice, COMPUTING))
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
        """Messages lost by topic, because they could not be written fast enough or were images that nobody can read."""
        with self._queue_lock:
            return Counter(self._backlog.dropped)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the messages that wait in memory."""
        return self._backlog.size_bytes

    def describe(self, **custom_data: str) -> None:
        """Add to the custom data of the bag's metadata, which are written again within ``metadata_period_s``."""
        with self._file_lock:
            self._custom |= custom_data

    @property
    def file(self) -> Path:
        """The MCAP file."""
        return self._file.path

    def add_topic(
        self, name: str, definition: Definition, qos: Qos | None = None, encode: Encode | None = None
    ) -> None:
        """Register a topic before its first message. Images are dropped first when the disk is slow.

        Args:
            name: topic.
            definition: of its type, from :func:`bid_ros.recording.definitions.find_definition`.
            qos: what the publisher offers.
            encode: makes what is stored of each message, in another thread; None: they are stored as they are.

        Raises:
            RecordingError: the topic is registered already, or the bag can no longer be written.
        """
        self.add_topics([(name, definition, qos, encode)])

    def add_topics(self, topics: Iterable[tuple[str, Definition, Qos | None, Encode | None]]) -> None:
        """Register several topics, each as :meth:`add_topic`. The metadata are written once for all of them."""
        topics = list(topics)
        names = [name for name, *_ in topics]
        for at, name in enumerate(names):
            if name in self._expendable or name in names[:at]:
                raise RecordingError(f"topic {name} is recorded already; valid is to add it once")
        with self._file_lock, self._kept_errors():
            for name, definition, qos, encode in topics:
                self._file.add_topic(name, definition, qos_text(qos or Qos()))
                if encode is not None:
                    self._encoders[name] = encode
                self._expendable[name] = definition.type_name in (IMAGE_TYPE, COMPRESSED_IMAGE_TYPE)
            self._file.write_metadata(self._custom)

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
        with self._flush_lock:  # batches are written in the order in which they were taken
            with self._queue_lock:
                batch = self._backlog.drain()
            encoded = self._encoded(batch)
            with self._file_lock, self._kept_errors():
                self._write(encoded)

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
        self._pool.shutdown(wait=False)
        if self._thread.is_alive():
            problem = f"bag {self.directory} could not be finished within {CLOSE_SECONDS:g} s"
            raise RecordingError(f"{problem}; what was written by then can be read")
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

    def _encoded(self, batch: Sequence[Pending]) -> list[Pending]:
        """Compress what is to be compressed. An image that cannot be is left out, and counted."""
        made = [self._pool.submit(self._encode, item) if item.topic in self._encoders else item for item in batch]
        done = (item.result() if isinstance(item, Future) else item for item in made)
        return [item for item in done if item is not None]

    def _encode(self, item: Pending) -> Pending | None:
        try:
            return replace(item, data=self._encoders[item.topic](item.data))
        except Exception as error:  # whatever it is: an image must not end a recording
            self.problem = f"an image of {item.topic} cannot be compressed: {error}"
            with self._queue_lock:
                self._backlog.dropped[item.topic] += 1
            return None

    def _write(self, batch: Sequence[Pending]) -> None:
        waiting = 0
        for item in batch:
            self._file.add_message(item.topic, item.stamp_ns, item.data)
            waiting += len(item.data)
            if waiting > COMMIT_BYTES:
                self._file.commit()
                waiting = 0
        if batch:
            self._file.commit()
