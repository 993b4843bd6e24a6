import numpy as np
import pytest

from bid_ros.tasks.picking.geometry import (
    CUP_HEIGHT,
    CUP_RADIUS,
    FINGERTIP_BELOW_TOOL,
    GRASP_TOOL_HEIGHT,
    SAUCER_HEIGHT,
    SAUCER_RADIUS,
)
from bid_ros.tasks.picking.score import PickingScore, lean

SAUCER = np.array([0.5, 0.2, 0.0])


def from_saucer(x: float, y: float, z: float) -> np.ndarray:
    return SAUCER + np.array([x, y, z])


UPRIGHT = (0.0, 0.0, 0.0, 1.0)
LYING = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))
ON_SAUCER = from_saucer(0.0, 0.0, SAUCER_HEIGHT)
AWAY = np.array([0.0, 0.0, 0.15])  # tool from the cup's foot
AT_GRASP = np.array([0.0, 0.0, GRASP_TOOL_HEIGHT])
OPEN, HOLDING = 0.085, 2 * CUP_RADIUS
MS = 1_000_000


def turned(angle: float) -> tuple[float, float, float, float]:
    return (float(np.sin(angle / 2)), 0.0, 0.0, float(np.cos(angle / 2)))


def follow(score, start_ms, end_ms, cup=ON_SAUCER, quaternion=UPRIGHT, tool=AWAY, width=OPEN) -> str:
    for now in range(start_ms, end_ms, 10):
        bodies = {"saucer": (SAUCER, UPRIGHT), "cup": (cup, quaternion)}
        score.update(now * MS, bodies, cup + tool, width)
    return score.outcome


def test_success_needs_the_full_time() -> None:
    score = PickingScore()
    assert follow(score, 0, 300) == "pending"
    assert follow(score, 300, 310) == "success"


def test_an_interruption_starts_the_time_anew() -> None:
    score = PickingScore()
    follow(score, 0, 290)
    follow(score, 290, 300, width=HOLDING)
    assert follow(score, 300, 600) == "pending"
    assert follow(score, 600, 610) == "success"


@pytest.mark.parametrize(
    "held", [{"width": HOLDING}, {"width": HOLDING + 0.0079}, {"tool": AT_GRASP}, {"tool": AT_GRASP, "width": HOLDING}]
)
def test_a_cup_that_is_not_let_go_of_is_no_success(held) -> None:
    assert follow(PickingScore(), 0, 1000, **held) == "pending"


def test_the_tool_is_clear_when_its_fingertips_are_over_the_rim_or_beside_the_cup() -> None:
    over = CUP_HEIGHT + FINGERTIP_BELOW_TOOL + 0.005
    assert follow(PickingScore(), 0, 400, tool=np.array([0.0, 0.0, over - 1e-4])) == "pending"
    assert follow(PickingScore(), 0, 400, tool=np.array([0.0, 0.0, over + 1e-4])) == "success"
    assert follow(PickingScore(), 0, 400, tool=np.array([0.1, 0.0, 0.04])) == "success"


@pytest.mark.parametrize(("aside", "outcome"), [(0.0349, "success"), (0.0351, "pending")])
def test_the_whole_foot_must_be_on_the_saucer(aside: float, outcome: str) -> None:
    assert pytest.approx(0.035) == SAUCER_RADIUS - CUP_RADIUS
    assert follow(PickingScore(), 0, 400, from_saucer(0.0, aside, SAUCER_HEIGHT)) == outcome


@pytest.mark.parametrize("height", [-SAUCER_HEIGHT, 0.005, 0.05])
def test_a_cup_that_does_not_stand_on_the_saucer_is_no_success(height: float) -> None:
    assert follow(PickingScore(), 0, 1000, from_saucer(0.0, 0.0, SAUCER_HEIGHT + height)) == "pending"


def test_a_leaning_cup_is_no_success() -> None:
    assert follow(PickingScore(), 0, 1000, quaternion=turned(0.15)) == "pending"
    assert follow(PickingScore(), 0, 400, quaternion=turned(0.13)) == "success"


def test_a_cup_put_down_beside_the_saucer_can_be_picked_again() -> None:
    assert follow(PickingScore(), 0, 2000, from_saucer(0.15, 0.0, 0.0)) == "pending"


@pytest.mark.parametrize("cup", [(0.15, 0.0, CUP_RADIUS), (0.0, 0.0, 0.04), (0.0, 0.0, -0.3)])
def test_a_fallen_cup_is_dropped(cup) -> None:
    assert follow(PickingScore(), 0, 300, from_saucer(*cup), LYING) == "pending"
    assert follow(PickingScore(), 0, 310, from_saucer(*cup), LYING) == "dropped"


def test_a_cup_between_the_fingers_is_not_dropped_however_it_leans() -> None:
    assert follow(PickingScore(), 0, 1000, ON_SAUCER, LYING, AT_GRASP, HOLDING) == "pending"


def test_the_first_outcome_stays_until_reset() -> None:
    score = PickingScore()
    follow(score, 0, 400)
    assert follow(score, 400, 1000, quaternion=LYING) == "success"
    score.reset()
    assert score.outcome == "pending"
    assert follow(score, 1000, 1290) == "pending"


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.5, 3.0])
def test_lean_is_the_angle_from_upright(angle: float) -> None:
    assert lean(turned(angle)) == pytest.approx(angle)
    assert lean((0.0, 0.0, np.sin(1.0), np.cos(1.0))) == pytest.approx(0.0)
