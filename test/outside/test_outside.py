"""Packages that are not part of bid_ros: installed by pip, found by entry point, and used as a stranger would."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from bid_ros.core.topics import EPISODE_EVENT, TOOL_POSE, camera_topic
from bid_ros.policy.bundle import bundle_sha256
from bid_ros.recording.reader import BagReader

OUTSIDE = Path(__file__).resolve().parent
ROOT = OUTSIDE.parents[1]
PACKAGES = ("camera", "decoder", "device", "policy", "robot", "task")
BUNDLE = """
import sys
from pathlib import Path
import numpy as np
from bid_attractor import AttractorSettings, write_bundle
from bid_ros.core.rotation import DOWN_6D
from bid_ros.system.folder import find_system
goal = np.array([0.5, 0.0, 0.3, *DOWN_6D, 0.0])
write_bundle(Path(sys.argv[1]), find_system("franka_place").task, goal, AttractorSettings(rate=0.2, spread=0.1))
"""
NAMES = """
from bid_ros.cameras.registry import CAMERAS
from bid_ros.decoding.registry import DECODERS_BY_NAME
from bid_ros.policy.registry import FAMILIES
from bid_ros.robots.registry import ROBOTS
from bid_ros.tasks.registry import TASKS
from bid_ros.teleop.registry import DEVICES
print(*(registry.names()[-1] for registry in (CAMERAS, DECODERS_BY_NAME, DEVICES, FAMILIES, ROBOTS, TASKS)))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder into which pip has installed every package beside this file."""
    folder = tmp_path_factory.mktemp("outside")
    # A build writes beside its sources.
    for name in PACKAGES:
        shutil.copytree(OUTSIDE / name, folder / "sources" / name)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    sources = [str(folder / "sources" / name) for name in PACKAGES]
    subprocess.run([*command, "--target", str(folder / "site"), *sources], check=True, capture_output=True, text=True)
    return folder / "site"


@pytest.fixture
def python(installed, ros_domain):
    """Return a function that runs Python where the packages are installed."""
    path = os.pathsep.join([str(installed), str(ROOT)])

    def run(*arguments, limit_s=60.0):
        environment = {**os.environ, "PYTHONPATH": path}
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, env=environment)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def bid(python):
    return lambda *arguments, **options: python("-m", "bid_ros.cli", *arguments, **options)


def test_every_package_is_found_by_its_entry_point(python):
    assert python("-c", NAMES).stdout.split() == ["pattern", "medoid", "udp_jog", "attractor", "gantry", "touching"]


def test_a_decoder_and_a_family_of_policies_decide_in_a_rehearsal(python, bid, tmp_path):
    made = python("-c", BUNDLE, tmp_path / "bundle")
    assert made.returncode == 0, made.stderr
    assert yaml.safe_load((tmp_path / "bundle" / "bundle.yaml").read_text())["family"] == "attractor"
    command = f"rehearse franka_place --bundle {tmp_path / 'bundle'} --decoder medoid --samples 5 --episodes 1 --json"
    done = bid(*command.split(), "--seed", "7")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["decoder"], run["samples"], run["bundle_sha256"][:8]) == (
        "medoid",
        5,
        bundle_sha256(tmp_path / "bundle")[:8],
    )
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
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))


@pytest.fixture
def gantry(bid, tmp_path):
    """A new system for the robot of another package, in which silence means less: the computer may be busy."""
    system = tmp_path / "my_gantry"
    assert bid("new", system, "--robot", "gantry").returncode == 0
    deadlines = {name: {"ros__parameters": {"heartbeat_deadline_s": 2.0}} for name in ("arm", "safety")}
    edit(system / "nodes.yaml", lambda nodes: nodes.update(deadlines))
    return system


def run_of(bid, system, out, *arguments):
    done = bid("up", system, "--episodes", 1, "--out", out, "--json", *arguments, limit_s=150)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(240)
def test_a_robot_a_device_and_a_camera_run_in_a_new_system(bid, gantry, tmp_path):
    pattern = {"source": "pattern", "address": "64x48"}
    edit(gantry / "cameras.yaml", lambda cameras: cameras["hand"].update(twin=pattern))
    edit(gantry / "task.yaml", lambda task: task.update(episode_timeout=5.0))
    checked = bid("check", gantry)
    assert checked.returncode == 0 and "64x48" in checked.stdout, checked.stdout
    with Jogger(0.0, 0.04, 0.0):
        run = run_of(bid, gantry, tmp_path / "out", "--acts", "udp_jog", "--seed", 5)
    assert (run["task"], run["episodes"], run["results"][0]["outcome"]) == ("my_gantry", 1, "not judged")
    with BagReader(tmp_path / "out" / "bag") as reader:
        frames = [reader.counts[reader.recorded_name(camera_topic(name))] for name in ("front", "hand")]
        start, end = (item.stamp_ns for item in list(reader.messages([EPISODE_EVENT]))[1:3])
        moved = [item.message.pose.position for item in reader.messages([TOOL_POSE], start, end)]
    assert min(frames) > 30
    # The device asks for 4 cm/s along y, and the gantry goes nowhere else.
    assert 0.1 < moved[-1].y - moved[0].y < 0.25
    assert abs(moved[-1].x - moved[0].x) < 0.005 and abs(moved[-1].z - moved[0].z) < 0.005
    assert (tmp_path / "out" / "run.gif").stat().st_size > 1000


@pytest.mark.timeout(240)
def test_a_kind_of_task_is_demonstrated_and_judged_in_the_twin(bid, gantry, tmp_path):
    edit(gantry / "task.yaml", lambda task: task.update(kind="touching"))
    run = run_of(bid, gantry, tmp_path / "out", "--acts", "scripted", "--styles", "straight", "--seed", 3)
    assert run["results"][0]["outcome"] == "success" and run["successes"] == 1
