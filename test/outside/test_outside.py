"""Packages that are not part of bid_ros: installed by pip, found by entry point, used as ``docs/extending.md`` says.

The page includes the packages' files. Its commands and its other blocks are executed here, as they stand there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from forked_bid import bid

from bid_ros.core.topics import EPISODE_EVENT, TOOL_POSE, body_topic, camera_topic
from bid_ros.policy.bundle import bundle_sha256
from bid_ros.recording.reader import BagReader

OUTSIDE = Path(__file__).resolve().parent
ROOT = OUTSIDE.parents[1]
PACKAGES = ("camera", "decoder", "device", "policy", "robot", "task")
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r'^```(?:[^\n]*title="([^\n"]*)")?[^\n]*\n(.*?)^```$', re.M | re.S)
BLOCKS = {title or body: body for title, body in BLOCK.findall(PAGE)}
COMMANDS = [line for block in BLOCKS.values() for line in block.splitlines() if line.startswith("bid ")]
BUILD = """
import os, sys
from setuptools.build_meta import build_wheel
for source in sys.argv[2:]:
    if not os.fork():  # setuptools builds one package in a process
        os.chdir(source)
        build_wheel(sys.argv[1])
        os._exit(0)
    assert os.wait()[1] == 0
"""
NAMES = """
from bid_ros.cameras.registry import CAMERAS
from bid_ros.decoding.registry import DECODERS_BY_NAME
from bid_ros.policy.registry import FAMILIES
from bid_ros.robots.registry import ROBOTS
from bid_ros.tasks.registry import TASKS
from bid_ros.teleop.base import DEVICES
print(*(registry.names()[-1] for registry in (CAMERAS, DECODERS_BY_NAME, DEVICES, FAMILIES, ROBOTS, TASKS)))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder into which pip has installed every package beside this file."""
    folder = tmp_path_factory.mktemp("outside")
    # A build writes beside its sources.
    for name in PACKAGES:
        shutil.copytree(OUTSIDE / name, folder / "sources" / name)
    # What pip itself runs for each package, in processes of its own: the hook of its build system (PEP 517).
    build = [sys.executable, "-c", BUILD, str(folder / "wheels")]
    subprocess.run([*build, *(folder / "sources" / name for name in PACKAGES)], check=True, capture_output=True)
    wheels = sorted((folder / "wheels").glob("*.whl"))
    assert len(wheels) == len(PACKAGES)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*command, "--target", str(folder / "site"), *wheels], check=True, capture_output=True, text=True)
    return folder / "site"


@pytest.fixture
def python(installed, ros_domain, tmp_path, monkeypatch):
    """Return a function that runs Python in a new folder, where the packages are installed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), str(ROOT)]))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60.0)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def typed(python):
    """Return a function that types a command of the page, and what else a test needs to look at its effect."""

    def run(command, *more, **options):
        assert command in COMMANDS, f"docs/extending.md does not say {command!r}"
        done = bid(*shlex.split(command)[1:], *more, **options)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_page_says_no_command_that_is_not_typed_here():
    assert COMMANDS and not [command for command in COMMANDS if f'"{command}"' not in Path(__file__).read_text()]


def test_every_package_is_found_by_its_entry_point(python):
    assert python("-c", NAMES).stdout.split() == ["pattern", "medoid", "udp_jog", "attractor", "gantry", "touching"]


def test_a_task_without_python(typed, tmp_path):
    typed("bid new my_task --robot franka")
    assert not list((tmp_path / "my_task").glob("*.py"))
    assert "fail" not in typed("bid check my_task")


def test_a_decoder_decides_in_a_rehearsal(typed):
    run = json.loads(typed("bid rehearse franka_place --decoder medoid --samples 5 --episodes 1 --seed 7", "--json"))
    assert (run["decoder"], run["samples"], run["episodes"]) == ("medoid", 5, 1)


def test_a_family_of_policies_decides_in_a_rehearsal(python, typed, tmp_path):
    made = python("-c", BLOCKS["make_bundle.py"])
    assert made.returncode == 0, made.stderr
    bundle = tmp_path / "attractor"
    assert yaml.safe_load((bundle / "bundle.yaml").read_text())["family"] == "attractor"
    command = "bid rehearse franka_place --bundle attractor --decoder medoid --samples 5 --episodes 1 --seed 7"
    run = json.loads(typed(command, "--json"))
    assert (run["decoder"], run["samples"]) == ("medoid", 5)
    assert run["bundle_sha256"][:8] == bundle_sha256(bundle)[:8]
    # The goal is above every cup: with the gripper closed, the arm waits there until the time is over.
    assert run["results"][0]["outcome"] == "timeout"


class Jogger:
    """Sends the device a velocity, fifty times a second, until it is stopped."""

    def __init__(self, *velocity):
        self._packet = struct.pack("<4d", *velocity, 0.08)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def _send(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not self._stopped.wait(0.02):
                sender.sendto(self._packet, ("127.0.0.1", 47007))

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()


def edit(path, change):
    """Lay a part over a YAML file, section by section."""
    content = yaml.safe_load(path.read_text())
    for name, value in change.items():
        content[name] = {**content.get(name, {}), **value} if isinstance(value, dict) else value
    path.write_text(yaml.safe_dump(content))


@pytest.fixture
def gantry(typed, tmp_path):
    """A new system for the robot of another package, in which silence means less: the computer may be busy."""
    typed("bid new my_gantry --robot gantry")
    deadlines = {name: {"ros__parameters": {"heartbeat_deadline_s": 2.0}} for name in ("arm", "safety")}
    edit(tmp_path / "my_gantry" / "nodes.yaml", deadlines)
    return tmp_path / "my_gantry"


@pytest.mark.timeout(240)
def test_a_robot_a_device_and_a_camera_run_in_a_new_system(typed, gantry, tmp_path):
    edit(gantry / "cameras.yaml", yaml.safe_load(BLOCKS["cameras.yaml"]))
    edit(gantry / "task.yaml", {"episode_timeout": 4.0})
    assert "64x48" in typed("bid check my_gantry")
    with Jogger(0.0, 0.04, 0.0):
        command = "bid up my_gantry --driver udp_jog --episodes 1 --seed 5 --out runs/jog"
        run = json.loads(typed(command, "--json", limit_s=150.0))
    assert (run["task"], run["episodes"], run["results"][0]["outcome"]) == ("my_gantry", 1, "not judged")
    with BagReader(tmp_path / "runs" / "jog" / "bag") as reader:
        frames = [reader.counts[reader.recorded_name(camera_topic(name))] for name in ("front", "hand")]
        start, end = (item.stamp_ns for item in list(reader.messages([EPISODE_EVENT]))[1:3])
        moved = [item.message.pose.position for item in reader.messages([TOOL_POSE], start, end)]
    assert min(frames) > 30
    # The device asks for 4 cm/s along y, and the gantry goes nowhere else.
    assert 0.1 < moved[-1].y - moved[0].y < 0.25
    assert abs(moved[-1].x - moved[0].x) < 0.005 and abs(moved[-1].z - moved[0].z) < 0.005
    assert (tmp_path / "runs" / "jog" / "run.gif").stat().st_size > 1000


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_kind_of_task_is_demonstrated_judged_and_recorded_in_the_twin(typed, gantry, tmp_path):
    edit(gantry / "task.yaml", yaml.safe_load(BLOCKS["task.yaml"]))
    command = "bid up my_gantry --driver scripted --styles straight --episodes 1 --seed 3 --out runs/touching"
    run = json.loads(typed(command, "--json", limit_s=150.0))
    assert run["results"][0]["outcome"] == "success" and run["successes"] == 1
    with BagReader(tmp_path / "runs" / "touching" / "bag") as reader:
        balls = [item.message.pose.position for item in reader.messages([body_topic("ball")])]
        tools = [item.message.pose.position for item in reader.messages([TOOL_POSE])]
    assert len(balls) > 30 and (balls[-1].x, balls[-1].y, balls[-1].z) != (0.0, 0.0, 0.0)
    assert max(abs(getattr(balls[-1], axis) - getattr(tools[-1], axis)) for axis in "xyz") < 0.03, "it was touched"
