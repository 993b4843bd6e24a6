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
from bid_ros.core.rotation import Array
from bid_ros.core.settings import Positive, settings
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, DIAGNOSTICS, IMAGE_TYPE, SAFETY_STATE, TOPICS, camera_topic
from bid_ros.teleop.base import MARKS, Command, DeviceDescriptor
from bid_ros.teleop.human import Controller, HumanDevice
from bid_ros.teleop.page_server import LOOPBACK, SELF, PageServer, fingerprint, own_address, own_certificate
from bid_ros.teleop.phone import Grip

STOPPED: Final = 1  # of bid_msgs/SafetyState
LONGEST_NOTE: Final = 500  # characters
HELP: Final = """\
  open the address that is printed in a browser; it shows the cameras
  left pad, W A S D   away, left, back, right     right pad, R F Q E   up, down, turn
  space               gripper: close, open            buttons               success, failure, discard, note
  follow my hand      the tool goes as far as you drag a pad, and turns as you turn the phone
The arm moves only while a pad or a key is held. For a phone: --device-settings 'host: 0.0.0.0, certificate: self'"""
NEWS_NS: Final = 150_000_000  # twice the time between two news
MOST_TOLD: Final = 100  # news of which the time is known
COUNTS: Final = {1: "one number", 3: "three numbers", 4: "four numbers", 6: "six numbers"}
FARTHEST: Final = 10.0  # m or rad, that a pad may be dragged


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
            ``certificate: self`` makes one for this computer, once.
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
        if self.certificate != SELF and bool(self.certificate) != bool(self.key):
            raise BidError("only one of certificate and key is given; valid is both or none, or certificate: self")

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the page, as a person types them."""
        hosts = (socket.gethostname(), own_address()) if self.host in ("0.0.0.0", "::") else (self.host,)
        query = f"?token={self.token}" if self.token else ""
        return tuple(f"http{'s' if self.certificate else ''}://{host}:{self.port}/{query}" for host in hosts)

    @property
    def tls(self) -> tuple[str, str] | None:
        """Files of the certificate and its key; None: no TLS. Raises BidError if one cannot be made."""
        if self.certificate == SELF:
            return own_certificate()
        return (self.certificate, self.key) if self.certificate else None


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
        self._said_ns = self._toggles = self._marks = self._notes = 0
        self._live, self._safety, self._tool, self._recorder = False, "waiting for the arm", "", ""
        self._stopped = False
        self._grip = Grip()
        self._gripper: float | None = None
        self._told: dict[int, int] = {}
        page = (Path(__file__).parent / "page.html").read_bytes()
        self._server = PageServer(page, options.host, options.port, options.token, self._take, self._news, options.tls)

    def poll(self, now_ns: int) -> Command:
        """Return what the driver asks for now."""
        with self._lock:
            said = self._said
            if said is None or now_ns - self._said_ns > self._silence_ns:
                self._live = False  # what was pressed in a silence does not count
                self._forget()
                return Command(heard=False)
            toggle, marked = said["toggles"] > self._toggles, said["marks"] > self._marks
            note = said["note"] if said["notes"] > self._notes else ""
            self._toggles, self._marks, self._live = said["toggles"], said["marks"], said["live"]
            self._notes = said["notes"]
            mark, gripper, offset = said["mark"] if marked else "", self._gripper, None
            self._gripper = None
            if self._live and said["place"] is not None:
                offset = self._grip.offset(said["holds"], said["place"], said["lean"])
            else:
                self._grip.release()
            return Command(self._live, said["twist"], offset, gripper, toggle, mark, note=note)

    def begin(self, now_ns: int) -> None:
        """Forget what was said before: the next message counts anew."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        """Forget what was said: the next message counts anew."""
        self._said = self._gripper = None
        self._grip.release()

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take an image, the state of the arm or that of the safety node, or what the recorder counts."""
        if topic in self._cameras:
            self._server.show(self._cameras[topic], message)
        elif topic == ARM_STATUS:
            at = message.tool.position
            self._tool = f"tool {at.x:.3f} {at.y:.3f} {at.z:.3f} m, gripper {1e3 * message.gripper_width:.0f} mm"
        elif topic == SAFETY_STATE:
            self._safety, self._stopped = message.reason, message.state == STOPPED
        elif topic == DIAGNOSTICS:
            for status in message.status:
                if status.name.endswith("recorder"):
                    self._recorder = status.message

    def close(self) -> None:
        """End the server. Browsers say that the connection is lost."""
        self._server.close()

    def _take(self, text: str | None) -> str:
        """Take a word of the driver's page, or None when the driver is gone; return why it is refused, or nothing."""
        with self._lock:
            if text is None:
                self._forget()
                return ""
            try:
                said = _read(text)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                self._forget()
                return f"a message of the page is not valid: {error!r}"
            if self._late(said["echo"]):
                return ""
            if self._said is None:  # a new driver, whose page counts anew
                self._toggles, self._marks, self._notes = said["toggles"], said["marks"], said["notes"]
            self._said, self._said_ns = said, self._clock()
            if said["gripper"] is not None:  # until it was polled, whatever comes after it
                self._gripper = said["gripper"]
            return ""

    def _late(self, echo: int) -> bool:
        """Whether a message was sent long ago: a slow link still delivers what was held, though it was let go.

        Args:
            echo: number of the newest news that the page had; 0: none yet.
        """
        told_ns = self._told.get(echo, 0 if self._told and echo else None)
        return told_ns is not None and self._clock() - told_ns > self._silence_ns + NEWS_NS

    def _news(self) -> str:
        words = [f"stopped: {self._safety}" if self._stopped else self._safety, self._tool]
        text = "  ·  ".join(word for word in words if word)
        with self._lock:
            number = max(self._told, default=0) + 1
            self._told[number] = self._clock()
            self._told.pop(number - MOST_TOLD, None)
        shown = {"text": text, "recorder": self._recorder, "stopped": self._stopped, "live": self._live}
        return json.dumps({**shown, "number": number})


def _read(text: str) -> Mapping[str, Any]:
    """Return the fields of a message, checked. Raises ValueError, KeyError or TypeError."""
    said = json.loads(text)
    twist, gripper = _numbers(said, "twist", 6, 1.0), said.get("gripper")
    if said["mark"] not in ("", *MARKS):
        raise ValueError(f"mark is not one of {', '.join(MARKS)}")
    return {
        "live": said["live"] is True,
        "twist": twist,
        "place": None if said.get("place") is None else _numbers(said, "place", 4, FARTHEST),
        "lean": None if said.get("lean") is None else _numbers(said, "lean", 3, 360.0),
        "gripper": None if gripper is None else float(_numbers({"gripper": [gripper]}, "gripper", 1, 1.0)[0]),
        "mark": said["mark"],
        "note": str(said.get("note", ""))[:LONGEST_NOTE],
        "notes": int(said.get("notes", 0)),
        "echo": int(said.get("echo", 0)),
        "holds": int(said.get("holds", 0)),
        **{name: int(said[name]) for name in ("toggles", "marks")},
    }


def _numbers(said: Mapping[str, Any], name: str, count: int, most: float) -> Array:
    """Return a field of ``count`` numbers, each ``most`` at most. Raises ValueError, KeyError or TypeError."""
    values = np.array([float(value) for value in said[name]])
    if values.shape != (count,) or not all(math.isfinite(value) and abs(value) <= most for value in values):
        raise ValueError(f"{name} has not {COUNTS[count]} from {-most:g} to {most:g}")
    return values


def _cameras(task: Task) -> dict[str, str]:
    return {camera_topic(camera.name): camera.name for camera in task.cameras}


def _topics(task: Task, _: PageSettings) -> dict[str, str]:
    heard = {name: TOPICS[name].type_name for name in (ARM_STATUS, SAFETY_STATE, DIAGNOSTICS)}
    return dict.fromkeys(_cameras(task), IMAGE_TYPE) | heard


def _complete(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Make a token if the page is served beyond this computer, and say where the page is."""
    if given.get("host", "127.0.0.1") not in LOOPBACK and not given.get("token"):
        given = {**given, "token": secrets.token_urlsafe(6)}
    options = PageSettings(**given)
    line = f"drive with the page {' or '.join(options.urls)}"
    if options.certificate == SELF and options.tls is not None:
        line += f"\nbrowsers warn once, as nobody else vouches for it; SHA-256 {fingerprint(options.tls[0])}"
    return given, line


def _build(task: Task, options: PageSettings) -> HumanDevice:
    return HumanDevice(task, lambda: Page(options, _cameras(task)))


DEVICE = DeviceDescriptor(
    "page", _build, settings=PageSettings, topics=_topics, rate_hz=40.0, help=HELP, complete=_complete
)
