import time

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.connecting import connect_within


class Late:
    """An arm that answers the third call."""

    calls = 0

    def connect(self) -> None:
        self.calls += 1
        if self.calls < 3:
            raise ArmError(f"nothing answers, try {self.calls}")


def test_it_goes_on_trying_until_the_arm_is_there():
    arm = Late()
    connect_within(arm, 30.0, lambda: False)
    assert arm.calls == 3


def test_when_the_time_is_over_it_says_what_the_last_try_said():
    with pytest.raises(ArmError, match="try 1"):
        connect_within(Late(), -1.0, lambda: False)


def test_a_run_that_ends_does_not_wait_for_the_arm():
    begun = time.monotonic()
    with pytest.raises(ArmError, match="try 1"):
        connect_within(Late(), 30.0, lambda: True)
    assert time.monotonic() - begun < 10.0
