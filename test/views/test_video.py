import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image, ImageSequence

from bid_ros.core.errors import BidError
from bid_ros.views.video import compose, write_gif, write_mp4, write_webp, writer_of

FRAMES = [np.full((49, 65, 3), (20 * i, 255 - 20 * i, 90), np.uint8) for i in range(10)]


def noise(count):
    return list(np.random.default_rng(0).integers(0, 256, (count, 64, 64, 3), dtype=np.uint8))


def test_a_gif_has_every_frame_its_colours_and_its_duration(tmp_path):
    path = write_gif(FRAMES, tmp_path / "deep" / "run.gif", 10)
    film = iio.imread(path)
    assert film.shape == (10, 49, 65, 3)
    for expected, frame in zip(FRAMES, film, strict=True):
        assert np.abs(frame.astype(int) - expected).max() <= 8
    assert iio.immeta(path)["duration"] == pytest.approx(100)
    assert iio.immeta(path)["loop"] == 0


def test_a_gif_that_would_be_too_large_keeps_fewer_frames_and_its_duration(tmp_path):
    large = write_gif(noise(12), tmp_path / "large.gif", 10, max_bytes=10_000_000)
    small = write_gif(noise(12), tmp_path / "small.gif", 10, max_bytes=large.stat().st_size // 2)
    assert small.stat().st_size <= large.stat().st_size // 2
    assert 0 < len(iio.imread(small)) < 12
    assert len(iio.imread(small)) * iio.immeta(small)["duration"] == pytest.approx(1200, abs=100)


def test_thirty_seconds_fit_three_megabytes(tmp_path):
    background = np.kron(np.random.default_rng(1).integers(0, 200, (24, 24, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    frames = [background.copy() for _ in range(300)]
    for i, frame in enumerate(frames):
        frame[100:140, i : i + 40] = (250, 220, 40)
    path = write_gif(frames, tmp_path / "run.gif", 10)
    assert path.stat().st_size <= 3_000_000
    assert len(iio.imread(path)) == 300


def test_an_mp4_plays_everywhere_even_with_odd_sizes(tmp_path):
    path = write_mp4(FRAMES, tmp_path / "run.mp4", 10)
    film = iio.imread(path)
    meta = iio.immeta(path)
    assert film.shape == (10, 48, 64, 3)
    assert np.abs(film[4].astype(int) - FRAMES[4][:48, :64]).mean() < 6
    assert meta["codec"] == "h264" and "yuv420p" in meta["pix_fmt"] and meta["fps"] == 10


def test_a_webp_has_every_frame_its_colours_and_its_duration(tmp_path):
    path = write_webp(FRAMES, tmp_path / "run.webp", 10)
    frames, duration = [], 0
    with Image.open(path) as film:
        for frame in ImageSequence.Iterator(film):
            frames.append(np.asarray(frame.convert("RGB")).astype(int))
            duration += frame.info["duration"]
        assert film.info["loop"] == 0
    assert duration == 1000 and len(frames) == 10
    for expected, frame in zip(FRAMES, frames, strict=True):
        assert np.abs(frame - expected).mean() < 3


def test_a_webp_that_would_be_too_large_is_coarser(tmp_path):
    large = write_webp(noise(4), tmp_path / "large.webp", 10).stat().st_size
    assert write_webp(noise(4), tmp_path / "small.webp", 10, max_bytes=large - 1).stat().st_size < large


def test_the_name_of_the_file_says_what_is_written(tmp_path):
    assert writer_of(tmp_path / "run.webp") is write_webp
    with pytest.raises(BidError, match=r"run.jpg; valid is a name that ends with .gif, .mp4, .webp"):
        writer_of(tmp_path / "run.jpg")


@pytest.mark.parametrize("writer", [write_gif, write_mp4, write_webp])
@pytest.mark.parametrize(
    ("frames", "fps", "words"),
    [
        ([], 10, "no frame to write"),
        ([FRAMES[0], FRAMES[0][:40]], 10, "valid is one shape"),
        (FRAMES, 0, "frame rate of .* is 0; valid is above 0"),
    ],
)
def test_refuses_impossible_films_and_writes_nothing(tmp_path, writer, frames, fps, words):
    with pytest.raises(BidError, match=words):
        writer(frames, tmp_path / "run.gif", fps)
    assert not list(tmp_path.iterdir())


def test_no_partial_file_is_left(tmp_path):
    write_gif(FRAMES, tmp_path / "run.gif", 10)
    write_mp4(FRAMES, tmp_path / "run.mp4", 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.gif", "run.mp4"]


def test_pictures_stand_side_by_side():
    picture = compose(FRAMES[0], FRAMES[1][:20, :30], gap=4)
    assert picture.shape == (49, 65 + 4 + 30, 3)
    np.testing.assert_array_equal(picture[:, :65], FRAMES[0])
    np.testing.assert_array_equal(picture[:20, 69:], FRAMES[1][:20, :30])
    assert len(np.unique(picture[20:, 65:].reshape(-1, 3), axis=0)) == 1
    with pytest.raises(BidError, match="no picture to compose"):
        compose()
