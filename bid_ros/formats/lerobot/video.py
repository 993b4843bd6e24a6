"""Videos of a LeRobotDataset: one per camera, H.264 in MP4."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.extras import extra
from bid_ros.formats.files import readable
from bid_ros.formats.lerobot.layout import GROUP


def av() -> Any:
    """Return the package PyAV. Raises RecordingError if the extra ``data`` is not installed."""
    with extra("data", "a LeRobot data set with videos", RecordingError):
        import av as package

        return package


@contextmanager
def _opened(path: Path, mode: str = "r") -> Iterator[Any]:
    """Open a video; what is wrong with it becomes one sentence."""
    package = av()
    with readable(path):
        try:
            with closing(package.open(str(path), mode)) as container:
                yield container
        except package.error.FFmpegError as error:
            raise ValueError(str(error)) from error


def encode(frames: Iterable[NDArray[np.uint8]], path: Path, fps: int, quality: int) -> None:
    """Write frames ``(height, width, 3)`` rgb as H.264, yuv420p, with a whole picture every ``GROUP`` frames.

    Args:
        frames: all of one, even size.
        path: file to write.
        fps: frames per second.
        quality: constant rate factor.

    Raises:
        RecordingError: PyAV is not installed, or has no encoder for H.264.
    """
    package = av()
    # One thread and no frames that look ahead: the same frames give the same file.
    options = {"crf": str(quality), "g": str(GROUP), "bf": "0", "threads": "1", "preset": "medium"}
    with _opened(path, "w") as container:
        stream = None
        for frame in frames:
            if stream is None:
                stream = container.add_stream("libx264", fps, options=options)
                stream.height, stream.width, stream.pix_fmt = *frame.shape[:2], "yuv420p"
            picture = package.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            container.mux(stream.encode(picture))
        if stream is not None:
            container.mux(stream.encode())


def join(parts: Sequence[Path], target: Path) -> None:
    """Write videos of one size and rate into one file, one after the other, without coding them again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _opened(target, "w") as output:
        stream, offset = None, 0
        for part in parts:
            with _opened(part) as video:
                (track,) = video.streams.video
                if stream is None:
                    stream = output.add_stream_from_template(track)
                end = offset
                for packet in video.demux(track):
                    if packet.dts is None:
                        continue
                    packet.pts += offset
                    packet.dts += offset
                    packet.stream = stream
                    end = max(end, packet.pts + packet.duration)
                    output.mux(packet)
            offset = end


def decode(path: Path, begin: float, count: int, fps: float, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return ``count`` frames of a video.

    Args:
        path: the file.
        begin: time of the first frame in the file, s.
        count: number of frames, ``1 / fps`` apart.
        fps: frames per second.
        shape: of one frame, ``(height, width, 3)``.

    Raises:
        RecordingError: the file is missing or damaged, lacks one of the frames, or has another size.
    """
    frames = np.empty((count, *shape), np.uint8)
    if not path.exists():
        raise RecordingError(f"video {path} does not exist")
    found = 0
    with _opened(path) as container:
        (stream,) = container.streams.video[:1]
        container.seek(int(max(0.0, begin - 0.5 / fps) / stream.time_base), stream=stream)
        for frame in container.decode(stream):
            # Frames before the first one belong to the episode before, or lead to it from a whole picture.
            if float(frame.pts * stream.time_base) < begin - 0.5 / fps:
                continue
            late = float(frame.pts * stream.time_base) - begin - found / fps
            if abs(late) > 0.5 / fps:
                break
            picture = frame.to_ndarray(format="rgb24")
            if picture.shape != shape:
                raise RecordingError(f"video {path} has frames of {picture.shape}; the data set says {shape}")
            frames[found] = picture
            found += 1
            if found == count:
                return frames
    raise RecordingError(f"video {path} lacks the frame at {begin + found / fps:.3f} s")
