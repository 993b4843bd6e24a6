"""The scene in Rerun, read back from the file that is written."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from rerun.chunk import RrdReader
from views.test_scene import decision as chunks_of

from bid_ros.cameras.config import load_cameras
from bid_ros.cameras.image import encode_image
from bid_ros.core.errors import BidError
from bid_ros.core.topics import ARM_STATUS, DECISION, EPISODE_EVENT, MEASURED_LIMITS, SAFETY_STATE, camera_topic
from bid_ros.robots.franka.model import HOME_Q
from bid_ros.views.outline import outline_of, round_body
from bid_ros.views.rerun_robot import RerunRobot, normals
from bid_ros.views.rerun_sink import into_browsers, into_file, into_window
from bid_ros.views.rerun_view import RerunView, loss_summary

BEGIN = 1_700_000_000 * 10**9
MS = 10**6


@pytest.fixture
def cameras(root, task):
    names = [camera.name for camera in task.cameras]
    return load_cameras(root / "config" / "franka_place" / "cameras.yaml", names, twin=True)


def decision(task, **other):
    message = chunks_of(task, [5.0, np.nan, 1.0], [True, False, True])
    times = dict.fromkeys(("decision_time", "observation_age", "encode_time", "sample_time", "choose_time"), 0.02)
    vars(message).update(times, decoder="bid", selected_index=2, missed=0, **other)
    return message


def written(path) -> dict[str, list]:
    """The rows of a file by entity; each row is a mapping of its components, its time in ns."""
    found: dict[str, list] = {}
    for chunk in RrdReader(path).stream():
        batch = chunk.to_record_batch()
        columns = {
            name: (column.cast("int64") if pyarrow.types.is_temporal(column.type) else column).to_pylist()
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        found.setdefault(chunk.entity_path, []).extend(rows)
    return {name: sorted(rows, key=lambda row: row.get("time", 0)) for name, rows in found.items()}


def component(row, name):
    (value,) = (item for key, item in row.items() if key.endswith(name))
    return value


def test_a_decision_its_losses_and_the_image_below_it_are_written(tmp_path, task, cameras):
    path = tmp_path / "deep" / "run.rrd"
    image = SimpleNamespace(**encode_image(np.full((96, 96, 3), 120, np.uint8)))
    with into_file(path) as recording:
        view = RerunView(recording, task, cameras)
        view.begin(BEGIN)
        view.add(DECISION, BEGIN + MS, decision(task))
        view.add(camera_topic("third_person"), BEGIN + 2 * MS, image)
        view.add(camera_topic("wrist"), BEGIN + 2 * MS, image)
    found = written(path)
    (row,) = found["/space/candidates"]
    assert len(component(row, "strips")) == 2, "one is trimmed"
    assert len(component(found["/space/trimmed"][0], "strips")) == 1
    assert component(found["/loss/best"][-1], "scalars") == [1.0]
    assert component(found["/loss/worst"][-1], "scalars") == [5.0]
    assert component(found["/latency_ms/decision_ms"][-1], "scalars") == [20.0]
    drawn, plain = (found[f"/camera/{name}"][0] for name in ("third_person", "wrist"))
    assert component(drawn, "media_type") == component(plain, "media_type") == ["image/jpeg"]
    assert len(component(drawn, "blob")[0]) > 2 * len(component(plain, "blob")[0]), "the decision is drawn over it"
    assert "| decoder | bid |" in component(found["/state"][-1], "text")[0]
    assert "/space/workspace" in found and "/space/safety" in found
    assert row["time"] == BEGIN + MS


def test_limits_that_are_measured_stand_beside_those_of_the_task(tmp_path, task):
    text = json.dumps({"workspace": {"low": [0.4, -0.2, 0.1], "high": [0.6, 0.2, 0.5]}, "points": [[0.4, 0.0, 0.2]]})
    with into_file(tmp_path / "run.rrd") as recording:
        view = RerunView(recording, task, {})
        view.begin(BEGIN)
        view.add(MEASURED_LIMITS, BEGIN + MS, SimpleNamespace(data=text))
        view.add(MEASURED_LIMITS, BEGIN + 2 * MS, SimpleNamespace(data="{}"))
    found = written(tmp_path / "run.rrd")
    assert {"/space/start", "/space/keep_out/table", "/space/workspace"} <= found.keys()
    assert [len(component(row, "strips")) for row in found["/space/new/workspace"]] == [12, 0]
    assert [len(component(row, "strips")) for row in found["/space/new/points"]] == [3, 0]


def test_a_decision_that_nobody_renews_goes_away(tmp_path, task):
    with into_file(tmp_path / "run.rrd") as recording:
        view = RerunView(recording, task, {})
        view.add(DECISION, BEGIN, decision(task))
        view.at(BEGIN + 900 * MS)
        view.at(BEGIN + 1100 * MS)
        view.at(BEGIN + 1200 * MS)
    cleared = [
        row for row in written(tmp_path / "run.rrd")["/space/candidates"] if any("clear" in key.lower() for key in row)
    ]
    assert [row["time"] for row in cleared] == [BEGIN + 1100 * MS]


def test_a_stop_and_an_episode_are_noted_once(tmp_path, task):
    state = SimpleNamespace(state=1, reason="speed is 0.7 m/s; valid is up to 0.5")
    event = SimpleNamespace(kind=2, episode=0, label="bid", outcome="stopped: speed")
    with into_file(tmp_path / "run.rrd") as recording:
        view = RerunView(recording, task, {})
        for number in range(3):
            view.add(SAFETY_STATE, BEGIN + number * MS, state)
        view.add(EPISODE_EVENT, BEGIN + 5 * MS, event)
        view.add(ARM_STATUS, BEGIN + 6 * MS, SimpleNamespace(mode=3, reason="speed"))
    found = written(tmp_path / "run.rrd")
    notes = [component(row, "text")[0] for row in found["/notes"]]
    assert notes == [f"safety: STOPPED: {state.reason}", "episode: END 1 bid stopped: speed"]
    assert "| arm | STOPPED: speed |" in component(found["/state"][-1], "text")[0]


@pytest.mark.parametrize("total", [[], [np.nan] * 3])
def test_a_decoder_without_losses_has_no_summary(task, total):
    message = decision(task)
    message.total = np.array(total)
    assert loss_summary(message) == {}


def test_the_loss_of_a_decision_that_is_no_candidate_is_not_said(task):
    message = decision(task)
    assert loss_summary(message) == {"best": 1.0, "median": 3.0, "worst": 5.0, "selected": 1.0}
    message.selected_index = -1
    assert "selected" not in loss_summary(message)


def test_a_file_that_was_not_finished_is_not_left(tmp_path, task):
    with pytest.raises(RuntimeError), into_file(tmp_path / "run.rrd") as recording:
        RerunView(recording, task, {}).begin(BEGIN)
        raise RuntimeError("the bag is damaged")
    assert not list(tmp_path.iterdir())


def test_a_name_that_rerun_does_not_open_is_refused(tmp_path):
    with pytest.raises(BidError, match=r"valid is a name that ends in \.rrd"), into_file(tmp_path / "run.mcap"):
        pass


def test_without_a_screen_there_is_no_window(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BidError, match="no screen for Rerun's window; use --web"), into_window():
        pass


def test_a_port_in_use_is_said():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BidError, match=f"port {port} is in use"), into_browsers(port):
            pass


def test_the_robot_stands_where_the_arm_s_joints_put_it(task, tmp_path):
    outline = outline_of(task)
    with into_file(tmp_path / "robot.rrd") as recording:
        robot = RerunRobot(recording.log, outline, "space")
        for number in (0, 1, 2, 3, -1000):  # at last the clock is set back
            recording.set_time("time", timestamp=np.datetime64(BEGIN + number * 20 * MS, "ns"))
            robot.move(BEGIN + number * 20 * MS, HOME_Q, 0.04)
    found = written(tmp_path / "robot.rrd")
    (hand,) = [path for path in found if path.endswith("/hand")]
    assert hand.startswith("/space/robot/base/fr3_link0/fr3_link1/"), "each link is in the frame of the one before it"
    assert len([row for row in found[hand] if row.get("time")]) == 3, "20 times a second"
    meshes = [path for path in found if "/surface_" in path]
    assert len(meshes) == len(list(outline.shells())) > 10


def test_normals_point_out_of_a_surface():
    vertices, faces = round_body(0.1, 0.2, True)
    outwards = normals(vertices, faces)
    assert (np.einsum("ij,ij->i", outwards, vertices) > 0).all()
    np.testing.assert_allclose(np.linalg.norm(outwards, axis=1), 1.0)
