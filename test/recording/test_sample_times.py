"""Messages without a header in a bag of simulated time get their times from /clock."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64MultiArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature
from bid_ros.formats import build_dataset
from bid_ros.recording.reader import BagMessage, BagReader
from bid_ros.recording.sample_times import SampleTimes

WALL, SIMULATED, MS = 1_700_000_000 * NANOSECONDS, 20 * NANOSECONDS, 1_000_000
SKIN = Feature("skin", "vector", (1,), rate_hz=100, topic="skin", type="std_msgs/msg/Float64MultiArray", field="data")
LIKE = {"skin": SKIN.type, "/clock": "rosgraph_msgs/msg/Clock"}


def simulated(make_run, pace=2, clock=True):
    """A run whose headers have simulated time, and which arrived at the time of a computer, `pace` times as fast.

    The topic without a header says when it was sent, in s of simulated time.
    """
    run = make_run(start_ns=SIMULATED)
    for stamp in range(SIMULATED - 500 * MS, SIMULATED + 2300 * MS, 10 * MS):
        run.add("skin", stamp + MS, Float64MultiArray(data=[stamp / NANOSECONDS]))
        if clock:
            tick = Clock()
            tick.clock.sec, tick.clock.nanosec = divmod(stamp, NANOSECONDS)
            run.add("/clock", stamp, tick)
    run.items = [(WALL + (at - SIMULATED) // pace, topic, message) for at, topic, message in run.items]
    return run


def test_rows_have_what_was_sent_at_their_time(make_run, task, tmp_path):
    observed = replace(task, observation=(*task.observation, SKIN))
    dataset = build_dataset([simulated(make_run).write(tmp_path / "bag", like=LIKE)], observed)
    assert dataset.rows > 10
    np.testing.assert_allclose(dataset.observations["skin"][:, 0], dataset.stamps_ns / NANOSECONDS, atol=0.006)


def test_without_a_clock_one_sentence_names_the_topic(make_run, task, tmp_path):
    observed = replace(task, observation=(*task.observation, SKIN))
    bag = simulated(make_run, clock=False).write(tmp_path / "bag", like=LIKE)
    with pytest.raises(RecordingError, match=r"skin has no header, the stamps of other topics are 1699999980 s"):
        build_dataset([bag], observed)


def test_a_clock_that_goes_back_and_one_that_has_ended(make_run, tmp_path):
    run = simulated(make_run)
    with BagReader(run.write(tmp_path / "bag", like=LIKE)) as reader:
        times, silent = SampleTimes(reader), SimpleNamespace()
        for wall, clock in ((0, 0), (1_000_000, 2_000_000), (-10 * NANOSECONDS, None), (60 * NANOSECONDS, None)):
            found = times.sample_ns(BagMessage("skin", WALL + wall, silent)) - SIMULATED
            ends = {-10 * NANOSECONDS: -10 * NANOSECONDS - 250 * MS, 60 * NANOSECONDS: 60 * NANOSECONDS + 1145 * MS}
            assert found == (ends[wall] if clock is None else clock)
    ticks = [message for _, topic, message in run.ordered() if topic == "/clock"]
    ticks[100].clock.sec = 3
    said = r"/clock goes back to 3\.\d+ s, so nobody knows when"
    with BagReader(run.write(tmp_path / "back", like=LIKE)) as reader, pytest.raises(RecordingError, match=said):
        SampleTimes(reader).sample_ns(BagMessage("skin", WALL, silent))
