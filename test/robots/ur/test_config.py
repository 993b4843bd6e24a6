"""Values of the configuration that cannot be."""

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.config import UrConfig


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"address": ""}, "address is empty"),
        ({"model": "ur20"}, "model is 'ur20'; valid is one of ur5e, ur5"),
        ({"rate_hz": 250}, "rate_hz is 250; valid is one of 0, 125, 500"),
        ({"lookahead_time_s": 0.3}, r"lookahead_time_s is 0\.3; valid is a number from 0\.03 to 0\.2"),
        ({"gain": 50.0}, r"gain is 50\.0; valid is a number from 100 to 2000"),
        ({"silence_timeout_s": 0.5}, r"valid is a number from 0\.02 to 0\.2"),
        ({"watchdog_hz": 1.0}, r"valid is a number from 5 to 20"),
        ({"max_acceleration": float("nan")}, "max_acceleration is nan"),
        ({"joint_min": (0.0,) * 5}, "valid is a list of 6 numbers"),
        ({"joint_max": (-6.3,) * 6}, "a joint's limits are"),
        ({"joint_max": (-7.0,) * 6}, r"joint_max\[0\] is -7\.0; valid is a number from -6\.33555 to 6\.33555"),
        ({"tool_quaternion": (1.0, 1.0, 0.0, 0.0)}, "valid is a unit quaternion"),
    ],
)
def test_impossible_configurations_are_refused(parts, said):
    with pytest.raises(ArmError, match=said):
        UrConfig(**{"address": "a", **parts})
