"""Teleoperation by a page in a browser or on a phone, which shows the cameras while a person drives."""

import json
import math
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.settings import Positive, settings
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, IMAGE_TYPE, SAFETY_STATE, TOPICS, camera_topic
from bid_ros.teleop.base import DeviceDescriptor
from bid_ros.teleop.command import MARKS, Command
from bid_ros.teleop.page_server import LOOPBACK, PageServer
from bid_ros.teleop.person import Controller, PersonDevice

STOPPED: Final = 2  # of bid_msgs/SafetyState
HELP: Final = """\
  open the address that is printed in a browser; it shows the cameras
  left pad, W A S D   away, left, back, right     right pad, R F Q E   up, down, turn
  space               gripper: close, open            buttons               success, failure, discard
The arm moves only while a pad or a key is held. For a phone: --device-settings 'host: 0.0.0.0'"""


@settings
class PageSettings:
    """Settings of the page.

    Attributes:
        host: address to serve on. The default is this computer alone; 0.0.0.0 is every network that it is in.
        port: port.
        token: word that the address must carry (``?token=``). It is needed if others than this computer may connect;
            ``bid teleop`` makes one.
        silence_s: s without a word of the page after which the dead man's switch counts as open.
        certificate, key: files of a TLS certificate, for a phone: browsers give its sensors to secure pages only.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 8765
    token: str = ""
    silence_s: Positive = 0.25
    certificate: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.token:
            raise BidError(f"host is {self.host} and token is empty; valid is a token, so that no stranger drives")
        if bool(self.certificate) != bool(self.key):
            raise BidError("only one of certificate and key is given; valid is both or none")

    @property
    def url(self) -> str:
        """Address of the page, as a person types it."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        query = f"?token={self.token}" if self.token else ""
        return f"http{'s' if self.certificate else ''}://{host}:{self.port}/{query}"


class Page(Controller):
    """The page's side of the node: takes what the driver's browser says, shows images and the state.

    Args:
        options: where to serve.
        cameras: name of the camera by topic.
        clock: steady time in ns, of :meth:`poll` too.

    Raises:
        BidError: the address cannot be served, or a certificate cannot be read.
    """

    def __init__(
        self, options: PageSettings, cameras: Mapping[str, str], clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._clock = clock
        self._cameras, self._silence_ns = cameras, round(options.silence_s * NANOSECONDS)
        self._lock = threading.Lock()
        self._said: Mapping[str, Any] | None = None
        self._said_ns = self._toggles = self._marks = 0
        self._live, self._safety, self._tool = False, "waiting for the arm", ""
        self._stopped = False
        page = (Path(__file__).parent / "page.html").read_bytes()
        tls = (options.certificate, options.key) if options.certificate else None
        self._server = PageServer(page, options.host, options.port, options.token, self._take, self._news, tls)

    def poll(self, now_ns: int) -> Command:
        """Return what the driver asks for now."""
        with self._lock:
            said = self._said
            if said is None or now_ns - self._said_ns > self._silence_ns:
                self._said, self._live = None, False  # what was pressed in a silence does not count
                return Command()
            toggle, marked = said["toggles"] > self._toggles, said["marks"] > self._marks
            self._toggles, self._marks, self._live = said["toggles"], said["marks"], said["live"]
            return Command(self._live, said["twist"], toggle=toggle, mark=said["mark"] if marked else "")

    def begin(self, now_ns: int) -> None:
        """Forget what was said before: the next message counts anew."""
        with self._lock:
            self._said = None

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take an image, the state of the arm or that of the safety node."""
        if topic in self._cameras:
            self._server.show(self._cameras[topic], message)
        elif topic == ARM_STATUS:
            at = message.tool.position
            self._tool = f"tool {at.x:.3f} {at.y:.3f} {at.z:.3f} m, gripper {1e3 * message.gripper_width:.0f} mm"
        elif topic == SAFETY_STATE:
            self._safety, self._stopped = message.reason, message.state == STOPPED

    def close(self) -> None:
        """End the server. Browsers say that the connection is lost."""
        self._server.close()

    def _take(self, text: str | None) -> str:
        """Take a word of the driver's page, or None when the driver is gone; return why it is refused, or nothing."""
        with self._lock:
            if text is None:
                self._said = None
                return ""
            try:
                said = _read(text)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                self._said = None
                return f"a message of the page is not valid: {error!r}"
            if self._said is None:  # a new driver, whose page counts anew
                self._toggles, self._marks = said["toggles"], said["marks"]
            self._said, self._said_ns = said, self._clock()
            return ""

    def _news(self) -> str:
        words = [f"stopped: {self._safety}" if self._stopped else self._safety, self._tool]
        text = "  ·  ".join(word for word in words if word)
        return json.dumps({"text": text, "stopped": self._stopped, "live": self._live})


def _read(text: str) -> Mapping[str, Any]:
    """Return the fields of a message, checked. Raises ValueError, KeyError or TypeError."""
    said = json.loads(text)
    twist = np.array([float(value) for value in said["twist"]])
    if twist.shape != (6,) or not all(math.isfinite(value) and abs(value) <= 1 for value in twist):
        raise ValueError("twist has not six numbers from -1 to 1")
    if said["mark"] not in ("", *MARKS):
        raise ValueError(f"mark is not one of {', '.join(MARKS)}")
    counts = {name: int(said[name]) for name in ("toggles", "marks")}
    return {"live": said["live"] is True, "twist": twist, "mark": said["mark"], **counts}


def _cameras(task: Task) -> dict[str, str]:
    return {camera_topic(camera.name): camera.name for camera in task.cameras}


def _topics(task: Task, _: PageSettings) -> dict[str, str]:
    heard = {name: TOPICS[name].type_name for name in (ARM_STATUS, SAFETY_STATE)}
    return dict.fromkeys(_cameras(task), IMAGE_TYPE) | heard


def _complete(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Make a token if the page is served beyond this computer, and say where the page is."""
    if given.get("host", "127.0.0.1") not in LOOPBACK and not given.get("token"):
        given = {**given, "token": secrets.token_urlsafe(6)}
    return given, f"drive with the page {PageSettings(**given).url}"


def _build(task: Task, options: PageSettings) -> PersonDevice:
    return PersonDevice(task, lambda: Page(options, _cameras(task)))


DEVICE = DeviceDescriptor(
    "page", _build, settings=PageSettings, topics=_topics, rate_hz=40.0, help=HELP, complete=_complete
)
