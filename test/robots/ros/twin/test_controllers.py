"""What the documentation of the forward position controller says of it, asked of the simulated one."""

import numpy as np
from memory_bus import message

from bid_ros.robots.ros.twin.controllers import ForwardController

NAMES = ("a", "b")
START = 1_700_000_000_000_000_000


def test_positions_are_passed_on_as_they_come():
    controller = ForwardController(NAMES)
    controller.activate(np.zeros(2))
    assert controller.update(START, np.zeros(2)) is None, "nothing is commanded before the first message"
    controller.take(message({"data": [0.3, 0.4]}), START)
    for wrong in ([0.1], [0.1, 0.2, 0.3], [0.1, float("nan")]):
        controller.take(message({"data": wrong}), START)
    assert controller.refused == 3 and controller.update(START, np.zeros(2)).tolist() == [0.3, 0.4]
    controller.activate(np.zeros(2))
    assert controller.update(START, np.zeros(2)) is None
