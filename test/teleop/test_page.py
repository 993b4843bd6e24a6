"""The page drives over a real websocket."""

import contextlib
import json
import os
import resource
import socket
import ssl
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from bid_ros.core.errors import BidError
from bid_ros.core.topics import SAFETY_STATE, TF_STATIC
from bid_ros.system.folder import find_system
from bid_ros.teleop.page import DEVICE, Page, PageSettings
from bid_ros.teleop.page_server import WATCHERS, own_certificate

TASK = find_system("franka_place").task
SECOND = 1_000_000_000
FORWARD = {"live": True, "twist": [1, 0, 0, 0, 0, 0], "toggles": 0, "marks": 0, "mark": ""}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Clock:
    """Steady time of the test."""

    now_ns = SECOND

    def __call__(self) -> int:
        return self.now_ns


class ClockedPage(Page):
    """A page whose clock and port a test knows."""

    def __init__(self, options: PageSettings) -> None:
        self.clock, self.place = Clock(), (options.host, options.port)
        super().__init__(options, TASK, self.clock)


@pytest.fixture
def served():
    """A function that serves a page."""
    opened = []

    def open_page(**options):
        page = ClockedPage(PageSettings(port=free_port(), **options))
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        page.close()


def address(page: ClockedPage, path: str = "drive", query: str = "") -> str:
    host, port = page.place
    return f"ws://{host}:{port}/{path}{query}"


def certificate_files(folder) -> dict[str, str]:
    certificate, key = own_certificate(folder)
    return {"certificate": certificate, "key": key}


def trusting_nobody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def say(browser, page: ClockedPage, now_ns: int, **changes):
    """Send a message at a steady time, wait until the page has it, and poll."""
    page.clock.now_ns, before = now_ns, page._said
    browser.send(json.dumps({**FORWARD, **changes}))
    while page._said is before:  # the server's thread takes it
        browser.ping().wait(5.0)
    return page.poll(now_ns)


def test_a_browser_drives_until_it_falls_silent(served):
    page = served()
    assert not page.poll(0).live
    with connect(address(page)) as browser:
        command = say(browser, page, SECOND)
        assert command.live
        np.testing.assert_allclose(command.twist, [1, 0, 0, 0, 0, 0])
        assert page.poll(SECOND + 249_000_000).live
        assert not page.poll(SECOND + 251_000_000).live


def test_a_lost_connection_lets_go_at_once(served):
    page = served()
    with connect(address(page)) as browser:
        assert say(browser, page, SECOND).live
    with connect(address(page)) as browser:  # is served after the first one's end
        browser.recv(timeout=5.0)
        assert not page.poll(SECOND + 1).live


def test_what_was_pressed_before_an_episode_or_in_a_silence_does_not_count(served):
    page = served()
    with connect(address(page)) as browser:
        say(browser, page, SECOND)
        page.begin(SECOND)
        assert not page.poll(SECOND + 1).live
        assert not say(browser, page, SECOND, toggles=1, marks=1, mark="success").toggle
        page.poll(3 * SECOND)  # silence
        command = say(browser, page, 4 * SECOND, toggles=2, marks=2, mark="success")
        assert (command.live, command.toggle, command.mark) == (True, False, "")


def test_a_name_of_another_site_that_leads_here_may_not_drive(served):
    page = served()
    port = page.place[1]
    statuses = []
    for host in ("evil.example", "127.0.0.1", "localhost"):
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/", headers={"Host": f"{host}:{port}"})
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [403, 200, 200]


def test_the_gripper_moves_once_a_press_and_a_page_that_was_loaded_anew_presses_nothing(served):
    page = served()
    with connect(address(page)) as browser:
        toggles = [say(browser, page, SECOND, toggles=count).toggle for count in (0, 1, 1, 2)]
    assert toggles == [False, True, False, True]
    with connect(address(page)) as browser:
        browser.recv(timeout=5.0)
        assert not say(browser, page, SECOND, toggles=7).toggle


def test_buttons_end_the_episode_once_a_press(served):
    page = served()
    with connect(address(page)) as browser:
        marks = [say(browser, page, SECOND, marks=count, mark="discard").mark for count in (0, 1, 1, 2)]
    assert marks == ["", "discard", "", "discard"]


def test_a_drag_moves_by_how_far_it_came_and_whatever_interrupts_it_begins_anew(served):
    page = served()
    with connect(address(page)) as browser:
        offsets = [
            say(browser, page, SECOND, holds=holds, place=[x, 0, 0.1, 0.2], live=live).offset
            for holds, x, live in ((1, 0.05, True), (1, 0.08, True), (1, 0.09, False), (1, 0.1, True), (2, 0.3, True))
        ]
        page.poll(3 * SECOND)  # silence
        offsets.append(say(browser, page, 4 * SECOND, holds=2, place=[0.5, 0, 0, 0]).offset)
    assert offsets.pop(2) is None
    assert [offset.closing for offset in offsets] == [1, 1, 2, 3, 4]
    np.testing.assert_allclose([offset.position for offset in offsets], [[x, 0, 0] for x in (0, 0.03, 0, 0, 0)])


def test_a_slider_opens_the_gripper_even_if_the_finger_is_gone_before_it_is_asked(served):
    page = served()

    def touch(value: float) -> None:
        browser.send(json.dumps({**FORWARD, "gripper": value}))
        while page._gripper != value:
            browser.ping().wait(5.0)

    with connect(address(page)) as browser:
        assert say(browser, page, SECOND, gripper=0.4).gripper == 0.4
        assert say(browser, page, SECOND).gripper is None
        touch(0.6)
        assert say(browser, page, SECOND, live=False).gripper == 0.6
        touch(0.8)
        page.begin(SECOND)
        assert say(browser, page, SECOND).gripper is None


def rgb(height: int, width: int, data: bytes) -> SimpleNamespace:
    return SimpleNamespace(height=height, width=width, step=3 * width, encoding="rgb8", is_bigendian=0, data=data)


def test_an_image_that_is_none_is_left_out_and_the_others_are_shown(served):
    page = served()
    page.hear("camera/a/image", rgb(height=8, width=6, data=b"short"), 0)
    page.hear("camera/wrist/image", rgb(height=8, width=6, data=bytes(8 * 6 * 3)), 0)
    with connect(address(page)) as browser:
        browser.recv(timeout=5.0)
        assert browser.recv(timeout=5.0)[1:6] == b"wrist"


def test_it_shows_cameras_and_what_safety_says(served):
    page = served()
    image = np.zeros((8, 6, 3), np.uint8)
    image[:, :, 0] = 200  # red
    page.hear("camera/wrist/image", rgb(height=8, width=6, data=image.tobytes()), 0)
    page.hear(SAFETY_STATE, SimpleNamespace(state=1, action=3, reason="speed is 0.9 m/s"), 0)
    with connect(address(page)) as browser:
        news = json.loads(browser.recv(timeout=5.0))
        data = browser.recv(timeout=5.0)
    assert (news["state"], news["drives"], news["driver"]) == ("stopped", True, "this computer")
    assert news["text"] == "Stopped: speed is 0.9 m/s. Nothing moves until a reset"
    assert data[1 : 1 + data[0]] == b"wrist"
    shown = cv2.imdecode(np.frombuffer(data[1 + data[0] :], np.uint8), cv2.IMREAD_COLOR)
    assert shown.shape == (8, 6, 3)
    assert shown[4, 3, 2] > 180
    assert shown[4, 3, 0] < 40


def test_larger_pictures_are_shown_where_there_are_any(served):
    page = served()
    assert {"camera/wrist/image", "camera/wrist/view/compressed"} <= set(DEVICE.topics(TASK, PageSettings()))

    def heights(topic: str, height: int, at_s: float) -> list[int]:
        """Of the images that come with the three news after a message of this height."""
        image = np.zeros((height, 8, 3), np.uint8)
        if topic == "image":
            message = rgb(height=height, width=8, data=image.tobytes())
        else:
            data = cv2.imencode(".jpg", image)[1].tobytes()
            message = SimpleNamespace(format="rgb8; jpeg compressed bgr8", data=data)
        page.hear(f"camera/wrist/{topic}", message, round(at_s * SECOND))
        said = [browser.recv(timeout=5.0)]
        while sum(isinstance(item, str) for item in said) < 3:
            said.append(browser.recv(timeout=5.0))
        browser.send(b"wrist")
        images = [item for item in said if isinstance(item, bytes)]
        return [len(cv2.imdecode(np.frombuffer(item[6:], np.uint8), cv2.IMREAD_COLOR)) for item in images]

    with connect(address(page)) as browser:
        assert heights("image", 8, at_s=0.0) == [8]
        assert heights("view/compressed", 24, at_s=0.1) == [24]
        assert heights("image", 9, at_s=0.2) == [], "it has a larger one"
        assert heights("image", 10, at_s=0.5) == [10], "nobody sends larger ones any more"


def test_a_slow_browser_gets_fewer_images_and_not_older_ones(served):
    page = served()

    def show(value: int) -> None:
        image = np.full((8, 8, 3), value, np.uint8)
        page.hear("camera/wrist/image", rgb(height=8, width=8, data=image.tobytes()), 0)

    def images(news: int) -> list[int]:
        """The brightness of the images that come with so many news."""
        found = []
        while news > 0:
            data = browser.recv(timeout=5.0)
            news -= isinstance(data, str)
            if isinstance(data, bytes):
                found.append(int(cv2.imdecode(np.frombuffer(data[6:], np.uint8), cv2.IMREAD_COLOR).mean()))
                show(found[-1] + 20)
        return found

    show(20)
    with connect(address(page)) as browser:
        assert images(news=4) == [20, 40], "the third waits until the browser has one of them"
        show(200)
        browser.send(b"wrist")
        assert images(news=3) == [200]


@pytest.mark.parametrize("tls", [False, True])
def test_a_connection_that_cannot_be_accepted_does_not_end_the_server(served, tmp_path, tls):
    page = served(**(certificate_files(tmp_path) if tls else {}))
    options = {"ssl": trusting_nobody()} if tls else {}
    url = address(page).replace("ws:", "wss:" if tls else "ws:")
    connect(url, **options).close()  # it runs
    place = page.place
    waiting = socket.socket()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as free:
        lowest = free.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        waiting.connect(place)
        waiting.settimeout(0.3)
        with contextlib.suppress(TimeoutError):  # accept fails with "too many open files" meanwhile
            assert waiting.recv(1) == b"", "the server's end of the first connection was still open, so one was free"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        waiting.close()
    with connect(url, **options) as browser:
        assert say(browser, page, SECOND).live


def test_one_person_drives_at_a_time_and_a_few_watch(served):
    page = served()

    def news(browser):
        return json.loads(browser.recv(timeout=5.0))

    with connect(address(page)) as first, contextlib.ExitStack() as others:
        assert say(first, page, SECOND).live
        watching = [others.enter_context(connect(address(page))) for _ in range(WATCHERS)]
        assert [news(browser)["drives"] for browser in watching] == [False] * WATCHERS
        refused = news(others.enter_context(connect(address(page))))["refused"]
        assert refused == f"somebody drives, and {WATCHERS} others watch already"
        watching[0].send(json.dumps({**FORWARD, "twist": [0, 1, 0, 0, 0, 0]}))
        watching[0].ping().wait(5.0)
        np.testing.assert_allclose(page.poll(SECOND).twist, [1, 0, 0, 0, 0, 0])
        first.close()
        while (said := news(watching[0]))["driver"]:
            assert said["driver"] == "this computer"
        assert not said["drives"], "nobody gets the arm without asking for it"


def test_whoever_drives_steers_as_the_chosen_picture_shows_it(served):
    page = served()
    turn = SimpleNamespace(x=1.0, y=0.0, z=0.0, w=0.0)  # it looks down, and the upper edge of its picture is at +y
    frames = {"header": SimpleNamespace(frame_id="base"), "child_frame_id": "third_person_optical_frame"}
    transform = SimpleNamespace(transform=SimpleNamespace(rotation=turn), **frames)
    page.hear(TF_STATIC, SimpleNamespace(transforms=[transform]), 0)
    with connect(address(page)) as browser:
        assert json.loads(browser.recv(timeout=5.0))["views"] == ["third_person"]
        seen = say(browser, page, SECOND, view="third_person").axes
        np.testing.assert_allclose(seen[:, 0], [0, 1, 0], atol=1e-12)
        assert say(browser, page, SECOND, view="wrist").axes is None, "nobody knows where it is"
        first, second = (
            say(browser, page, SECOND, view="third_person", holds=1, place=[x, 0, 0, 0]).offset for x in (0.0, 0.1)
        )
        np.testing.assert_allclose([first.position, second.position], [[0, 0, 0], [0, 0.1, 0]], atol=1e-12)


def test_the_last_news_of_a_run_is_why_it_has_ended(served):
    page = served()
    with connect(address(page)) as browser:
        browser.recv(timeout=5.0)  # a browser that has seen nothing yet is not told the end
        page.close()
        said = {}
        with pytest.raises(ConnectionClosed):
            while True:
                said = json.loads(browser.recv(timeout=5.0))
    assert said == {"ended": "somebody has ended it"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSONDecodeError"),
        ('{"live": true}', "KeyError"),
        (json.dumps({**FORWARD, "twist": [9, 0, 0, 0, 0, 0]}), "twist has not six numbers from -1 to 1"),
        (json.dumps({**FORWARD, "place": [0, 0, 11, 0]}), "place has not four numbers from -10 to 10"),
        (json.dumps({**FORWARD, "lean": [0, 0]}), "lean has not three numbers from -360 to 360"),
        (json.dumps({**FORWARD, "gripper": 2}), "gripper has not one number from -1 to 1"),
        ('{"live": true, "twist": [NaN, 0, 0, 0, 0, 0], "toggles": 0}', "twist has not six numbers"),
        (json.dumps({**FORWARD, "mark": "maybe"}), "mark is not one of success, failure, discard"),
    ],
)
def test_a_message_that_is_not_valid_ends_the_connection_and_moves_nothing(served, text, why):
    page = served()
    with connect(address(page)) as browser:
        say(browser, page, SECOND)
        browser.send(text)
        refused = ""
        with pytest.raises(ConnectionClosed):
            while True:
                received = json.loads(browser.recv(timeout=5.0))
                refused = received.get("refused", refused)
    assert why in refused
    assert not page.poll(SECOND + 1).live


@pytest.mark.parametrize("query", ["", "?token=guess"])
def test_a_stranger_without_the_token_is_refused(served, query):
    page = served(host="127.0.0.1", token="secret")
    for path in ("", "drive"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(address(page, path, query)).close()
    with connect(address(page, "drive", "?token=secret")) as browser:
        assert say(browser, page, SECOND).live


def test_the_page_of_another_site_may_not_drive(served):
    page = served()
    with pytest.raises(InvalidStatus, match="403"):
        connect(address(page), origin="http://elsewhere.example").close()


def test_beyond_this_computer_a_token_is_made_and_shown():
    text, line = DEVICE.completed("host: 0.0.0.0")
    options = DEVICE.read(text)
    assert len(options.token) >= 8
    assert options.token in line
    with pytest.raises(BidError, match="token is empty; valid is a token"):
        PageSettings(host="0.0.0.0")
    assert DEVICE.completed("port: 8001") == ("{port: 8001}\n", "drive with the page http://127.0.0.1:8001/")


def test_a_certificate_of_its_own_makes_the_page_secure_and_is_made_once(served, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    text, line = DEVICE.completed("{host: 0.0.0.0, certificate: self}")
    assert "https://" in line and "SHA-256" in line
    made = sorted(path.name for path in tmp_path.rglob("*.*"))
    assert len(made) == 2
    assert (tmp_path / "bid_ros" / "page" / made[1]).stat().st_mode & 0o77 == 0, "others could read the key"
    page = served(token=DEVICE.read(text).token, certificate="self")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "bid_ros" / "page" / made[0]))
    place = address(page, query=f"?token={DEVICE.read(text).token}").replace("ws:", "wss:")
    with connect(place, ssl=trusting) as browser:
        assert say(browser, page, SECOND).live
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == made


def test_a_port_in_use_is_one_sentence(served):
    page = served()
    port = page.place[1]
    with pytest.raises(BidError, match=f"the page cannot be served at 127.0.0.1 port {port}: Address already in use"):
        Page(PageSettings(port=port), TASK)


def test_what_a_slow_link_delivers_late_does_not_drive(served):
    """Only the page knows that a pad was let go; what it sent before is still on its way."""
    page = served()
    number = page._news(True)["number"]
    assert page._take(json.dumps({**FORWARD, "echo": number})) == "" and page.poll(page.clock()).live
    page.clock.now_ns += SECOND // 3  # within what silence and the time between two news allow
    page._take(json.dumps({**FORWARD, "echo": number}))
    assert page.poll(page.clock()).live
    page.clock.now_ns += SECOND // 3
    page._take(json.dumps({**FORWARD, "echo": number}))
    assert not page.poll(page.clock()).live, "it was sent two thirds of a second ago"
    page._take(json.dumps({**FORWARD, "echo": page._news(True)["number"]}))
    assert page.poll(page.clock()).live
    for _ in range(200):
        page._news(True)
    page.clock.now_ns += SECOND // 10
    page._take(json.dumps({**FORWARD, "echo": 1}))
    page.clock.now_ns += SECOND // 4
    page._take(json.dumps({**FORWARD, "echo": 1}))
    assert not page.poll(page.clock()).live, "news that nobody remembers is old"
