"""A controller that sees what a person sees places the object with a gamepad: the whole way, in lockstep."""

from types import SimpleNamespace

import numpy as np
import pytest
from gamepad_pilot import Pilot

from bid_ros.core.task import load_task
from bid_ros.episodes.log import scene_of
from bid_ros.episodes.rehearsal import RehearsalConfig, Trial
from bid_ros.tasks.base import STEP_NS
from bid_ros.tasks.placing.geometry import OBJECT_BOTTOM_BELOW_TOOL, OBJECT_LENGTH
from bid_ros.tasks.placing.stage import PlacingStage
from bid_ros.teleop.base import EpisodeStart, Steering
from bid_ros.teleop.human import HumanDevice
from bid_ros.teleop.joy import BUTTONS, Joy, JoySettings

THING_BELOW_TOOL = np.array([0.0, 0.0, OBJECT_BOTTOM_BELOW_TOOL - OBJECT_LENGTH / 2])
DOWN_6D = np.array([1.0, 0.0, 0.0, 0.0, -1.0, 0.0])


@pytest.fixture(scope="module")
def stage():
    stage = PlacingStage(32, 32, ["third_person"])
    yield stage
    stage.close()


def drive(root, stage, seed: int, limit_s: float = 40.0, held: bool = True) -> tuple[str, str, float]:
    """Return the outcome, what the person said of it, and the duration in s."""
    task = load_task(root / "config" / "franka_place" / "task.yaml")
    start = scene_of(task, seed)
    stage.begin(seed, start, 0.0)
    trial = Trial(task, RehearsalConfig(), stage, start)
    clock = lambda: trial.now_ns  # noqa: E731
    device = HumanDevice(task, lambda: Joy(JoySettings()), clock=clock)
    device.steer(Steering())
    device.begin(EpisodeStart("joy", seed, start, DOWN_6D, {}, trial.now_ns))
    pilot, outcome, said = Pilot(seed, trial.now_ns / 1e9), "", ""
    while trial.elapsed_s < limit_s and not (outcome and said):
        if round(trial.elapsed_s * 1e9) // STEP_NS % 3 == 0:
            tool = stage.measured[0]
            pilot.look(trial.now_ns / 1e9, tool - THING_BELOW_TOOL, stage.bodies["cup"], tool, stage.width)
            axes, buttons = pilot.joy(trial.now_ns / 1e9)
            buttons[BUTTONS["left_bumper"]] *= held
            device.hear("joy", SimpleNamespace(axes=axes, buttons=buttons), trial.now_ns)
            chunk = device.chunk_at(trial.now_ns, 12, 50_000_000)
            said = said or device.take_mark()
            trial.send(chunk)
        found = trial.advance()
        outcome = outcome or found
    return outcome, said, trial.elapsed_s


def test_it_places_the_object_and_says_so(root, stage):
    results = [drive(root, stage, seed) for seed in range(3000, 3002)]
    assert [(outcome, said) for outcome, said, _ in results] == [("success", "success")] * 2, results
    assert max(duration for *_, duration in results) < 25.0


def test_without_the_dead_mans_switch_it_moves_nothing(root, stage):
    before = scene_of(load_task(root / "config" / "franka_place" / "task.yaml"), 3000)
    assert drive(root, stage, 3000, limit_s=3.0, held=False)[0] == ""
    np.testing.assert_allclose(stage.measured[0], before, atol=1e-6)
