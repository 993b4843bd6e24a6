"""A whole run in the Franka twin: the policy drives, a person takes over, hands back, and the bag says whose rows."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import yaml
from gamepad_person import RATE_HZ, spinning
from rclpy.node import Node
from sensor_msgs.msg import Joy

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.task import load_task
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, GRANT, SAFETY_STATE, TOPICS, Qos
from bid_ros.formats import build_dataset
from bid_ros.nodes.topics import profile
from bid_ros.recording.reader import BagReader
from bid_ros.teleop.joy import AXES, BUTTONS

UP = 0.4  # deflection: 6 cm/s
LIFTED_M = 0.03  # by the person, over the place where the arm became theirs
WATCHED_S = 0.6  # for which the policy drives before the person takes over, and after they hand back
READY_S = 200.0  # of all nodes, on a busy computer
PULSE_S, PRESSED_S = 2.0, 0.2  # of the button that starts and ends the episode
STILL_M_S = 0.005


class Supervisor(Node):
    """Watches the policy, takes over once to lift the tool, hands back, watches again, and calls it a success."""

    def __init__(self, context) -> None:
        super().__init__("supervisor", context=context)
        self._pad = self.create_publisher(Joy, "joy", profile(Qos()))
        self._started = self._handed_back = False
        self._arm: ArmStatus | None = None
        self._since: float | None = None  # when the policy began to drive
        self._from_z: float | None = None
        self.create_subscription(ArmStatus, ARM_STATUS, self._on_status, profile(TOPICS[ARM_STATUS].qos))
        self.create_subscription(EpisodeEvent, EPISODE_EVENT, self._on_event, profile(TOPICS[EPISODE_EVENT].qos))
        self.create_timer(1.0 / RATE_HZ, self._hands)

    def _on_event(self, event: EpisodeEvent) -> None:
        self._started = event.kind == EpisodeEvent.START

    def _on_status(self, status: ArmStatus) -> None:
        driven = self._started and status.source == "policy" and status.mode == ArmStatus.TRACKING
        self._since = (self._since or time.monotonic()) if driven else None
        self._arm = status

    def _hands(self) -> None:
        message = Joy(axes=[0.0] * 8, buttons=[0] * 8)
        watched = self._since is not None and time.monotonic() - self._since > WATCHED_S
        if not self._started or (self._handed_back and watched):
            message.buttons[BUTTONS["start"]] = int(time.monotonic() % PULSE_S < PRESSED_S)
        elif not self._handed_back and (watched or self._from_z is not None or self._held):
            self._drive(message)
        self._pad.publish(message)

    @property
    def _held(self) -> bool:
        return self._arm is not None and self._arm.source == "teleop"

    def _drive(self, message: Joy) -> None:
        """Hold the dead man's switch, and lift the tool as soon as the arm follows."""
        assert self._arm is not None
        height = self._arm.tool.position.z
        if self._from_z is None:
            self._from_z = height
        self._handed_back = self._held and height - self._from_z > LIFTED_M
        if not self._handed_back:
            message.buttons[BUTTONS["left_bumper"]] = 1
            message.axes[AXES["right_y"]] = UP if self._held else 0.0


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_person_takes_over_from_the_policy_and_hands_back(ros_domain, root, tmp_path, patient):
    slow = yaml.safe_load(Path(patient).read_text()) | {"episode": {"ros__parameters": {"ready_timeout_s": READY_S}}}
    Path(patient).write_text(yaml.safe_dump(slow))
    words = "record franka_place --policy --device joy --episodes 1 --moving 0 --seed 3000 --out out --parameters"
    with spinning(Supervisor):
        done = subprocess.run(
            [sys.executable, "-m", "bid_ros.cli", *words.split(), patient],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=360,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (result,) = json.loads((tmp_path / "out" / "run.json").read_text())["results"]
    assert result["outcome"] == "success"
    for said in ("the arm brakes for the person", "the person drives", "the policy drives"):
        assert said in done.stderr, "the terminal says who drives"

    with BagReader(tmp_path / "out" / "episodes" / "0000") as bag:
        messages = list(bag.messages([ARM_STATUS, GRANT, SAFETY_STATE, EPISODE_EVENT]))
    (start,) = [n for n, item in enumerate(messages) if _is(item, EPISODE_EVENT, EpisodeEvent.START)]
    (end,) = [n for n, item in enumerate(messages) if _is(item, EPISODE_EVENT, EpisodeEvent.END)]
    episode = messages[start:end]
    granted = [tuple(item.message.sources) for item in episode if item.topic == GRANT]
    assert set(granted) == {("policy",), ("teleop",), ()}, "one at a time"
    hands = [sources for sources, _ in groupby(granted)]
    assert [item for item in hands if item] == [("policy",), ("teleop",), ("policy",)]
    assert hands.index(("teleop",)) > hands.index(()), "nobody has the arm while it brakes for the person"
    assert not any(item.message.state for item in episode if item.topic == SAFETY_STATE), "it runs all the time"

    statuses = [item.message for item in episode if item.topic == ARM_STATUS]
    sources = [status.source for status in statuses]
    for before, after in (("policy", "teleop"), ("teleop", "policy")):
        change = next(n for n in range(sources.index(before), len(sources)) if sources[n] == after)
        speed = np.linalg.norm(statuses[change - 1].reference_twist[:3])
        assert speed < STILL_M_S, f"the arm rests between {before} and {after}"

    dataset = build_dataset([tmp_path / "out" / "episodes" / "0000"], load_task(root / "config/franka_place/task.yaml"))
    whose = ["person" if person else "policy" for person, _ in groupby(dataset.intervention)]
    assert whose == ["policy", "person", "policy"]
    heights = dataset.actions[dataset.intervention, 2]
    assert heights[-1] - heights[0] > 0.5 * LIFTED_M and dataset.intervention.sum() >= 5


def _is(item, topic, kind) -> bool:
    return item.topic == topic and item.message.kind == kind
