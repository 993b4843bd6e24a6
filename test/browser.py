"""A headless Chromium that a test drives as a person would, over the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-port=0")
NO_GPU = ("--disable-gpu",)
ANSWER_S = 120.0  # of a page that draws without a graphics card
LISTENING = "DevTools listening on ws://"


class Browser:
    """One window of a browser.

    Args:
        profile: folder for what it stores.
        url: page that it opens.
        size: of the window, pixels.
        options: how it draws.
    """

    def __init__(
        self, profile: Path, url: str, size: tuple[int, int] = (900, 900), options: Sequence[str] = NO_GPU
    ) -> None:
        assert CHROMIUM is not None
        window = f"--window-size={size[0]},{size[1]}"
        self._process = subprocess.Popen(
            [CHROMIUM, *OPTIONS, *options, window, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stderr is not None
        address = ""
        for line in self._process.stderr:
            if LISTENING in line:
                address = line.split(LISTENING)[1].split("/")[0]
                break
        with urllib.request.urlopen(f"http://{address}/json/list") as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        self._socket = connect(pages[0]["webSocketDebuggerUrl"], max_size=None, ping_interval=None)
        self._calls = 0
        self.call("Page.navigate", url=url)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=ANSWER_S))
            if answer.get("id") == self._calls:
                result: dict[str, Any] = answer["result"]
                return result

    def key(self, key: str, down: bool) -> None:
        """Press the key of a letter, or let it go."""
        kind = "keyDown" if down else "keyUp"
        self.call("Input.dispatchKeyEvent", type=kind, key=key, code=f"Key{key.upper()}")

    def touch(self, selector: str, right: float, up: float, kind: str = "mousePressed") -> None:
        """Use the mouse on an element: ``right`` and ``up`` are shares of its half width from its middle."""
        box = json.loads(
            self.value(f"JSON.stringify(document.querySelector({selector!r}).getBoundingClientRect())") or "{}"
        )
        half = box["width"] / 2
        place = {"x": box["x"] + half * (1 + right), "y": box["y"] + half * (1 - up)}
        self.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page; None if it fails."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def kill(self) -> None:
        """End it at once, as a phone that runs out of power."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._socket.close()
