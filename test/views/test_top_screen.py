"""The screen of `bid top`, driven without a terminal."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from textual.widgets import Static
from views.test_vitals import SECOND, decision, diagnostics, heartbeat

from bid_ros.core.topics import DECISION, HEARTBEAT, SAFETY_STATE
from bid_ros.views.top_screen import PERIOD_S, TopScreen
from bid_ros.views.vitals import Vitals


def running() -> Vitals:
    vitals = Vitals([DECISION, SAFETY_STATE, "teleop/chunk"])
    text = {"rule": "", "reason": "", "source": "policy"}
    vitals.add(SAFETY_STATE, 0, SimpleNamespace(state=0, forwarded=7, refused=0, **text))
    vitals.add(DECISION, 0, decision())
    vitals.add(HEARTBEAT, 0, heartbeat("arm"))
    vitals.add("/diagnostics", 0, diagnostics("bid_ros: recorder", written="10"))
    return vitals


def pictures(vitals: Vitals, times_s, keys=(), alive=lambda: True, columns=130) -> list[str]:
    """Return the screen as SVG at each of some times."""
    now, shots = [0], []
    app = TopScreen("a_system", lambda: vitals.snapshot(now[0]), alive)

    async def drive() -> None:
        async with app.run_test(size=(columns, 44)) as pilot:
            for key in keys:
                await pilot.press(key)
            for time_s in times_s:
                now[0] = round(time_s * SECOND)
                app.renew()
                await pilot.pause()
                shots.append(app.export_screenshot().replace("&#160;", " "))

    asyncio.run(drive())
    return shots


def test_the_screen_says_what_the_system_does():
    (shot,) = pictures(running(), [0.5])
    for words in ("a_system", "RUNNING", "forwarded 7", "N 3, kept 2, weak 2", "recorder", "written 10", "never"):
        assert words in shot, words


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_no_number_is_cut_on_a_narrow_terminal(columns):
    vitals = running()
    vitals.add("camera/third_person/camera_info", 0, object())
    for number in range(41):
        vitals.add("camera/third_person/image", number * SECOND // 20, object())
    (shot,) = pictures(vitals, [2.5], columns=columns)
    for words in ("Hz", "silent s", "20.0", "never", "0.5"):
        assert words in shot, words
    assert "…" not in shot


def test_an_empty_system_is_no_error():
    (shot,) = pictures(Vitals([DECISION]), [1.0])
    assert "nothing was heard yet" in shot and "no decision yet" in shot


def test_silence_is_marked():
    fresh, late = pictures(running(), [0.5, 60.0])
    assert "silent for" not in fresh and "silent for 60 s" in late
    assert "silent 60 s" in late, "of the diagnostics"


def test_a_held_screen_stands_still():
    (shot,) = pictures(running(), [60.0], keys=["p"])
    assert "held" in shot and "silent for 60 s" not in shot


@pytest.mark.parametrize("total", [[], [0.2, float("nan"), 0.2], [float("nan")] * 3])
def test_losses_that_are_missing_or_equal_are_drawn(total):
    vitals = Vitals([])
    vitals.add(DECISION, 0, decision(total=total))
    (shot,) = pictures(vitals, [0.1])
    assert ("loss of each candidate" in shot) == (len(total) > 0 and total[0] == 0.2)


def test_the_screen_ends_when_nobody_listens_any_more():
    app = TopScreen("a_system", lambda: Vitals([]).snapshot(0), lambda: False)

    async def drive() -> None:
        async with app.run_test() as pilot:
            await pilot.pause()

    asyncio.run(asyncio.wait_for(drive(), 20 * PERIOD_S))
    assert app.query(Static) is not None and not app.is_running
