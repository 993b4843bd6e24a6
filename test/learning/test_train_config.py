import pytest

from bid_ros.errors import BidError
from bid_ros.learning import AugmentConfig, NetworkConfig, TrainConfig


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (TrainConfig, {"steps": 0}, "steps is 0; valid is 1 or more"),
        (TrainConfig, {"steps": 10, "weak_steps": 11}, "weak_steps is 11; valid is 0 to steps, 10"),
        (TrainConfig, {"device": "tpu"}, "device is 'tpu'; valid are auto, cpu, cuda"),
        (TrainConfig, {"validation_share": 0.9}, "validation_share is 0.9; valid is 0.0 to 0.5"),
        (TrainConfig, {"learning_rate": float("nan")}, "learning_rate is nan; valid is 1e-07 to 1.0"),
        (TrainConfig, {"seed": -1}, "seed -1"),
        (NetworkConfig, {"widths": (30,)}, r"widths are \(30,\); valid are 1 to 5 multiples of 8"),
        (NetworkConfig, {"kernel": 4}, "kernel is 4; valid is an odd number"),
        (NetworkConfig, {"blocks": 0}, "blocks is 0; valid is 1 to 4"),
        (NetworkConfig, {"step_embedding": 5}, "step_embedding is 5"),
        (NetworkConfig, {"image_width": 6}, "image_width is 6; valid is a multiple of 4"),
        (AugmentConfig, {"contrast": 2.0}, "contrast is 2.0; valid is 0 to 0.5"),
        (AugmentConfig, {"shift": 9}, "shift is 9; valid is 0 to 8 pixels"),
    ],
)
def test_impossible_values_are_refused(kind, values, message) -> None:
    with pytest.raises(BidError, match=message):
        kind(**values)


def test_the_weak_policy_has_a_tenth_of_the_steps_by_default() -> None:
    assert TrainConfig(steps=8000).weak_at == 800
    assert TrainConfig(steps=5).weak_at == 1
    assert TrainConfig(steps=8000, weak_steps=100).weak_at == 100
