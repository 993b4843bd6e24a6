"""``bid calibrate limits`` beside a running system: the bench plays the arm that a person guides."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from dataclasses import replace

import numpy as np
import pytest
from fork_server import fork_server
from forked_bid import bid, start_bid
from geometry_msgs.msg import PoseStamped
from nodes.arm_harness import arm_parameters
from qos import EVENT, EVERY_STATE, STATE
from std_msgs.msg import String
from ur_twin import free_address

from bid_msgs.msg import ArmStatus
from bid_ros.calibration.limits import PARTS, LimitBox, limits_of
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import DOWN_QUATERNION
from bid_ros.core.task import load_task
from bid_ros.nodes.limits_run import LimitsSession, _Guide
from bid_ros.nodes.ros_messages import pose_message, pose_stamped, time_message
from bid_ros.system.folder import find_system
from bid_ros.system.stages import note_stage

ROBOT = "172.16.0.2"
START_S = 40.0
DASHBOARD = 29999
NEAR_M = 0.012  # that the arm may rest from where it was sent
TABLE = [[0.4, -0.2, 0.05], [0.6, -0.2, 0.05], [0.4, 0.2, 0.05]]
WORKSPACE = [[0.35, -0.25, 0.08], [0.65, 0.25, 0.5]]
START = [[0.42, -0.1, 0.3], [0.52, 0.1, 0.38]]


class Person:
    """Answers the questions of the command.

    Attributes:
        output: file of what the command says.
        process: the command.
        shown: what those who watch are told.
    """

    def __init__(self, bench, folder, output, *words: str) -> None:
        self.bench, self.output, self.shown, self._read = bench, output, [], 0
        bench.node.create_subscription(String, "/calibration/limits", lambda said: self.shown.append(said.data), EVENT)
        given, self._answers = os.pipe()
        with output.open("wb") as file:
            words = ("calibrate", "limits", str(folder), *words)
            self.process = fork_server().start("bid_ros.cli", words, (given, file.fileno(), file.fileno()))
        os.close(given)

    def until(self, *words: str) -> str:
        """Wait until the command says something new, one of several, and return it."""

        def said() -> str | None:
            new = self.output.read_text()[self._read :]
            return min((item for item in words if item in new), key=new.find, default=None)

        self.bench.until(lambda: said() or self.process.poll() is not None, START_S)
        found = said()
        assert found, self.output.read_text()
        self._read = self.output.read_text().index(found, self._read) + len(found)
        return found

    def answer(self, line: str, *words: str) -> str:
        """Answer the question, and wait for the next one, or for one of other words."""
        os.write(self._answers, f"{line}\n".encode())
        return self.until(*(words or ("q ends:",)))

    def points(self, places) -> None:
        """Bring the arm to points, and take each, once it rests there."""
        for place in places:
            self.bring(np.array(place))
            while self.answer("", "the tool is at [", "not taken: the arm moved by") != "the tool is at [":
                pass

    def ended(self) -> int:
        assert self.bench.until(lambda: self.process.poll() is not None, START_S)
        os.close(self._answers)
        return self.process.wait(START_S)


class Guided(Person):
    """A person whose arm is where it is put.

    Attributes:
        place: of the tool, m.
        speed: of the tool along x, m/s.
        source: of the chunks that the arm follows.
    """

    def __init__(self, bench, *given) -> None:
        self.place, self.speed, self.source = np.array([0.5, 0.0, 0.3]), 0.0, ""
        self._arm = bench.node.create_publisher(ArmStatus, "/arm/status", STATE)
        bench.node.create_timer(0.02, self._publish)
        super().__init__(bench, *given)

    def bring(self, place) -> None:
        self.place = place

    def _publish(self) -> None:
        self.place = self.place + np.array([0.02 * self.speed, 0.0, 0.0])
        status = ArmStatus(tool=pose_message(self.place, DOWN_QUATERNION), source=self.source)
        status.header.stamp = time_message(time.time_ns())
        self._arm.publish(status)


class Driven(Person):
    """A person who drives the arm of a system that runs."""

    def __init__(self, bench, *given) -> None:
        self.tool = np.empty(0)
        self._goals = bench.node.create_publisher(PoseStamped, "/calibration/pose", STATE)
        bench.node.create_subscription(ArmStatus, "/arm/status", self._on_status, EVERY_STATE)
        assert bench.until(lambda: len(self.tool), START_S), "the system starts"
        super().__init__(bench, *given)

    def bring(self, place) -> None:
        """Ask for a pose until the tool is near it."""
        goal = pose_stamped(time.time_ns(), "", place, DOWN_QUATERNION)
        near = lambda: np.abs(self.tool - place).max() < NEAR_M  # noqa: E731
        assert self.bench.until(near, START_S, each=lambda: self._goals.publish(goal)), (place, self.tool)

    def _on_status(self, message: ArmStatus) -> None:
        at = message.tool.position
        self.tool = np.array([at.x, at.y, at.z])


@pytest.mark.parametrize(
    ("parts", "said"), [(("workspace",), "; to measure table and start too: q, then bid calibrate limits"), (PARTS, "")]
)
def test_a_limit_that_does_not_fit_one_that_is_not_measured_names_what_to_measure_too(folder, parts, said):
    """A workspace without the task's own start box; whoever measures all of it is told no more than that."""
    session = LimitsSession(find_system(folder), parts, 0.01, True, "", lambda text: None, lambda text: "")
    guide = _Guide(session, None, lambda text: None)  # nobody looks at the arm once its points are taken
    known = replace(limits_of(session.system.task), workspace=LimitBox((0.31, 0.1, 0.2), (0.4, 0.2, 0.3)))
    with pytest.raises(CalibrationError, match=r"start: .* valid is .* inside the workspace") as caught:
        guide._check_together(known)
    assert ("; to measure" in str(caught.value)) == bool(said)
    assert f"{said} {folder}" in str(caught.value) if said else True


def test_a_person_guides_the_arm_to_points_and_the_limits_are_written_after_a_yes(bench, folder, tmp_path):
    note_stage(find_system(folder), ROBOT, 1, {"passed": True})
    before = (folder / "task.yaml").read_text()
    guided = Guided(bench, folder, tmp_path / "said", "--robot-ip", ROBOT, "--margin", "0.02", "--json")
    guided.until("table, 0 points.")
    guided.answer("d", "not taken over: the table has 0 points; valid are 3 or more")
    guided.answer("x", "'x' is unknown; valid are [enter], u, d and q")
    guided.speed = 0.05
    guided.answer("", "not taken: the arm moved by ")
    guided.speed = 0.0
    guided.points([*TABLE, [0.5, 0.0, 0.15]])
    guided.answer("d", "not taken over: the table's points are up to ")
    guided.answer("u", "table, 3 points.")
    guided.answer("d", "workspace, 0 points.")
    guided.points(WORKSPACE)
    assert bench.until(lambda: any('"points": [[0.35' in text for text in guided.shown))
    guided.answer("d", "start, 0 points.")
    guided.source = "teleop"
    guided.place = np.array([0.2, -0.1, 0.3])
    guided.answer("", "it is at the edge of the present workspace, beyond which no device drives it")
    guided.points(START)
    guided.answer(
        "d", "not taken over: the start box runs along x from 0.220 to 0.500 m; valid is inside the workspace"
    )
    guided.answer("u")
    guided.answer("u")
    guided.answer("u", "start, 0 points.")
    guided.points(START)
    guided.answer("d", "yes, or anything else:")
    assert (folder / "task.yaml").read_text() == before, "nobody has said yes"
    assert json.loads(guided.shown[-1])["workspace"] == {"low": [0.37, -0.23, 0.1], "high": [0.63, 0.23, 0.48]}
    guided.answer("yes", "}")
    assert guided.ended() == 0
    said = guided.output.read_text()
    changed = (
        "workspace    [0.300, -0.300, 0.020] to [0.700, 0.300, 0.600] m -> [0.370, -0.230, 0.100] to [0.630, 0.230,"
    )
    assert changed in said and f"the stages that {ROBOT} has passed begin anew" in said
    task = load_task(folder / "task.yaml")
    assert task.limits.workspace_max == (0.63, 0.23, 0.48) and task.start.tool_min == (0.44, -0.08, 0.32)
    # The fingers touched 9 mm below the tool's own point; the balls they are made of are up to 1 mm larger.
    assert 0.05 - 0.016 + 0.02 <= task.limits.keep_out[0].offset <= 0.05 - 0.009 + 0.02
    assert (folder / "task.yaml").read_text().count("#") == before.count("#")
    assert json.loads(said.splitlines()[-1].partition("else: ")[2])["start"]["after"] == {
        "low": [0.44, -0.08, 0.32],
        "high": [0.5, 0.08, 0.36],
    }


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("q",), "error: ended before all was measured, so nothing is written"),
        (("", "", "d", "no"), "error: not confirmed, so nothing is written"),
    ],
)
def test_without_a_yes_nothing_is_written_and_nothing_is_shown_any_more(bench, folder, tmp_path, answers, said):
    before = (folder / "task.yaml").read_text()
    guided = Guided(bench, folder, tmp_path / "said", "start", "--robot-ip", ROBOT)
    guided.until("start, 0 points.")
    for place, answer in zip([*START, START[0], START[0]], answers, strict=False):
        guided.place = np.array(place)
        guided.answer(answer, said if answer == answers[-1] else ":")
    assert guided.ended() == 2
    assert bench.until(lambda: guided.shown[-1:] == ["{}"])
    assert (folder / "task.yaml").read_text() == before


def test_ctrl_c_ends_it_without_a_word_more(bench, folder, tmp_path):
    before = (folder / "task.yaml").read_text()
    guided = Guided(bench, folder, tmp_path / "said", "start", "--robot-ip", ROBOT)
    guided.until("start, 0 points.")
    guided.points(START[:1])
    guided.until("start, 1 points.")
    guided.until("q ends:")
    guided.process.send_signal(signal.SIGINT)
    assert guided.ended() == 130
    assert guided.output.read_text().endswith("q ends: "), "no traceback"
    assert bench.until(lambda: guided.shown[-1:] == ["{}"]), "nobody is shown the points any more"
    assert (folder / "task.yaml").read_text() == before


def test_an_arm_that_nobody_controls_is_heard_all_the_same(bench, root, tmp_path):
    """So a person may guide it by hand, which ends the program of a UR."""
    folder, address, statuses = shutil.copytree(root / "config" / "ur5_pick", tmp_path / "system"), free_address(), []
    bench.node.create_subscription(ArmStatus, "/arm/status", statuses.append, EVERY_STATE)
    bench.start("twin", {"task": str(folder / "task.yaml"), "address": address})
    bench.start("arm", arm_parameters(address, "ur5_pick"))
    assert bench.until(lambda: statuses, 2 * START_S)
    with socket.create_connection((address, DASHBOARD)) as pendant:
        pendant.recv(1024)
        pendant.sendall(b"stop\n")
        assert b"Stopped" in pendant.recv(1024)
    assert bench.until(lambda: statuses[-1].mode == ArmStatus.FAULT, START_S), statuses[-1]
    person = Person(bench, folder, tmp_path / "said", "--robot-ip", address)
    person.until("table, 0 points.")
    person.answer("", "the tool is at [")
    person.answer("q", "error: ended before all was measured")
    assert person.ended() == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("wrist",), "'wrist' is no limit; valid are table, workspace, start, or none for all"),
        (("--margin", "0.5"), "--margin is 0.5 m; valid is 0 to 0.1 m"),
        (("--margin", "nan"), "--margin is nan m; valid is 0 to 0.1 m"),
        (("--drive",), "--drive is given; it is not valid with limits"),
        (("--from", "x"), "--from is given; it is not valid with limits"),
        (("--namespace", "a b"), "namespace is 'a b'; valid are"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(folder, words, said):
    before = (folder / "task.yaml").read_text()
    done = bid("calibrate", "limits", str(folder), *words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert (folder / "task.yaml").read_text() == before


def test_a_margin_is_of_limits_alone(folder):
    done = bid("calibrate", "board", str(folder), "--margin", "0.01")
    assert done.returncode == 2 and "--margin is given with board; valid with limits" in done.stderr


@pytest.mark.long
def test_an_arm_that_is_silent_is_one_sentence(folder, ros_domain):
    done = bid("calibrate", "limits", str(folder), limit_s=60.0)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "no arm is heard on arm/status; valid is a running system" in done.stderr


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_person_drives_the_twin_to_its_limits(bench, folder, tmp_path, patient):
    workspace, start = [[0.42, -0.1, 0.17], [0.6, 0.15, 0.45]], [[0.45, -0.06, 0.25], [0.55, 0.1, 0.36]]
    words = ("up", str(folder), "--driver", "poses", "--device-settings", "{speed: 0.7}", "--timeout", "3600")
    words = (*words, "--no-record", "--moving", "0", "--parameters", patient, "--out", str(tmp_path / "out"))
    system = start_bid(*words, output=tmp_path / "up")
    try:
        person = Driven(bench, folder, tmp_path / "said")
        person.until("table, 0 points.")
        # Not lower, and not far to the side: the camera at the wrist would see nothing but a table of one colour.
        person.points([[0.45, -0.06, 0.14], [0.58, -0.06, 0.14], [0.45, 0.08, 0.14]])
        person.answer("d", "workspace, 0 points.")
        person.points(workspace)
        person.answer("d", "start, 0 points.")
        person.points(start)
        person.answer("d", "yes, or anything else:")
        person.answer("yes", "start the system again: what runs has the old limits")
        assert person.ended() == 0
    finally:
        system.send_signal(signal.SIGINT)
        system.wait(START_S)
    print((tmp_path / "said").read_text(), (folder / "task.yaml").read_text())
    found = limits_of(load_task(folder / "task.yaml"))
    # The arm's impedance lets the tool rest some mm from where it was sent.
    for box, (low, high) in ((found.workspace, workspace), (found.start, start)):
        assert np.array(box.low) == pytest.approx(np.array(low) + 0.01, abs=0.012)
        assert np.array(box.high) == pytest.approx(np.array(high) - 0.01, abs=0.012)
    assert found.table.offset == pytest.approx(0.14, abs=0.012) and found.table.normal[2] > 0.99
