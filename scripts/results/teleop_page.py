"""Draw docs/images/teleop_page.png: start a system in its twin, drive it from the page for a moment, take the picture.

Usage: teleop-page [SYSTEM [PICTURE]]. It needs Chromium (apt-get install chromium).
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))

from browser import Browser  # noqa: E402

PORT = 8766
READY_S, DRIVEN_S = 90.0, 1.5


def main(system: str = "franka_place", picture: str = str(ROOT / "docs/images/teleop_page.png")) -> int:
    """Draw the picture; return 0."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--device", "page", "--device-settings", f"port: {PORT}", "--episodes", "1"]
        command = [sys.executable, "-m", "bid_ros.cli", "teleop", system, *options, "--out", f"{folder}/out"]
        run = subprocess.Popen(command, cwd=ROOT)
        browser = None
        try:
            browser = _opened(Path(folder, "profile"))
            size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}  # without a window's frame
            browser.call("Emulation.setDeviceMetricsOverride", **size)
            _wait(lambda: browser.value("document.images.length") == 2)
            _wait(lambda: "nothing lost" in (browser.value("document.getElementById('recorder').textContent") or ""))
            _wait(lambda: browser.value("document.body.className") == "ready")
            browser.touch("#plane", right=0.3, up=0.7)
            _wait(lambda: browser.value("document.body.className") == "moving")
            time.sleep(DRIVEN_S)
            browser.picture(Path(picture))
            browser.touch("#plane", right=0.3, up=0.7, kind="mouseReleased")
        finally:
            if browser is not None:
                browser.kill()
            run.send_signal(signal.SIGINT)
            run.wait()
    return 0


def _opened(profile: Path) -> Browser:
    import urllib.request

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/").close()
        except OSError:
            return False
        return True

    _wait(answers)
    return Browser(profile, f"http://127.0.0.1:{PORT}/", (1280, 800))


def _wait(condition) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + READY_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("error: the page was not ready in time")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
