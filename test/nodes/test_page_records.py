"""The page as a person uses it: episodes are recorded by what is visible alone, on a desktop and on a phone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser

LAYOUTS = {"desktop": (1280, 800, False), "sideways": (844, 390, True), "upright": (390, 844, True)}
LIMIT_S, AGAIN_S = 60.0, 2.0
# Where an element is if a person can see and touch all of it without scrolling.
PLACE = """(() => {
  const found = [...document.querySelectorAll('%s')].filter(e => e.offsetParent && (%s))
  if (!found.length) return null
  const box = found[0].getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2
  const inside = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight
  const top = document.elementFromPoint(x, y)
  return inside && (found[0] === top || found[0].contains(top)) && !found[0].disabled ? [x, y, box.width] : null
})()"""


class Person:
    """Looks at the page, and touches what is visible."""

    def __init__(self, browser: Browser, layout: str) -> None:
        self.browser = browser
        width, height, mobile = LAYOUTS[layout]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        browser.call("Emulation.setDeviceMetricsOverride", **size)

    def place(self, selector: str, text: str = "") -> list[float] | None:
        found: list[float] | None = self.browser.value(
            PLACE % (selector, f"e.textContent.includes({json.dumps(text)})")
        )
        return found

    def until(self, condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + LIMIT_S
        while not (found := condition()):
            assert time.monotonic() < end, self.browser.value("document.body.innerText")
            time.sleep(0.05)
        return found

    def mouse(self, kind: str, x: float, y: float) -> None:
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def click(self, text: str, done: Callable[[], bool]) -> None:
        """Press a button, and again if nothing came of it: what is pressed in a silence does not count."""
        pressed_s = -AGAIN_S

        def tries() -> bool:
            nonlocal pressed_s
            place = self.place("button", text)
            if place and time.monotonic() - pressed_s > AGAIN_S:
                pressed_s = time.monotonic()
                self.mouse("mousePressed", place[0], place[1])
                self.mouse("mouseReleased", place[0], place[1])
            return done()

        self.until(tries)

    def color(self) -> str:
        return str(self.browser.value("getComputedStyle(document.getElementById('state')).backgroundColor"))

    def reads(self, text: str) -> bool:
        return text in (self.browser.value("document.body.innerText") or "")

    def tool(self) -> str:
        return str(self.browser.value("document.getElementById('facts').innerText"))

    def drives(self) -> None:
        """Hold the left pad until the tool has moved."""
        x, y, width = self.until(lambda: self.place("#plane"))
        before = self.tool()
        self.mouse("mousePressed", x, y - 0.3 * width)
        self.until(lambda: self.reads("you drive") and self.tool() != before)
        self.mouse("mouseReleased", x, y)
        self.until(lambda: not self.reads("you drive"))

    def records(self, number: int, of: int) -> None:
        self.until(lambda: self.place("button", f"Start episode {number} of {of}"))
        assert self.place("button", "success") is None, "nothing is recorded yet"
        assert not green(self.color()), "nothing may move yet"
        self.click(f"Start episode {number} of {of}", lambda: green(self.color()))
        self.until(lambda: self.place("button", "success"))
        for name in ("success", "failure", "discard"):
            assert self.place("button", name), f"{name} is not visible"
        for needed in ("#lift", "#gripper", "#opening", "#view", "#speed", "#facts"):
            assert self.place(needed), f"{needed} is not visible"
        for fact in ("runs", "cm to", "off its set-point", "left", "here"):
            assert self.reads(fact), fact
        self.drives()
        self.click("success", lambda: not green(self.color()))


def green(color: str) -> bool:
    red, bright, blue = (int(part) for part in color[4:-1].split(","))
    return bright > 1.3 * max(red, blue)


def recording(out: Path, port: int, episodes: int, parameters: str) -> subprocess.Popen[str]:
    settings = ["--device", "page", "--device-settings", f"port: {port}", "--episodes", str(episodes)]
    settings += ["--parameters", parameters]
    words = [sys.executable, "-m", "bid_ros.cli", "record", "franka_place", *settings, "--out", str(out)]
    return subprocess.Popen(words, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ))


def opened(profile: Path, port: int, limit_s: float = 90.0) -> Browser:
    end = time.monotonic() + limit_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return Browser(profile, f"http://127.0.0.1:{port}/")
        except OSError:
            assert time.monotonic() < end, "the page is not served"
            time.sleep(0.1)


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.timeout(400)
def test_five_episodes_are_recorded_by_what_is_visible_on_a_desktop_and_on_a_phone(ros_domain, tmp_path, patient):
    """In each layout, in one run. Somebody else watches for a while. The last words are those of the run's end.

    BID_SHOTS names a folder for a picture of each state.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    of, shots = 15, Path(os.environ.get("BID_SHOTS", tmp_path))
    run = recording(tmp_path / "out", port, of, patient)
    browser = opened(tmp_path / "profile", port)
    try:
        for turn, layout in enumerate(LAYOUTS):
            person = Person(browser, layout)
            for number in range(5 * turn + 1, 5 * turn + 6):
                person.records(number, of)
            browser.picture(shots / f"recorded_{layout}.png")
            if layout == "desktop":
                _watches(tmp_path / "second", port, shots)
        person.until(lambda: person.reads(f"The run has ended: all {of} episodes are done"))
        assert browser.value("getComputedStyle(document.querySelector('figure img')).opacity") == "0.3"
        assert not person.reads("MB/s") and not person.reads("trying again")
        browser.picture(shots / "ended_upright.png")
        assert run.wait(60) == 0
    finally:
        browser.kill()
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait(60)
    results = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (results["episodes"], results["successes"]) == (of, of)
    assert len(list((tmp_path / "out" / "episodes").glob("[0-9]*"))) == of


def _watches(profile: Path, port: int, shots: Path) -> None:
    """A second person sees everything, and can do nothing."""
    browser = opened(profile, port)
    try:
        second = Person(browser, "sideways")
        second.until(lambda: second.reads("Somebody drives from this computer, you watch"))
        second.until(lambda: browser.value("document.images.length") == 2)
        names = ("success", "failure", "Start", "gripper")
        assert not any(second.place("button", name) for name in names)
        browser.picture(shots / "second.png")
    finally:
        browser.kill()
