"""Teleoperation by a page in a browser or on a phone, which shows the cameras while a person drives."""

import math
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.settings import Positive, settings
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    ARM_STATUS,
    COMPRESSED_IMAGE_TYPE,
    DIAGNOSTICS,
    EPISODE_EVENT,
    GRANT,
    IMAGE_TYPE,
    SAFETY_STATE,
    TF_STATIC,
    TOPICS,
    camera_topic,
    camera_view_topic,
)
from bid_ros.teleop.base import Command, DeviceDescriptor
from bid_ros.teleop.cockpit import Cockpit
from bid_ros.teleop.human import Controller, HumanDevice
from bid_ros.teleop.page_said import PageSaid, read_said
from bid_ros.teleop.page_server import LOOPBACK, SELF, PageServer, fingerprint, own_address, own_certificate
from bid_ros.teleop.phone import Grip
from bid_ros.teleop.view_axes import Views

HEARD: Final = (ARM_STATUS, SAFETY_STATE, EPISODE_EVENT, GRANT, DIAGNOSTICS, TF_STATIC)
HELP: Final = """\
  open the address that is printed in a browser; it shows the cameras
  left pad, W A S D   away, left, back, right     right pad, R F Q E   up, down, turn
  touch a picture     steer as that picture shows it  slider                drag it: the gripper goes with it
  space               gripper: close, open            buttons               start, success, failure, discard, note
  follow my hand      the tool goes as far as you drag a pad, and turns as you turn the phone
The arm moves only while a pad or a key is held. For a phone: --device-settings 'host: 0.0.0.0, certificate: self'"""
NEWS_NS: Final = 150_000_000  # twice the time between two news
LARGER_NS: Final = 350_000_000  # after which an old large picture is worse than a new small one
MOST_TOLD: Final = 100  # news of which the time is known


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
    """The page's side of the node: takes what the driver's browser says, shows pictures and how the run is.

    Args:
        options: where to serve.
        task: names the cameras.
        clock: steady time in ns, of :meth:`poll` too.

    Raises:
        BidError: the address cannot be served, or a certificate cannot be read.
    """

    def __init__(self, options: PageSettings, task: Task, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._images, self._pictures = _cameras(task, camera_topic), _cameras(task, camera_view_topic)
        self._pictured_ns: dict[str, int] = {}  # by camera: when its last larger picture came
        self._silence_ns = round(options.silence_s * NANOSECONDS)
        self._lock = threading.Lock()
        self._said: PageSaid | None = None
        self._said_ns = self._toggles = self._marks = self._notes = 0
        self._live, self._ended = False, ""
        self._cockpit, self._views = Cockpit(task), Views(task)
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
            toggle, mark = said.toggles > self._toggles, said.mark if said.marks > self._marks else ""
            note = said.note if said.notes > self._notes else ""
            self._toggles, self._marks, self._notes = said.toggles, said.marks, said.notes
            self._live, gripper, offset = said.live, self._gripper, None
            self._gripper = None
            axes = self._views.axes(said.view, self._cockpit.tool()) if said.view else None
            if self._live and said.place is not None:
                offset = self._grip.offset(said.holds, said.place, said.lean, axes)
            else:
                self._grip.release()
            return Command(self._live, said.twist, offset, gripper, toggle, mark, note=note, axes=axes)

    def begin(self, now_ns: int) -> None:
        """Forget what was said before: the next message counts anew."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        """Forget what was said: the next message counts anew."""
        self._said = self._gripper = None
        self._grip.release()

    def hear(self, topic: str, message: Any, now_ns: int) -> None:
        """Take a picture, the pose of a camera, or what a node says of the run."""
        if camera := self._pictures.get(topic) or self._images.get(topic):
            self._cockpit.see(camera, now_ns)
            if topic in self._pictures:
                self._pictured_ns[camera] = now_ns
            if topic in self._pictures or now_ns - self._pictured_ns.get(camera, -math.inf) > LARGER_NS:
                self._server.show(camera, message)
        elif topic == TF_STATIC:
            self._views.hear(message)
        else:
            self._cockpit.hear(topic, message, now_ns)

    def close(self) -> None:
        """Tell the browsers why the run ends, and end the server."""
        self._ended = self._cockpit.ending()
        self._server.close()

    def _take(self, text: str | None) -> str:
        """Take a word of the driver's page, or None when the driver is gone; return why it is refused, or nothing."""
        with self._lock:
            if text is None:
                self._forget()
                return ""
            try:
                said = read_said(text)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                self._forget()
                return f"a message of the page is not valid: {error!r}"
            if self._late(said.echo):
                return ""
            if self._said is None:  # a new driver, whose page counts anew
                self._toggles, self._marks, self._notes = said.toggles, said.marks, said.notes
            self._said, self._said_ns = said, self._clock()
            if said.gripper is not None:  # until it was polled, whatever comes after it
                self._gripper = said.gripper
            return ""

    def _late(self, echo: int) -> bool:
        """Whether a message was sent long ago: a slow link still delivers what was held, though it was let go.

        Args:
            echo: number of the newest news that the page had; 0: none yet.
        """
        told_ns = self._told.get(echo, 0 if self._told and echo else None)
        return told_ns is not None and self._clock() - told_ns > self._silence_ns + NEWS_NS

    def _news(self, drives: bool) -> dict[str, Any]:
        """Return what a page shows now; ``drives``: it is that of the driver."""
        if self._ended:
            return {"ended": self._ended}
        now_ns, number = self._clock(), 0
        with self._lock:
            if drives:
                number = max(self._told, default=0) + 1
                self._told[number] = now_ns
                self._told.pop(number - MOST_TOLD, None)
            live = self._live
        return {**self._cockpit.shown(live, drives, now_ns), "views": self._views.known(), "number": number}


def _cameras(task: Task, topic: Callable[[str], str]) -> dict[str, str]:
    return {topic(camera.name): camera.name for camera in task.cameras}


def _topics(task: Task, _: PageSettings) -> dict[str, str]:
    images = dict.fromkeys(_cameras(task, camera_topic), IMAGE_TYPE)
    pictures = dict.fromkeys(_cameras(task, camera_view_topic), COMPRESSED_IMAGE_TYPE)
    return images | pictures | {name: TOPICS[name].type_name for name in HEARD}


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
    return HumanDevice(task, lambda: Page(options, task))


DEVICE = DeviceDescriptor(
    "page", _build, settings=PageSettings, topics=_topics, rate_hz=40.0, help=HELP, complete=_complete
)
