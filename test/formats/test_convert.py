"""Conversions: loss-free there and back, resumed after a kill, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from odd_sets import counted

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import parse_task
from bid_ros.formats import FORMATS, Options, convert, load_dataset, mapped, open_source
from bid_ros.recording.dataset import Dataset

DISTANCES = {"name": "front", "kind": "image", "shape": [32, 48, 1], "depth": [0.1, 2.0]}
LEAST_PSNR = 33.0  # dB, of the noise in conftest.py, whose colours a video halves; measured: 33.9


def digest(path: Path) -> dict[str, str]:
    """Hash of every file of a data set."""
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    return {item.relative_to(path).as_posix(): hashlib.sha256(item.read_bytes()).hexdigest() for item in files}


def test_a_round_trip_keeps_every_number_picture_and_label(written, exact, dataset, task):
    assert load_dataset(written(exact), task).sha256 == dataset.sha256


def test_a_video_keeps_every_number_and_the_pictures_closely(written, video, dataset, task):
    found = load_dataset(written(video), task)
    error = np.mean((found.observations["wrist"].astype(float) - dataset.observations["wrist"]) ** 2)
    assert 10 * np.log10(255**2 / error) > LEAST_PSNR
    same = {"wrist": dataset.observations["wrist"]}
    assert replace(found, observations={**found.observations, **same}).sha256 == dataset.sha256


def test_a_conversion_says_how_closely_it_keeps_pictures(source, kit, tmp_path):
    said = [convert(source, tmp_path / images, "lerobot_v30", Options(images)).fidelity for images in ("video", "png")]
    (name, (median, lowest)), exact = *said[0].items(), said[1]
    assert name == "wrist" and LEAST_PSNR - 3 < lowest <= median < 45
    assert not exact
    worse = convert(source, tmp_path / "worse", "lerobot_v30", Options("video", quality=40)).fidelity["wrist"]
    assert worse[0] < median - 3


def test_a_chain_of_all_formats_loses_nothing(source, kit, dataset, task, tmp_path):
    for number, (name, target, options) in enumerate(kit.EXACT.values()):
        convert(source, tmp_path / f"{number}{target}", name, options)
        source = mapped(open_source(tmp_path / f"{number}{target}"), task)
    assert load_dataset(tmp_path / f"{number}{target}", task).sha256 == dataset.sha256


def test_a_chain_without_a_task_keeps_the_arrays(source, dataset, tmp_path):
    convert(source, tmp_path / "a", "lerobot_v30", Options("png"))
    convert(open_source(tmp_path / "a"), tmp_path / "b.hdf5", "robomimic")
    convert(open_source(tmp_path / "b.hdf5"), tmp_path / "c.zarr", "zarr")
    whole = open_source(tmp_path / "c.zarr")
    names = ["tool_position", "tool_rotation", "gripper_width"]
    state = np.concatenate([dataset.observations[name] for name in names], axis=1)
    for first, end, episode in zip(dataset.episode_starts, dataset.episode_ends, whole.episodes(), strict=True):
        np.testing.assert_array_equal(episode.observations["state"], state[first:end])
        np.testing.assert_array_equal(episode.actions, dataset.actions[first:end])
    assert whole.contents.columns[0].names[:2] == ("tool_position.0", "tool_position.1")


class Stopping:
    """A source that stops before an episode, as if the process had been killed."""

    def __init__(self, source, before: int) -> None:
        self._source, self._before, self.contents = source, before, source.contents
        self.began: list[int] = []

    def episodes(self, start: int = 0, names=None):
        self.began.append(start)
        for number, episode in enumerate(self._source.episodes(start), start):
            if number == self._before:
                raise KeyboardInterrupt
            yield episode


def test_a_stopped_conversion_goes_on_and_gives_the_same_files(source, way, kit, tmp_path):
    name, target, options = (kit.EXACT | kit.VIDEO)[way]
    whole, again = tmp_path / "one" / target, tmp_path / "two" / target
    convert(source, whole, name, options)
    for before in (1, 2):
        stopping = Stopping(source, before)
        with pytest.raises(KeyboardInterrupt):
            convert(stopping, again, name, options)
        assert stopping.began == [before - 1]
        assert not again.exists()
    report = convert(source, again, name, options)
    assert (report.resumed, report.episodes, report.rows) == (2, 3, sum(kit.LENGTHS))
    assert digest(again) == digest(whole)
    assert [item.name for item in again.parent.iterdir()] == [target]


KILLED = """
import os, signal, sys
from bid_ros.formats import convert, open_source
def kill(episodes, rows):
    if episodes == 2:
        os.kill(os.getpid(), signal.SIGKILL)
convert(open_source(sys.argv[1]), sys.argv[2], "zarr", progress=kill)
"""


def test_a_killed_process_leaves_whole_episodes(source, written, tmp_path):
    robomimic, target = written("robomimic"), tmp_path / "killed.zarr"
    done = subprocess.run([sys.executable, "-c", KILLED, str(robomimic), str(target)], env=os.environ)
    assert done.returncode == -9
    assert not target.exists()
    report = convert(open_source(robomimic), target, "zarr")
    assert (report.resumed, report.episodes) == (2, 3)


def test_an_assembly_that_was_interrupted_begins_again(source, tmp_path):
    left = tmp_path / ".set.zarr.tmp.zarr"
    left.mkdir()
    (left / "half").write_text("of a file")
    convert(source, tmp_path / "set.zarr", "zarr")
    assert not left.exists()
    assert not (tmp_path / "set.zarr" / "half").exists()


def test_a_link_to_nowhere_is_not_replaced(source, tmp_path):
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RecordingError, match="out exists; name another target"):
        convert(source, tmp_path / "out", "zarr")
    assert (tmp_path / "out").is_symlink() and not (tmp_path / "nowhere").exists()


def test_what_is_there_is_never_replaced(source, written, exact, kit, tmp_path):
    path = written(exact)
    before = digest(path)
    with pytest.raises(RecordingError, match=r"exists; name another target, or remove it"):
        convert(source, path, kit.EXACT[exact][0])
    assert digest(path) == before


def test_parts_of_another_conversion_are_not_mixed_in(source, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        convert(Stopping(source, 1), tmp_path / "set", "lerobot_v30", Options(quality=30))
    report = convert(source, tmp_path / "set", "lerobot_v30", Options(quality=20))
    convert(source, tmp_path / "fresh", "lerobot_v30", Options(quality=20))
    assert report.resumed == 0
    assert digest(tmp_path / "set") == digest(tmp_path / "fresh")
    assert not (tmp_path / ".set.parts").exists()


def test_a_source_that_is_not_what_it_says_is_refused(source, tmp_path):
    class Shorter(Stopping):
        def episodes(self, start=0, names=None):
            yield from list(self._source.episodes(start))[: 2 - start]

    with pytest.raises(RecordingError, match="the data set has 2 episodes; it says 3"):
        convert(Shorter(source, 9), tmp_path / "set.zarr", "zarr")
    assert not (tmp_path / "set.zarr").exists()

    class Odd(Stopping):
        def episodes(self, start=0, names=None):
            for item in self._source.episodes(start):
                yield replace(item, observations={**item.observations, "wrist": item.observations["wrist"][:, :30]})

    with pytest.raises(
        RecordingError, match=r"episode 0: 'wrist' has shape \(5, 30, 48, 3\); valid is \(5, 32, 48, 3\)"
    ):
        convert(Odd(source, 9), tmp_path / "odd.zarr", "zarr")


def test_a_format_that_is_only_read_is_refused(source, tmp_path, monkeypatch):
    find = FORMATS.find
    monkeypatch.setattr(FORMATS, "find", lambda name: replace(find(name), writer=None) if name == "bag" else find(name))
    with pytest.raises(RecordingError, match="'bag' is only read; valid targets are lerobot_v21, lerobot_v30, npz"):
        convert(source, tmp_path / "bag", "bag")


def test_unknown_formats_and_bad_options_are_refused(source, tmp_path):
    with pytest.raises(RecordingError, match="data format 'tfds' does not exist; valid are bag"):
        convert(source, tmp_path / "set", "tfds")
    with pytest.raises(RecordingError, match="images are 'jpeg'; valid are video and png"):
        Options(images="jpeg")
    with pytest.raises(RecordingError, match="quality is 52; valid is 0 to 51"):
        Options(quality=52)


def test_the_file_of_the_project_is_what_its_own_class_writes(written, dataset):
    assert Dataset.load(written("npz")).sha256 == dataset.sha256


@pytest.fixture
def measured(kit, dataset, tmp_path):
    """A task that observes distances too, and its data set."""
    content = kit.content()
    random = "tool_rotation"  # its numbers are no rotation, which a bag would hold
    content["observation"] = [*(item for item in content["observation"] if item["name"] != random), DISTANCES]
    task = parse_task(content)
    values = np.random.default_rng(5).integers(0, 1 << 16, (dataset.rows, 32, 48, 1), np.uint16)
    observations = {name: dataset.observations[name] for name in dataset.observations if name != random}
    observations["front"] = values
    found = replace(dataset, observations=observations, task_signature=task.signature())
    found.save(tmp_path / "measured.npz")
    found.validate(task)
    return task, found


@pytest.mark.parametrize(("name", "suffix"), [("npz", ".npz"), ("zarr", ""), ("robomimic", ".hdf5"), ("bag", "")])
def test_distances_keep_their_16_bits(measured, name, suffix, tmp_path):
    task, dataset = measured
    target = tmp_path / f"set{suffix}"
    convert(mapped(open_source(tmp_path / "measured.npz"), task), target, name, Options(task=task))
    found = mapped(open_source(target, task), task)
    for episode, first in zip(found.episodes(), dataset.episode_starts, strict=True):
        values = episode.observations["front"]
        assert values.dtype == np.uint16
        np.testing.assert_array_equal(values, dataset.observations["front"][first : first + episode.rows])


@pytest.mark.parametrize("name", ["lerobot_v30", "lerobot_v21"])
def test_distances_are_refused_where_they_would_lose_their_bits(measured, name, tmp_path):
    source = mapped(open_source(tmp_path / "measured.npz"), measured[0])
    with pytest.raises(RecordingError, match="image 'front' is of distances in 16 bits; LeRobot's pictures have three"):
        convert(source, tmp_path / "set", name, Options("png"))
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("form", ["lerobot_v30", "lerobot_v21", "zarr", "robomimic"])
def test_a_number_that_is_none_is_named_and_not_written(tmp_path, form):
    source = counted()
    source.held[1].observations["state"][[4, 7], 1] = np.nan, np.inf
    with pytest.raises(
        RecordingError,
        match=r"episode 1: 'state' is nan in row 4 \(value 1\); 2 of 12 rows have such a value; valid",
    ):
        convert(source, tmp_path / "set", form)
    assert not (tmp_path / "set").exists()


def test_pictures_of_another_scale_are_refused(tmp_path):
    source = counted()
    source.held[1].observations["wrist"] = source.held[1].observations["wrist"] / np.float32(255)
    with pytest.raises(
        RecordingError, match="episode 1: 'wrist' is float32, in other episodes uint8; valid is one type"
    ):
        convert(source, tmp_path / "set", "zarr")
