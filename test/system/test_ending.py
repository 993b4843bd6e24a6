"""What may rightly take long gives signs of life, and only for so long."""

import threading
import time
from types import SimpleNamespace

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.system.ending import Ending, alive_during


@pytest.fixture
def signs(monkeypatch):
    made: list[float] = []
    monkeypatch.setattr(Ending, "present", SimpleNamespace(alive=lambda: made.append(time.monotonic())))
    return made


def test_a_long_work_gives_signs_of_life_until_its_time_is_over(signs):
    enough = threading.Event()

    def work():
        while len(signs) < 3:
            time.sleep(0.001)
        enough.set()

    alive_during(work, sign_s=0.01)
    assert enough.is_set() and len(signs) >= 3
    signs.clear()
    alive_during(lambda: time.sleep(0.1), limit_s=0.0, sign_s=0.01)
    assert signs == [], "what takes too long hangs"


def test_what_the_work_raises_is_raised_also_without_an_ending(monkeypatch):
    monkeypatch.setattr(Ending, "present", None)

    def work():
        raise ArmError("no answer")

    with pytest.raises(ArmError, match="no answer"):
        alive_during(work)
