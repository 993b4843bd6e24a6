"""The installation into ROS 2 Jazzy by one script.

A virtual environment stands in for ROS: Jazzy's Python 3.12, ROS's wheels and Ubuntu 24.04's versions of packages. The
steps that need Debian packages and the network of rosdep are only shown.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "install_ros.sh"
ACTING = ("arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin")
NODES = sorted((*ACTING, "replay", "replay_policy"))
Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


def install(folder: Path, *arguments: str, distro: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ROS_DISTRO": distro}
    return subprocess.run([SCRIPT, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=20)


def test_a_dry_run_shows_every_step_and_takes_none(tmp_path):
    done = install(tmp_path, "--dry-run", distro="jazzy")
    assert done.returncode == 0, done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith("+ ")]
    wanted = ["apt-get update", "apt-get install", "rosdep update", "rosdep install"]
    wanted += ["-m venv --system-site-packages", "overlay/bin/python -m pip install", "colcon build"]
    found = [word for line in steps for word in wanted if word in line]
    assert found == wanted
    assert f"-r {ROOT}/requirements/ros.lock" in done.stdout
    assert "--skip-keys python3-mujoco-pip python3-onnxruntime-pip python3-rosbags-pip" in done.stdout
    assert not re.search("break-system-packages|ignore-installed", done.stdout)
    assert not list(tmp_path.iterdir())


def test_without_the_debian_packages_no_step_asks_for_root(tmp_path):
    done = install(tmp_path, "--dry-run", "--no-apt", distro="jazzy")
    assert not re.search("apt-get|rosdep|sudo", done.stdout)


def test_an_image_gets_the_dependencies_before_the_sources(tmp_path):
    done = install(tmp_path, "--dry-run", "--dependencies", distro="jazzy")
    assert done.returncode == 0, done.stderr
    assert "rosdep install" in done.stdout and "pip install" in done.stdout and "colcon" not in done.stdout
    image = (ROOT / "docker" / "Dockerfile").read_text()
    assert image.index("--dependencies") < image.index("COPY . ") < image.index("--no-apt")


@pytest.mark.parametrize(
    ("arguments", "distro", "sentence"),
    [
        ((), "humble", "error: ROS_DISTRO is 'humble'; valid is jazzy"),
        (
            ("--dryrun",),
            "jazzy",
            "error: argument '--dryrun' does not exist; valid are --dry-run, --no-apt and --dependencies",
        ),
    ],
)
def test_what_is_not_valid_is_refused_before_the_first_step(tmp_path, arguments, distro, sentence):
    done = install(tmp_path, *arguments, distro=distro)
    assert done.returncode == 2
    assert not done.stdout
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == 1


def test_the_guide_and_the_image_use_the_script():
    for file in ("docs/how-to/ros-installation.md", "docker/Dockerfile"):
        text = (ROOT / file).read_text()
        assert "scripts/install_ros.sh" in text
        assert "pip install --break" not in text


@pytest.fixture(scope="module")
def ros(tmp_path_factory) -> Path:
    """A virtual environment with what an installation of ROS 2 Jazzy on Ubuntu 24.04 has."""
    found = subprocess.run([ROOT / "scripts/find_python.sh", "3.12"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip("Python 3.12, which Jazzy has, is not installed")
    venv = tmp_path_factory.mktemp("ros") / "venv"
    subprocess.run([found.stdout.strip(), "-m", "venv", venv], check=True)
    ubuntu = lines("noble.txt")
    missing = names(ubuntu) | names(lines("ros.lock"))
    from_ros = [line for line in {*lines("run.lock"), *lines("develop.lock")} if not names([line]) & missing]
    lock = venv / "ros.txt"
    lock.write_text("\n".join([*ubuntu, *from_ros]))
    command = [
        ROOT / "scripts/uv.sh",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--python",
        venv / "bin/python",
        "-r",
        lock,
    ]
    subprocess.run(command, env={**os.environ, "PYTHON": str(venv / "bin/python")}, check=True)
    subprocess.run([ROOT / "scripts/repair_wheels.sh", venv], check=True)
    for package in ("tf2_msgs", "control_msgs", "controller_manager_msgs"):
        if build := compiled(package):
            subprocess.run(["cmake", "--install", build, "--prefix", venv], check=True, stdout=subprocess.DEVNULL)
        else:
            subprocess.run([ROOT / "scripts/build_package.sh", venv, ROOT / "scripts" / package], check=True)
    return venv


def compiled(package: str) -> Path | None:
    """Return where messages that ROS brings were compiled for the environment of these tests, if that fits ROS."""
    sum_of_path = subprocess.run(["cksum"], input=f"{sys.prefix}\n", capture_output=True, text=True).stdout.split()[0]
    build = ROOT / ".build" / f"{package}-{sum_of_path}"
    return build if sys.version_info[:2] == (3, 12) and build.is_dir() else None


@pytest.fixture(scope="module")
def shell(ros, tmp_path_factory) -> Shell:
    """Run a line in the workspace, after the script has installed and built there."""
    workspace = tmp_path_factory.mktemp("workspace")
    # The last one says that the wheels' libraries are on the path already, which holds for this process alone.
    removed = ("PYTHONPATH", "COLCON_PREFIX_PATH", "_ROS_WHEELS_BOOTSTRAP_COMPLETE")
    env = {name: value for name, value in os.environ.items() if name not in removed}
    env |= {"ROS_DISTRO": "jazzy", "VIRTUAL_ENV": str(ros), "PATH": f"{ros}/bin:/usr/bin:/bin"}
    env |= {"AMENT_PREFIX_PATH": str(ros), "CMAKE_PREFIX_PATH": str(ros), "LD_LIBRARY_PATH": f"{ros}/lib"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", line], cwd=workspace, env=env, capture_output=True, text=True, timeout=800)

    before = packages(run)
    done = run(f"'{SCRIPT}' --no-apt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert packages(run) == before, "ROS's own Python is left as it was"
    return run


def packages(run: Shell) -> str:
    """What is installed in the Python that stands for that of the ROS installation."""
    return run('ls "$VIRTUAL_ENV"/lib/python3.12/site-packages').stdout


def lines(file: str) -> list[str]:
    text = (ROOT / "requirements" / file).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def names(requirements: list[str]) -> set[str]:
    return {re.split("[<>= ;]", line)[0] for line in requirements}


@pytest.mark.installation
@pytest.mark.timeout(900)
def test_after_the_installation_bid_is_on_the_path(shell):
    done = shell("source install/setup.bash && command -v bid && bid --help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("/workspace0/install/bid_ros/bin/bid")
    assert "usage: bid" in done.stdout


@pytest.mark.installation
@pytest.mark.timeout(900)
def test_nodes_are_where_ros2_run_and_launch_look_for_them(shell):
    """Both take the executables of ``lib/PACKAGE`` below the prefix that has the package's marker."""
    prefix = "install/bid_ros"
    assert shell(f"test -e {prefix}/share/ament_index/resource_index/packages/bid_ros").returncode == 0
    found = shell(f"find {prefix}/lib/bid_ros -type f -executable -printf '%f\\n'").stdout.split()
    assert sorted(found) == [f"{name}_node" for name in NODES]
    done = shell(f"source install/setup.bash && {prefix}/lib/bid_ros/policy_node")
    assert done.returncode == 2
    assert re.search("error: .*task", done.stderr), done.stderr


@pytest.mark.installation
@pytest.mark.timeout(900)
def test_a_plain_shell_finds_what_only_pypi_has(shell):
    """`ros2 launch` runs in ROS's own Python, and the launch file in it reads the system's folder with pydantic."""
    code = "import pydantic, bid_ros.system.description, websockets.sync; print(pydantic.__file__, pydantic.VERSION)"
    assert shell(f"python3 -c '{code}'").returncode, "nothing is found without the workspace"
    done = shell(f"source install/setup.bash && python3 -c '{code}'")
    assert done.returncode == 0, done.stderr
    where, version = done.stdout.split()
    assert "/install/bid_ros/overlay/lib/python3.12/site-packages/" in where and version.startswith("2.")
    executable = shell("source install/setup.bash && head -1 $(command -v bid)").stdout
    assert "overlay" not in executable, "the scripts run in ROS's own Python, as ros2 launch does"


@pytest.mark.installation
@pytest.mark.timeout(900)
def test_a_second_build_keeps_the_packages_of_pypi(shell):
    done = shell(
        f"colcon build --base-paths '{ROOT}' --packages-select bid_ros && source install/setup.bash && bid --help"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.installation
@pytest.mark.timeout(900)
def test_the_distribution_keeps_its_packages(shell):
    versions = dict(line.split("==") for line in lines("noble.txt"))
    done = shell("python -c 'import numpy, yaml; print(numpy.__version__, yaml.__version__)'")
    assert done.stdout.split() == [versions["numpy"], versions["pyyaml"]]


@pytest.mark.installation
@pytest.mark.timeout(900)
def test_shared_files_are_found_in_the_installation(shell):
    done = shell(
        "source install/setup.bash && bid rehearse franka_place --episodes 1 --seed 7 --out rehearsal && ls rehearsal"
    )
    assert done.returncode == 0, done.stderr
    assert "run.json" in done.stdout
