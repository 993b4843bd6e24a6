import numpy as np
import pytest

from bid_ros.tasks.placing.geometry import (
    CUP_BOTTOM_RADIUS,
    CUP_HEIGHT,
    CUP_RIM_RADIUS,
    CUP_WALL,
    OBJECT_DIAMETER,
    OBJECT_LENGTH,
    cup_inner_radius,
)
from bid_ros.tasks.placing.score import PlacementScore

CUP = np.array([0.5, 0.1, 0.0])
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
LYING = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))
OPEN, HOLDING = 0.08, OBJECT_DIAMETER
MS = 1_000_000


def from_cup(x: float, y: float, z: float) -> np.ndarray:
    return CUP + np.array([x, y, z])


IN_CUP = from_cup(0.001, 0.0, CUP_WALL + OBJECT_LENGTH / 2)


def follow(score: PlacementScore, start_ms: int, end_ms: int, position=IN_CUP, quaternion=UPRIGHT, width=OPEN) -> str:
    for now in range(start_ms, end_ms, 10):
        bodies = {"cup": (CUP, UPRIGHT), "object": (position, quaternion)}
        score.update(now * MS, bodies, CUP, width)
    return score.outcome


def test_success_needs_the_full_time() -> None:
    score = PlacementScore()
    assert follow(score, 0, 300) == "pending"
    assert follow(score, 300, 310) == "success"


def test_interruption_starts_the_time_anew() -> None:
    score = PlacementScore()
    follow(score, 0, 290)
    follow(score, 290, 300, width=HOLDING)
    assert follow(score, 300, 600) == "pending"
    assert follow(score, 600, 610) == "success"


def test_held_object_in_the_cup_is_no_success() -> None:
    assert follow(PlacementScore(), 0, 1000, width=OBJECT_DIAMETER + 0.0039) == "pending"
    assert follow(PlacementScore(), 0, 1000, width=OBJECT_DIAMETER + 0.0041) == "success"


@pytest.mark.parametrize(
    "offset",
    [
        (0.0, 0.0, CUP_HEIGHT - 0.019 + OBJECT_LENGTH / 2),  # not deep enough
        (0.035, 0.0, CUP_WALL + OBJECT_LENGTH / 2 + 0.02),  # beside the cup, in the air
        (0.0, 0.0, 0.3),
    ],
)
def test_object_outside_is_no_success(offset: tuple[float, float, float]) -> None:
    assert follow(PlacementScore(), 0, 1000, from_cup(*offset)) == "pending"


def test_upside_down_object_in_the_cup_counts() -> None:
    assert follow(PlacementScore(), 0, 400, quaternion=(1.0, 0.0, 0.0, 0.0)) == "success"


def test_tilted_object_with_its_end_outside_does_not_count() -> None:
    angle = 0.9
    tilted = (0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2))
    assert follow(PlacementScore(), 0, 400, from_cup(0, 0, 0.06), tilted) == "pending"


@pytest.mark.parametrize(
    ("height", "quaternion"), [(OBJECT_LENGTH / 2, UPRIGHT), (OBJECT_DIAMETER / 2, LYING), (-0.3, UPRIGHT)]
)
@pytest.mark.parametrize("width", [0.0, OPEN])
def test_object_on_the_table_is_dropped(height: float, quaternion: tuple[float, ...], width: float) -> None:
    assert follow(PlacementScore(), 0, 400, from_cup(0.1, 0, height), quaternion, width) == "dropped"


def test_object_held_down_to_the_table_is_not_dropped() -> None:
    assert follow(PlacementScore(), 0, 1000, from_cup(0.1, 0, OBJECT_LENGTH / 2), width=HOLDING) == "pending"


def test_first_outcome_stays_until_reset() -> None:
    score = PlacementScore()
    follow(score, 0, 400)
    assert follow(score, 400, 1000, from_cup(0.1, 0, 0.04)) == "success"
    score.reset()
    assert score.outcome == "pending"
    assert follow(score, 1000, 1290) == "pending"


def test_inner_radius_tapers_and_is_clipped() -> None:
    assert cup_inner_radius(-1.0) == CUP_BOTTOM_RADIUS
    assert cup_inner_radius(CUP_HEIGHT / 2) == pytest.approx((CUP_BOTTOM_RADIUS + CUP_RIM_RADIUS) / 2)
    assert cup_inner_radius(1.0) == CUP_RIM_RADIUS
