import numpy as np
import pytest

from bid_ros.core.feature import Feature
from bid_ros.core.limits import Limits
from bid_ros.core.observation import ObservationBuffer
from bid_ros.core.task import Task
from bid_ros.observing.intake import EQUAL, SEEN_M, Intake

MS = 1_000_000
STEP = 100 * MS
T0 = 1_700_000_000_000_000_000
HOUR = 3600 * 1_000_000_000
CAMERA = Feature("wrist", "image", (8, 8, 3))
TOOL = Feature("tool", "position", (3,), rate_hz=50)
LIMITS = Limits((0.3, -0.3, 0.0), (0.7, 0.3, 0.6))


def made(live=True, observation=(CAMERA, TOOL)) -> tuple[Intake, ObservationBuffer]:
    task = Task("t", "franka", 10, 2, 16, observation, (Feature("tool", "position", (3,)),), LIMITS)
    buffer = ObservationBuffer(task)
    return Intake(task, buffer, live), buffer


def image(value=7, size=8):
    return np.full((size, size, 3), value, np.uint8)


def moved(intake: Intake, steps: int, way_m: float, value=lambda step: 7) -> list[str]:
    """Take images and places of a tool that moves by so much a step; return what is said of each image."""
    found = []
    for step in range(steps):
        now = T0 + step * STEP
        assert not intake.take("tool", now, np.array([0.4 + step * way_m, 0.0, 0.3]), now)
        found.append(intake.take("wrist", now, image(value(step)), now + 20 * MS))
    return found


def test_images_that_stay_the_same_though_the_tool_moves_are_frozen():
    intake, buffer = made()
    found = moved(intake, 6, 0.015)
    assert found[:EQUAL] == [""] * EQUAL
    assert found[-1] == "images of 'wrist' have not changed for 0.5 s, though the tool moved by 60 mm: frozen"
    assert intake.problem == found[-1]
    assert buffer.newest_ns("wrist") == T0 + 2 * STEP, "what is frozen is not observed"
    assert not intake.take("wrist", T0 + 6 * STEP, image(8), T0 + 6 * STEP) and not intake.problem


def test_images_that_froze_before_the_tool_was_known_are_frozen():
    intake, _ = made()
    assert not any(intake.take("wrist", T0 + k * STEP, image(), T0 + k * STEP) for k in range(3))
    assert moved(intake, 6, 0.015)[-1].endswith("though the tool moved by 60 mm: frozen")


def test_a_scene_that_stands_still_may_look_the_same():
    assert not any(moved(made()[0], 20, 0.0))
    # As long as the tool moves by no more than a camera may miss.
    assert not any(moved(made()[0], 5, SEEN_M / 5))


def test_images_that_change_are_not_frozen_however_far_the_tool_goes():
    assert not any(moved(made()[0], 20, 0.05, lambda step: step))


def test_a_task_that_observes_no_tool_and_a_recording_are_not_judged():
    intake, _ = made(observation=(CAMERA,))
    assert not any(intake.take("wrist", T0 + k * STEP, image(), T0 + k * STEP) for k in range(9))
    assert not any(moved(made(live=False)[0], 20, 0.05))


@pytest.mark.parametrize(("ahead_ns", "words"), [(HOUR, "3600.0 s ahead"), (-HOUR, "3600.0 s behind")])
def test_stamps_of_another_clock_are_refused_with_the_difference(ahead_ns, words):
    intake, buffer = made()
    reason = intake.take("wrist", T0 + ahead_ns, image(), T0)
    assert reason.startswith("images of 'wrist' are stamped") and words in reason and "clock" in reason
    assert "samples of 'tool'" in intake.take("tool", T0 + ahead_ns, np.zeros(3), T0)
    assert buffer.newest_ns("wrist") is None
    assert not made(live=False)[0].take("wrist", T0 + ahead_ns, image(), T0), "a recording keeps its stamps"


def test_an_image_of_another_size_is_refused_with_one_sentence_until_one_fits():
    intake, _ = made()
    reason = intake.take("wrist", T0, image(size=4), T0)
    assert reason == (
        "images of 'wrist' cannot be used: observation 'wrist' has shape (4, 4, 3); the task says (8, 8, 3)"
    )
    assert intake.problem == reason
    assert not intake.take("wrist", T0, image(), T0) and not intake.problem


def test_what_could_not_be_read_is_refused_with_the_reason():
    intake, _ = made()
    said = intake.refuse("wrist", "image 'wrist' has encoding '16UC1'; valid are rgb8, bgr8")
    assert said == intake.problem and said.startswith("images of 'wrist' cannot be used: image 'wrist' has encoding")


def test_a_clock_that_is_set_back_begins_the_history_anew():
    intake, buffer = made()
    moved(intake, 3, 0.0, lambda step: step)
    for name, value in (("wrist", image(99)), ("tool", np.zeros(3))):
        assert not intake.take(name, T0 - HOUR, value, T0 - HOUR)
    assert buffer.assemble().stamp_ns == T0 - HOUR
