"""What a person at the controls is told, from the messages of a run."""

from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.core.topics import ARM_STATUS, DIAGNOSTICS, EPISODE_EVENT, GRANT, SAFETY_STATE
from bid_ros.system.folder import find_system
from bid_ros.teleop import cockpit
from bid_ros.teleop.cockpit import END, PREPARE, START, Cockpit

SECOND = 1_000_000_000
TASK = find_system("franka_place").task


def pose(x: float = 0.48) -> SimpleNamespace:
    turn = SimpleNamespace(x=1.0, y=0.0, z=0.0, w=0.0)
    return SimpleNamespace(position=SimpleNamespace(x=x, y=0.0, z=0.3), orientation=turn)


class Run:
    """A run whose nodes say what a test wants."""

    def __init__(self) -> None:
        self.cockpit, self.now_ns = Cockpit(TASK), SECOND
        self.arm()
        self.safety()

    def arm(self, mode: int = 0, reason: str = "", width: float = 0.04, off: float = 0.0, source: str = "") -> None:
        status = {"tool": pose(), "reference": pose(0.48 + off), "reference_twist": np.zeros(6), "source": source}
        more = {"mode": mode, "reason": reason, "gripper_width": width, "gripper_busy": False}
        self.hear(ARM_STATUS, **status, **more)

    def safety(self, state: int = 0, action: int = 0, reason: str = "") -> None:
        self.hear(SAFETY_STATE, state=state, action=action, reason=reason)

    def event(self, kind: int, episode: int = 0, outcome: str = "") -> None:
        self.hear(EPISODE_EVENT, kind=kind, episode=episode, outcome=outcome, duration=12.0)

    def grant(self, *sources: str) -> None:
        duration = SimpleNamespace(sec=0, nanosec=SECOND // 2)
        self.hear(GRANT, granter="episode", sources=sources, duration=duration)

    def says(self, node: str, message: str, level: bytes = b"\x00", **values: str) -> None:
        pairs = [SimpleNamespace(key=key, value=value) for key, value in values.items()]
        status = SimpleNamespace(name=f"bid_ros: {node}", message=message, level=level, values=pairs)
        self.hear(DIAGNOSTICS, status=[status])

    def hear(self, topic: str, **fields) -> None:
        self.cockpit.hear(topic, SimpleNamespace(**fields), self.now_ns)

    def shown(self, live: bool = False, drives: bool = True) -> dict:
        return self.cockpit.shown(live, drives, self.now_ns)

    def fact(self, name: str) -> tuple[str, bool]:
        return next((text, look) for found, text, look in self.shown()["facts"] if found == name)


def counted(run: Run, awaits: str = "") -> None:
    run.says("episode", "running episodes", of="5", limit_s="120", awaits=awaits)


def test_its_numbers_are_those_of_the_messages():
    messages = pytest.importorskip("bid_msgs.msg")
    event, safety, arm = messages.EpisodeEvent, messages.SafetyState, messages.ArmStatus
    assert (PREPARE, START, END, cockpit.UNDO) == (event.PREPARE, event.START, event.END, event.UNDO)
    assert (cockpit.RUNNING, cockpit.STOPPED, cockpit.WAITING) == (safety.RUNNING, safety.STOPPED, safety.WAITING)
    assert (cockpit.WARN, cockpit.SCALE) == (safety.WARN, safety.SCALE)
    assert cockpit.MOVING_MODES == (arm.HOLDING, arm.TRACKING, arm.STOPPING)
    assert cockpit.LATCHED_MODES == (arm.STOPPED, arm.FAULT)


def test_an_episode_is_offered_when_it_waits_for_its_start_and_can_be_ended_while_it_runs():
    run = Run()
    run.event(PREPARE, 1)
    run.grant("episode")
    counted(run)
    assert (run.shown()["state"], run.shown()["offers"]) == ("prepares", "")
    counted(run, awaits="start")
    shown = run.shown()
    assert (shown["state"], shown["offers"], shown["episode"]["name"]) == ("waiting", "start", "Episode 2 of 5")
    assert shown["text"] == "Episode 2 of 5 is ready: start it when you are"
    run.event(START, 1)
    run.grant("teleop")
    counted(run)
    assert (run.shown()["state"], run.shown()["offers"]) == ("ready", "end")
    run.event(END, 1, "success")
    assert (run.shown()["state"], run.shown()["offers"]) == ("waiting", "")
    assert run.shown()["text"] == "Episode 2 of 5: success after 12 s"


@pytest.mark.parametrize("stopped", [True, False])
def test_an_arm_that_was_stopped_or_has_not_moved_yet_moves_once_a_person_lets_it(stopped):
    run = Run()
    if stopped:
        run.event(END, 0, "stopped: speed is 0.9 m/s")
    counted(run, awaits="leave")
    assert (run.shown()["state"], run.shown()["offers"]) == ("waiting", "leave")
    assert run.shown()["text"].startswith("The arm holds: look at it")


def test_it_is_green_only_while_the_arm_may_move():
    run = Run()
    run.event(START)
    assert run.shown()["state"] == "waiting", "nobody grants it"
    run.grant("teleop")
    assert [run.shown(live)["state"] for live in (False, True)] == ["ready", "moving"]
    run.now_ns += round(0.6 * SECOND)
    assert run.shown()["state"] == "waiting", "the grant is over"
    run.grant("teleop")
    assert run.shown()["state"] == "waiting", "the arm is silent"
    run.arm()
    assert run.shown()["state"] == "ready"
    run.arm(mode=3, reason="no sign of life from 'camera'")
    assert run.shown()["state"] == "stopped" and "no sign of life from 'camera'" in run.shown()["text"]
    run.arm()
    run.safety(state=1, reason="speed is 0.9 m/s")
    assert (run.shown()["state"], run.shown()["offers"]) == ("stopped", "")
    run.safety(state=2, reason="waiting for camera")
    assert run.shown()["state"] == "waiting"
    run.safety()
    run.grant("policy")
    assert run.shown()["state"] == "policy" and "take over" in run.shown()["text"]


def test_whoever_watches_is_offered_nothing():
    run = Run()
    run.event(START)
    run.grant("teleop")
    shown = run.shown(live=True, drives=False)
    assert (shown["offers"], shown["text"]) == ("", "Episode 1: somebody else drives")
    assert run.shown(drives=False)["text"] == "Episode 1"


def test_time_limits_force_and_who_drives_are_shown_all_the_time():
    run = Run()
    counted(run)
    run.event(START)
    run.now_ns += 20 * SECOND
    assert run.shown()["episode"]["left_s"] == 100.0 and run.shown()["episode"]["passed_s"] == 20.0
    run.arm(off=0.03, source="policy")
    assert run.fact("safety") == ("runs", False)
    assert run.fact("limits") == ("18 cm to the wall at -x", False)
    assert run.fact("force") == ("not measured; 30 mm off its set-point", True)
    assert run.fact("moved by") == ("the policy", False)
    assert run.fact("gripper") == ("40 mm", False) and run.shown()["opening"] == 0.5
    run.arm(width=float("nan"))
    assert run.fact("gripper") == ("unknown", False) and run.shown()["opening"] is None


def test_what_is_not_well_is_on_the_banner_until_it_is_well():
    run = Run()
    run.cockpit.see("wrist", run.now_ns)
    run.says("twin", "keeps 0.43 of real time", b"\x02")
    run.says("recorder", "recording for 3 s", mb_per_s="0.7", disk_left_s="7200")
    run.safety(action=2, reason="speed is 0.6 m/s")
    assert run.shown()["banner"] == ["safety: speed is 0.6 m/s", "twin: keeps 0.43 of real time"]
    assert run.shown()["recorder"] == "writes 0.7 MB/s, disk for 2 h, nothing lost"
    run.safety()
    run.says("twin", "serving")
    assert run.shown()["banner"] == [] and run.shown()["dim"] == ["third_person"]
    run.now_ns += 4 * SECOND
    silent = ["nothing is heard of the arm for 4 s", "wrist: no picture for 4 s"]
    assert run.shown()["banner"][:2] == silent and "twin: silent for 4 s" in run.shown()["banner"]
    assert run.shown()["dim"] == ["third_person", "wrist"]


@pytest.mark.parametrize(
    ("said", "stop", "why"),
    [
        ("ended: all 5 episodes are done", "", "all 5 episodes are done"),
        ("ended: stopped: speed is 0.9 m/s", "speed is 0.9 m/s", "stopped: speed is 0.9 m/s"),
        ("ended: aborted: shut down", "", "somebody has ended it"),
        ("running episodes", "", "somebody has ended it"),
        ("running episodes", "no grant", "stopped: no grant"),
    ],
)
def test_the_end_has_its_reason(said, stop, why):
    run = Run()
    run.says("episode", said)
    run.safety(state=1 if stop else 0, reason=stop)
    assert run.cockpit.ending() == why


def test_an_arm_that_brakes_after_the_pad_was_let_go_may_move_on():
    run = Run()
    run.event(START)
    run.grant("teleop")
    run.arm(mode=2)
    assert run.shown()["state"] == "ready" and run.shown(live=True)["state"] == "moving"
    run.now_ns += 6 * SECOND // 10
    run.grant("teleop")
    shown = run.shown(live=True)
    assert shown["state"] == "waiting" and shown["text"].endswith("waiting for the arm, of which nothing is heard")


def test_a_camera_that_never_showed_anything_is_said_once_an_episode_is_prepared():
    run = Run()
    run.cockpit.see("wrist", run.now_ns)
    assert run.shown()["banner"] == []
    run.event(PREPARE)
    assert run.shown()["banner"] == ["third_person: no picture yet"]
    run.now_ns += 3 * SECOND
    assert "wrist: no picture for 3 s" in run.shown()["banner"]


def test_a_disk_that_is_nearly_full_is_told_in_minutes():
    run = Run()
    run.says("recorder", "recording", mb_per_s="4", disk_left_s="1500")
    assert run.shown()["recorder"] == "writes 4 MB/s, disk for 25 min, nothing lost"
