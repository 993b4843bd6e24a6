"""Data sets written as bags: what reads them live reads the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from formats.test_convert import digest
from mcap.reader import make_reader
from scipy.spatial.transform import Rotation

from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.task import parse_task
from bid_ros.core.topics import ARM_STATUS
from bid_ros.curation.catalog import find_bags
from bid_ros.curation.edit import trim
from bid_ros.curation.listing import listed
from bid_ros.curation.validate import validate_bag
from bid_ros.formats import FORMATS, Options, convert, load_dataset, mapped, open_source
from bid_ros.recording.files import invented_fields, invented_in
from bid_ros.recording.reader import BagReader


def content(folder):
    """Every message of each bag, and the hash of every other file.

    The bytes of a bag also depend on when its writer committed, which goes by the clock.
    """
    found = {name: value for name, value in digest(folder).items() if not name.endswith(".mcap")}
    for path in folder.rglob("*.mcap"):
        with path.open("rb") as file:
            messages = make_reader(file).iter_messages(log_time_order=False)
            found[str(path.relative_to(folder))] = [
                (channel.topic, message.log_time, message.publish_time, message.data)
                for _, channel, message in messages
            ]
    return found


def turned(count, seed=0):
    return matrix_to_6d(Rotation.random(count, random_state=seed).as_matrix())


@pytest.fixture
def real(dataset):
    """The data set with rotations that are some."""
    return replace(dataset, observations={**dataset.observations, "tool_rotation": turned(dataset.rows)})


@pytest.fixture
def opened(tmp_path):
    """Opens a data set in memory for a task."""

    def write(dataset, task):
        dataset.save(tmp_path / "real.npz")
        return mapped(open_source(tmp_path / "real.npz"), task)

    return write


def same(found, dataset):
    assert list(found.episode_ends) == list(dataset.episode_ends)
    for name, values in dataset.observations.items():
        tolerance = 1e-12 if name == "tool_rotation" else 0.0
        np.testing.assert_allclose(found.observations[name], values, atol=tolerance, rtol=0, err_msg=name)
    np.testing.assert_array_equal(found.actions, dataset.actions)
    np.testing.assert_array_equal(found.stamps_ns, dataset.stamps_ns)
    assert found.labels == dataset.labels and list(found.seeds) == list(dataset.seeds)


def test_rows_come_back_from_bags_as_they_were(opened, real, task, tmp_path):
    report = convert(opened(real, task), tmp_path / "bags", "bag", Options(task=task))
    assert (report.episodes, report.rows) == (3, real.rows)
    assert report.lost[0] == "where a gap cuts a demonstration in two is not held"
    same(load_dataset(tmp_path / "bags", task), real)
    bags = find_bags([tmp_path / "bags"])
    assert [bag.name for bag in bags] == ["0000", "0001", "0002"]
    rows = [row for bag in bags for row in listed(bag)]
    assert [(row["outcome"], row["label"], row["frames"]) for row in rows] == [
        ("success", "clean", 5),
        ("success", "diverse", 8),
        ("success", "diverse", 4),
    ]


def test_a_task_without_cameras_comes_back_too(opened, real, kit, tmp_path):
    content = kit.content()
    task = parse_task({**content, "observation": content["observation"][1:]})
    vectors = {name: values for name, values in real.observations.items() if name != "wrist"}
    blind = replace(real, observations=vectors, task_signature=task.signature())
    convert(opened(blind, task), tmp_path / "bags", "bag", Options(task=task))
    same(load_dataset(tmp_path / "bags", task), blind)


def test_times_since_the_start_failures_and_people_are_kept(opened, real, task, tmp_path):
    source = opened(real, task)

    class Other:
        contents = replace(source.contents, extras=source.contents.extras | {"success", "interventions"})

        def episodes(self, start=0, names=None):
            for number, item in enumerate(source.episodes(start, names), start):
                runs = ((1, 3),) if number == 0 else ()
                zero = item.stamps_ns - item.stamps_ns[0]
                yield replace(item, stamps_ns=zero, success=number != 1, interventions=runs)

    convert(Other(), tmp_path / "bags", "bag", Options(task=task))
    found = load_dataset(tmp_path / "bags", task)
    assert list(found.episode_ends) == [5, 9], "the failed one is no demonstration"
    assert found.stamps_ns[0] == 10**9 and list(found.intervention[:5]) == [False, True, True, False, False]
    outcomes = [row["outcome"] for bag in find_bags([tmp_path / "bags"]) for row in listed(bag)]
    assert outcomes == ["success", "failure", "success"]


def test_a_conversion_to_bags_that_was_killed_goes_on(opened, real, task, tmp_path):
    source = opened(real, task)

    class Dying:
        contents = source.contents

        def episodes(self, start=0, names=None):
            yield next(iter(source.episodes(start, names)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(Dying(), tmp_path / "bags", "bag", Options(task=task))
    assert not (tmp_path / "bags").exists()
    assert convert(source, tmp_path / "bags", "bag", Options(task=task)).resumed == 1
    convert(source, tmp_path / "again", "bag", Options(task=task))
    assert content(tmp_path / "bags") == content(tmp_path / "again")


def test_what_no_bag_can_hold_is_refused(opened, real, dataset, task, kit, tmp_path):
    with pytest.raises(RecordingError, match="a bag needs the task of the data; valid is to name the task file"):
        convert(opened(real, task), tmp_path / "bags", "bag")
    with pytest.raises(RecordingError, match=r"'tool_rotation' of row 0 is no rotation: .*; valid are two perpend"):
        convert(opened(dataset, task), tmp_path / "other", "bag", Options(task=task))
    slow = parse_task(kit.content(rate_hz=4))
    with pytest.raises(RecordingError, match=r"task '.*' has 4 rows a second; valid for a bag is 5 or more"):
        FORMATS.find("bag").writer(opened(real, task).contents, Options(task=slow))
    vector = {"name": "force", "kind": "vector", "shape": [3], "topic": "/f", "type": "geometry_msgs/msg/Vector3"}
    content = kit.content()
    felt = parse_task({**content, "observation": [*content["observation"], {**vector, "field": "x"}]})
    with pytest.raises(RecordingError, match="observation 'force' cannot be written to a bag; valid are images, and"):
        FORMATS.find("bag").writer(opened(real, task).contents, Options(task=felt))
    joints = [{"name": "joint_positions", "kind": "joints", "shape": [7]}, content["action"][-1]]
    limits = {**content["limits"], "max_joint_speed": 1.0}
    bent = parse_task({**content, "action": joints, "limits": limits})
    with pytest.raises(RecordingError, match="commands joints; valid for a bag is one that commands a pose"):
        FORMATS.find("bag").writer(opened(real, task).contents, Options(task=bent))


def test_what_nobody_recorded_is_marked(opened, real, task, tmp_path):
    source = opened(real, task)
    convert(source, tmp_path / "bags", "bag", Options(task=task))
    (bag, *_) = bags = find_bags([tmp_path / "bags"])
    with BagReader(bag) as reader:
        fields = invented_fields(reader.custom)
        states = [item.message for item in reader.messages([ARM_STATUS])]
    # A recording that never heard an arm: what its fields say in every message is marked.
    made = {"mode", "sequence", "command_age", "reference_twist", "gripper_busy"}
    assert {f"arm/status.{name}" for name in made} | {"episode/event.outcome"} <= {*fields}
    assert not {"arm/status.tool.position", "arm/status.tool.orientation", "arm/status.header.stamp"} & {*fields}
    assert all(not any(state.reference_twist) and state.sequence == 0 for state in states)
    assert invented_in(bags) == fields
    (fault,) = [item for found in validate_bag(bag, task) for item in found.faults if item.check == "invented"]
    assert fault.severity == "warning" and "nobody recorded: arm/status.command_age, arm/status.grip" in fault.text

    class Bare:
        contents = replace(source.contents, extras=frozenset())

        def episodes(self, start=0, names=None):
            yield from (replace(episode, success=None) for episode in source.episodes(start, names))

    convert(Bare(), tmp_path / "bare", "bag", Options(task=task))
    more = {*invented_in(find_bags([tmp_path / "bare"]))} - {*fields}
    assert {"arm/status.header.stamp", "episode/event.label", "episode/event.seed"} <= more


def test_a_cut_bag_still_says_what_nobody_recorded(opened, real, task, tmp_path):
    convert(opened(real, task), tmp_path / "bags", "bag", Options(task=task))
    bag = find_bags([tmp_path / "bags"])[0]
    trim(bag, 0, 0.0, None, tmp_path / "cut", {})
    assert invented_in([tmp_path / "cut"]) == invented_in([bag]) != ()
