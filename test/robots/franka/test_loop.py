"""What the loop of a Franka does with requests and set-points, in lockstep: silence of them stops a moving arm."""

import gc
import re
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest
from robots.franka.lockstep import Cell, Ended, Swing, ending

from bid_ros.robots.base import Dynamics
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.model import HOME_Q
from bid_ros.robots.protocol import EXIT_LOST, DriverRequest, Mode, MotionOutcome, TimedJoints, TimedSetpoint

CONFIG = FrankaConfig("a", translational_stiffness=2500.0)
SLOW = Dynamics(0.1, 0.1, 0.1)
AWAY = tuple(float(q) for q in np.array(HOME_Q) + np.array([0.6, 0, 0, 0, 0, 0, 0]))
SILENT = "no set-point for 0.1 s while the robot at a moved: it was stopped; find what held them up, then reset"


@pytest.fixture(autouse=True)
def _ending():
    with ending():
        yield


@pytest.fixture
def cell():
    made = Cell(CONFIG)
    made.run(0.05)
    return made


@pytest.mark.parametrize("joints", [False, True], ids=["tool", "joints"])
def test_set_points_that_fall_silent_in_motion_stop_the_arm(cell, joints):
    assert cell.ask(DriverRequest.START, joints) == ""
    cell.run(0.6, Swing(cell, joints))
    last_s = cell.now_s
    cell.run(0.3)
    assert cell.robot.stopped[0] / 1e9 - last_s == pytest.approx(0.1, abs=0.015)
    assert cell.state.fault == SILENT and cell.state.mode is Mode.IDLE
    assert cell.robot.tool_speed() < 0.01
    assert cell.ask(DriverRequest.START, joints) == SILENT
    assert cell.ask(DriverRequest.CLEAR) == ""
    assert cell.ask(DriverRequest.START, joints) == ""
    assert cell.state.fault == ""


def test_an_arm_at_rest_may_wait_for_set_points(cell):
    assert cell.ask(DriverRequest.START, False) == ""
    pose = cell.robot.pose()
    rest = (0.0, 0.0, 0.0)
    cell.memory.setpoint.write(TimedSetpoint(cell.robot.now_ns, pose.position, pose.quaternion, rest, rest))
    cell.run(2.0)
    assert cell.state.mode is Mode.FOLLOWING and cell.robot.stopped == []


def test_a_loop_that_was_held_up_itself_does_not_take_that_for_silence(cell):
    """It looks again when it runs again, and finds the set-points that came meanwhile."""
    assert cell.ask(DriverRequest.START, False) == ""
    swing = Swing(cell, False)
    cell.run(0.6, swing)
    loop, cell.loop = cell.loop, None
    cell.run(0.3, swing)
    cell.loop = loop
    cell.run(0.1, swing)
    assert cell.state.fault == "" and cell.state.mode is Mode.FOLLOWING


def test_a_joint_motion_arrives(cell):
    assert cell.ask(DriverRequest.MOVE, AWAY, SLOW) == ""
    assert cell.state.mode is Mode.MOVING

    def goal():
        cell.memory.setpoint.write(TimedJoints(cell.robot.now_ns, AWAY, (0.0,) * 7))

    cell.run(3.0, goal)
    assert (cell.state.mode, cell.state.outcome) == (Mode.IDLE, MotionOutcome.ARRIVED)
    assert cell.state.joints == pytest.approx(AWAY, abs=0.01)


def test_a_joint_motion_that_nobody_waits_for_is_ended(cell):
    assert cell.ask(DriverRequest.MOVE, AWAY, SLOW) == ""
    cell.run(0.3)
    assert len(cell.robot.stopped) == 1
    assert cell.state.fault == SILENT and cell.state.outcome is MotionOutcome.STOPPED


@pytest.mark.parametrize("what", ["joint motion", "stop"])
def test_a_twin_that_moves_without_set_points_is_no_twin_at_rest(what):
    """At rest it may be silent for 2 s. In a joint motion, or while it stops, it is lost as in any other motion."""
    cell = Cell(FrankaConfig("a", twin=True, translational_stiffness=2500.0))
    cell.run(0.05)
    cell.robot.silent = True
    cell.run(1.0)
    assert cell.status is None
    cell.robot.silent = False
    if what == "joint motion":
        cell.robot.silent = True  # it was silent at rest, too, which does not count
        cell.run(0.2)
        assert cell.ask(DriverRequest.MOVE, AWAY, SLOW) == "" and cell.status is None
    else:
        assert cell.ask(DriverRequest.START, False) == ""
        cell.run(0.6, Swing(cell, False))
        cell.robot.stop = Future  # it does not come to rest
        cell.requests.send((DriverRequest.STOP,))
        cell.run(0.01)
        assert cell.state.mode is Mode.STOPPING
        del cell.robot.stop
        cell.robot.silent = True
    cell.run(0.3, lambda: cell.loop and cell.memory.setpoint.write(TimedJoints(cell.robot.now_ns, AWAY, (0.0,) * 7)))
    assert cell.status == EXIT_LOST
    assert re.match(r"robot at a has been silent for 0\.1\d s: it is a twin", cell.state.fault)


def test_a_request_to_stop_ends_a_joint_motion(cell):
    assert cell.ask(DriverRequest.MOVE, AWAY, SLOW) == ""
    assert cell.ask(DriverRequest.MOVE, AWAY, SLOW) == "robot at a is busy; stop it first"
    assert cell.ask(DriverRequest.STOP) == ""
    cell.run(0.05)
    assert (cell.state.mode, cell.state.outcome, cell.state.fault) == (Mode.IDLE, MotionOutcome.STOPPED, "")


def test_a_robot_that_leaves_control_is_a_fault_until_it_is_cleared(cell):
    assert cell.ask(DriverRequest.START, False) == ""
    cell.robot.fail("robot at a: reflex")
    cell.run(0.01)
    assert cell.state.fault == "robot at a: reflex" and cell.state.mode is Mode.IDLE
    assert cell.ask(DriverRequest.START, False) == "robot at a: reflex"
    assert cell.ask(DriverRequest.CLEAR) == ""
    assert cell.robot.asked == ["follow False", "recover"]
    assert cell.ask(DriverRequest.START, True) == ""


def test_a_reflex_is_named_though_the_robot_brakes_with_torques_of_its_own(cell):
    """A robot's states tell of its reflex some cycles before franky does."""
    assert cell.ask(DriverRequest.START, False) == ""
    cell.run(0.6, Swing(cell, False))
    cell.robot.lie = lambda said, *_: replace(said, torques=(30.0, *said.torques[1:]), moves=False)
    cell.run(0.01, Swing(cell, False))
    assert cell.state.fault == ""
    cell.robot.fail("robot at a: reflex")
    cell.run(0.01)
    assert cell.state.fault == "robot at a: reflex"


def test_an_owner_that_is_gone_stops_the_arm(cell):
    assert cell.ask(DriverRequest.START, False) == ""
    cell.run(0.6, Swing(cell, False))
    cell.requests.close()
    cell.run(0.02)
    assert len(cell.robot.stopped) == 1
    assert cell.state.mode is Mode.IDLE


def test_a_request_to_brake_comes_with_the_set_points(cell):
    assert cell.ask(DriverRequest.START, False) == ""
    cell.run(0.3, Swing(cell, False))
    cell.memory.setpoint.write(None)
    cell.run(0.01)
    assert len(cell.robot.stopped) == 1 and cell.state.fault == ""


def test_states_whose_sent_torques_nobody_knows_are_counted_as_not_judged(cell):
    cell.robot.tell(lambda said, *_: replace(said, sent=None))
    cell.run(0.3)
    assert cell.memory.read_margins().unjudged == {}, "nothing is sent yet"
    assert cell.ask(DriverRequest.START, False) == ""
    cell.run(0.6)
    assert cell.memory.read_margins().unjudged["sent torque"] == pytest.approx(300, abs=130)
    assert "sent torque" not in cell.memory.read_margins()


def test_every_period_is_a_beat(cell):
    before = cell.state.beat
    cell.run(0.1)
    assert cell.state.beat - before == 50


@pytest.mark.parametrize("how", ["lost", "left control"])
def test_a_fault_is_told_before_the_library_is_asked_for_a_stop_that_may_hang(cell, monkeypatch, how):
    assert cell.ask(DriverRequest.START, False) == ""
    cell.run(0.1, Swing(cell, False))
    told, stop = [], cell.robot.stop
    monkeypatch.setattr(cell.robot, "stop", lambda: (told.append(cell.state.fault), stop())[1])
    if how == "lost":
        cell.robot.silent = True
    else:
        cell.robot.fail("robot at a: reflex")
    cell.run(0.2 if how == "lost" else 0.02, Swing(cell, False))
    assert told[0] == cell.state.fault != "" and (cell.status == EXIT_LOST) is (how == "lost")


def test_an_error_in_the_loop_ends_the_process_after_its_fault_was_published(cell, monkeypatch):
    """Python's own end would wait for franky, whose thread goes on with the last set-point."""

    def broken():
        raise TypeError("'float' object is not callable")

    monkeypatch.setattr(cell.robot, "newest", broken)
    monkeypatch.setattr(cell.loop, "_guard", lambda: None)
    try:
        with pytest.raises(Ended, match=str(EXIT_LOST)):
            cell.loop.run()
    finally:
        gc.unfreeze()
    assert cell.state.fault == (
        "the process that drives the robot at a ended by an error of its own (TypeError: 'float' object is not "
        "callable): reset"
    )
    assert cell.state.mode is Mode.IDLE
