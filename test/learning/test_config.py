import pytest

from bid_ros.core.errors import BidError
from bid_ros.learning import AugmentConfig, NetworkConfig, TrainConfig


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (TrainConfig, {"steps": 0}, "train: steps is 0; valid is a whole number, 1 or more"),
        (TrainConfig, {"steps": 10, "weak_steps": 11}, "weak_steps is 11; valid is up to steps, 10"),
        (TrainConfig, {"device": "tpu"}, "device is 'tpu'; valid is one of auto, cpu, cuda"),
        (TrainConfig, {"validation_share": 0.9}, "validation_share is 0.9; valid is a number from 0 to 0.5"),
        (TrainConfig, {"learning_rate": float("nan")}, "learning_rate is nan; valid is a number from 1e-07 to 1"),
        (TrainConfig, {"seed": -1}, "seed is -1"),
        (NetworkConfig, {"widths": (30,)}, r"widths\[0\] is 30; valid is a multiple of 8, 8 or more"),
        (NetworkConfig, {"kernel": 4}, "kernel is 4; valid is an odd number"),
        (NetworkConfig, {"blocks": 0}, "blocks is 0; valid is a whole number from 1 to 4"),
        (NetworkConfig, {"step_embedding": 5}, "step_embedding is 5"),
        (NetworkConfig, {"image_width": 6}, "image_width is 6; valid is a multiple of 4 from 4 to 512"),
        (AugmentConfig, {"contrast": 2.0}, "contrast is 2.0; valid is a number from 0 to 0.5"),
        (AugmentConfig, {"shift": 9}, "shift is 9; valid is a whole number from 0 to 8"),
    ],
)
def test_impossible_values_are_refused(kind, values, message) -> None:
    with pytest.raises(BidError, match=message):
        kind(**values)


def test_the_weak_policy_has_a_tenth_of_the_steps_by_default() -> None:
    assert TrainConfig(steps=8000).weak_at == 800
    assert TrainConfig(steps=5).weak_at == 1
    assert TrainConfig(steps=8000, weak_steps=100).weak_at == 100
