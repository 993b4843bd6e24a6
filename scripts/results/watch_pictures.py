"""Draw the pictures of docs/how-to/watch.md from a recorded run: Rerun, `bid top`, and Foxglove's layout in Lichtblick.

Usage: watch-pictures RUN [--episode N] [--at SECONDS] [--lichtblick FOLDER] [--out FOLDER]. RUN has `bag` and
`run.json`. It needs Chromium (apt-get install chromium), which draws Rerun's page without a graphics card in a minute.
FOLDER is the built web application of Lichtblick (`yarn web:build:prod`, folder web/.webpack), the open fork of
Foxglove Studio; without it there is no picture of Foxglove.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import cv2
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))

from browser import Browser  # noqa: E402

from bid_ros.cameras.config import load_cameras  # noqa: E402
from bid_ros.commands.tasks import task_file_of_bags  # noqa: E402
from bid_ros.core.task import load_task  # noqa: E402
from bid_ros.curation.catalog import chosen  # noqa: E402
from bid_ros.recording.reader import BagReader  # noqa: E402
from bid_ros.system.folder import file_beside  # noqa: E402
from bid_ros.tasks.topics import system_topics  # noqa: E402
from bid_ros.views.outline import outline_of  # noqa: E402
from bid_ros.views.rerun_sink import into_browsers  # noqa: E402
from bid_ros.views.rerun_view import RerunView  # noqa: E402
from bid_ros.views.top_screen import TopScreen  # noqa: E402
from bid_ros.views.vitals import Vitals  # noqa: E402

PORT, LICHTBLICK_PORT = 9300, 9310
SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
SIZE = (1500, 940)
# It and its workers wait for fonts, which a copy of its sources without large files lacks.
NO_FONTS = "FontFace.prototype.load = function () { return Promise.resolve(this) }"
HIDE_SIDEBAR = "document.querySelector('[data-tourid=left-sidebar-button]').click()"
RERUN_S, LICHTBLICK_S = 100.0, 50.0  # until a page without a graphics card has drawn everything
READY = "document.body.innerText.includes('bid_ros:')"  # of Lichtblick: it has read the first message
READY_S = 240.0


def main() -> int:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--episode", type=int, default=1)
    parser.add_argument("--at", type=float, default=1.6, help="s after the begin of the episode")
    parser.add_argument("--lichtblick", type=Path)
    parser.add_argument("--only", default="top,rerun,foxglove")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    bag = given.run / "bag"
    file = Path(task_file_of_bags("", [bag]))
    with BagReader(bag) as reader:
        (episode,) = chosen(reader, given.episode)
        first, last = reader.span_ns[0], episode.begin_ns + round(given.at * 1e9)
        if "top" in given.only:
            _top(reader, file, first, last, given.out / "watch_top.png")
        if "rerun" in given.only:
            _rerun(reader, file, episode.begin_ns, last, given.out / "watch_rerun.png")
    if given.lichtblick and "foxglove" in given.only:
        layout = ROOT / "config" / file.parent.name / "foxglove.json"
        _lichtblick(given.lichtblick, layout, next(bag.glob("*.mcap")), last, given.out)
    return 0


def _top(reader: BagReader, file: Path, first: int, last: int, out: Path) -> None:
    """Draw the screen of `bid top` as it would have been at a time of the run."""
    task = load_task(file)
    vitals = Vitals(system_topics(task))
    for item in reader.messages(list(system_topics(task)), first, last):
        vitals.add(item.topic, item.stamp_ns, item.message)
    app = TopScreen(f"{task.name}  /", lambda: vitals.snapshot(last), lambda: True)

    async def shown() -> str:
        async with app.run_test(size=(128, 43)) as pilot:
            await pilot.pause()
            return app.export_screenshot(title="bid top")

    drawing = asyncio.run(shown())
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "top.html")
        page.write_text(f"<body style='margin:0;overflow:hidden;background:#14161c'>{drawing}")
        _photograph(f"file://{page}", out, (1180, 962), 2.0)


def _rerun(reader: BagReader, file: Path, first: int, last: int, out: Path) -> None:
    """Draw Rerun's page, which opens at the last time that it has."""
    task = load_task(file)
    cameras = load_cameras(file_beside(file, "cameras.yaml"), [camera.name for camera in task.cameras], twin=True)
    with into_browsers(PORT) as (recording, address):
        view = RerunView(recording, task, cameras, outline=outline_of(task))
        view.begin(first)
        for item in reader.messages(view.topics, first, last):
            view.add(item.topic, item.stamp_ns, item.message)
        recording.flush()
        _photograph(f"{address}&renderer=webgl", out, SIZE, RERUN_S, *SOFTWARE)


def _lichtblick(app: Path, layout: Path, bag: Path, last: int, out: Path) -> None:
    """Draw a recording as it is, in the layout of its system."""
    served = _Quiet(("127.0.0.1", LICHTBLICK_PORT), partial(_Lichtblick, app, layout, bag))
    threading.Thread(target=served.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{LICHTBLICK_PORT}"
    when = datetime.fromtimestamp(last / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    query = f"?ds=remote-file&ds.url={quote(f'{address}/bag.mcap', safe='')}&time={when}"
    _photograph(
        f"{address}/{query}", out / "watch_foxglove.png", SIZE, LICHTBLICK_S, *SOFTWARE, ready=READY, first=HIDE_SIDEBAR
    )
    served.shutdown()


class _Quiet(ThreadingHTTPServer):
    """Takes it as usual that a browser breaks a connection off."""

    def handle_error(self, *_: object) -> None:
        """Say nothing."""


class _Lichtblick(SimpleHTTPRequestHandler):
    """Serves Lichtblick, with a layout in its page, and parts of a bag."""

    protocol_version = "HTTP/1.1"

    def __init__(self, app: Path, layout: Path, bag: Path, *arguments: Any) -> None:
        self._app, self._layout, self._bag = app, layout, bag
        super().__init__(*arguments, directory=str(app))

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path == "/":
            page = (self._app / "index.html").read_text()
            page = page.replace("/*LICHTBLICK_SUITE_DEFAULT_LAYOUT_PLACEHOLDER*/", self._layout.read_text())
            self._send(page.replace("<head>", f"<head><script>{NO_FONTS}</script>").encode(), "text/html")
        elif path.endswith(".js"):
            self._send(f"{NO_FONTS};{(self._app / path[1:]).read_text()}".encode(), "text/javascript")
        elif path == "/bag.mcap":
            self._send(self._bag.read_bytes(), "application/octet-stream")
        else:
            super().do_GET()

    def _send(self, content: bytes, kind: str) -> None:
        size, wanted = len(content), self.headers.get("Range")
        self.send_response(206 if wanted else 200)
        if wanted:
            begin, end = wanted.removeprefix("bytes=").split("-")
            first, last = int(begin), int(end or size - 1)
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            content = content[first : last + 1]
        self.send_header("Content-Type", kind)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _photograph(
    url: str, out: Path, size: tuple[int, int], seconds: float, *options: str, ready: str = "", first: str = ""
) -> None:
    """Write what a page shows some seconds after the expression ``ready`` is true and the script ``first`` has run."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(Path(folder, "profile"), url, size, options)
        try:
            end = time.monotonic() + READY_S
            while ready and not browser.value(ready) and time.monotonic() < end:
                time.sleep(1.0)
            browser.value(first)
            time.sleep(seconds)
            browser.picture(Path(folder, "shot.png"))
            picture = cv2.imread(str(Path(folder, "shot.png")))
        finally:
            browser.kill()
    Image.fromarray(picture[..., ::-1]).save(out, optimize=True)
    print(f"wrote {out}, {out.stat().st_size // 1024} KiB", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
