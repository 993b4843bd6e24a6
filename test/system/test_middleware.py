import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bid_ros.core.errors import BidError
from bid_ros.system.middleware import PROFILES, ignored_settings, middleware_environment

# Publishes until its input ends. Says which shared memory of the middleware it has mapped, and the addresses of its UDP
# sockets, as in /proc/net/udp.
SPEAKER = """
import os, sys, threading
import rclpy
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node("speaker")
publisher = node.create_publisher(String, "/middleware_test", 10)
node.create_timer(0.02, lambda: publisher.publish(String(data="here")))
thread = threading.Thread(target=rclpy.spin, args=(node,), daemon=True)
thread.start()
sys.stdin.read()
print("shared" if "/dev/shm/fastrtps" in open("/proc/self/maps").read() else "none", flush=True)
files = {os.path.realpath(f"/proc/self/fd/{name}").rpartition(":")[2] for name in os.listdir("/proc/self/fd")}
sockets = [line.split() for line in open("/proc/net/udp")][1:]
print(*sorted({fields[1][:8] for fields in sockets if f"[{fields[9]}]" in files}), flush=True)
rclpy.try_shutdown()
"""
LISTENER = """
import sys, time
import rclpy
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node("listener")
heard = []
node.create_subscription(String, "/middleware_test", heard.append, 10)
end = time.monotonic() + 30.0
while not heard and time.monotonic() < end:
    rclpy.spin_once(node, timeout_sec=0.1)
print(heard[0].data if heard else "nothing", flush=True)
rclpy.try_shutdown()
"""


LOOPBACK, EVERY = "0100007F", "00000000"  # 127.0.0.1 and 0.0.0.0


def talk(speaker: dict[str, str], listener: dict[str, str]) -> tuple[str, str]:
    memory, _, heard = sockets_of(speaker, listener)
    return memory, heard


def sockets_of(speaker: dict[str, str], listener: dict[str, str]) -> tuple[str, set[str], str]:
    base = {name: value for name, value in os.environ.items() if name != "ROS_AUTOMATIC_DISCOVERY_RANGE"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    speaking = subprocess.Popen([sys.executable, "-c", SPEAKER], env={**base, **speaker}, **pipes)
    try:
        command = [sys.executable, "-c", LISTENER]
        heard = subprocess.run(command, env={**base, **listener}, capture_output=True, text=True, timeout=60)
        said, _ = speaking.communicate("", timeout=30)
    finally:
        speaking.kill()
    memory, addresses = said.splitlines()
    return memory, set(addresses.split()), heard.stdout.strip()


@pytest.mark.usefixtures("ros_domain")
def test_a_terminal_with_nothing_set_hears_nodes_without_shared_memory():
    assert talk(middleware_environment((), given={}), {}) == ("none", "here")


@pytest.mark.usefixtures("ros_domain")
def test_the_middleware_itself_would_take_shared_memory():
    assert talk({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, {}) == ("shared", "here")


@pytest.mark.usefixtures("ros_domain")
def test_nobody_outside_this_computer_reaches_the_sockets_of_a_system(tmp_path):
    local = middleware_environment(given={})
    assert sockets_of(local, local)[1:] == ({LOOPBACK}, "here")
    plain = tmp_path / "plain.xml"
    profile = Path(local["FASTRTPS_DEFAULT_PROFILES_FILE"]).read_text()
    plain.write_text("\n".join(line for line in profile.splitlines() if "interfaceWhiteList" not in line))
    assert EVERY in sockets_of(local | dict.fromkeys(PROFILES, str(plain)), local)[1], "without the list they are open"


def test_peers_and_our_addresses_towards_them_are_added_to_the_profile(tmp_path):
    variables = middleware_environment(("localhost", "127.0.0.9"), tmp_path, {})
    profile = Path(variables["FASTRTPS_DEFAULT_PROFILES_FILE"]).read_text()
    assert Path(variables["FASTRTPS_DEFAULT_PROFILES_FILE"]).parent == tmp_path
    assert re.findall(r"<udpv4><address>(.*?)<", profile) == ["127.0.0.1", "127.0.0.1", "127.0.0.9"]
    assert re.findall(r"<interfaceWhiteList>(.*)</interfaceWhiteList>", profile) == ["<address>127.0.0.1</address>"]


def test_a_peer_that_has_no_address_is_named(tmp_path):
    with pytest.raises(BidError, match=r"^peers names 'no\.such\.host\.invalid', which cannot be reached: .*; valid"):
        middleware_environment(("no.such.host.invalid",), tmp_path, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("own", [{"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, {"FASTRTPS_DEFAULT_PROFILES_FILE": "a"}])
def test_who_chose_a_middleware_or_wrote_profiles_keeps_them(own):
    local = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    assert middleware_environment(given=own) == local
    assert middleware_environment(("a", "b"), given=own) == local | {"ROS_STATIC_PEERS": "a;b"}


def test_the_profile_of_a_system_is_no_profile_of_ones_own():
    local = middleware_environment(given={})
    assert middleware_environment(given=local) == local
    assert ignored_settings(local) == []


def test_localhost_only_would_make_ros_ignore_the_range():
    assert middleware_environment(given={"ROS_LOCALHOST_ONLY": "1"})["ROS_LOCALHOST_ONLY"] == "0"
    assert "ROS_LOCALHOST_ONLY" not in middleware_environment(given={})


def test_variables_of_ros_that_the_nodes_do_not_follow_are_named():
    assert ignored_settings({}) == []
    given = {"ROS_LOCALHOST_ONLY": "1", "ROS_STATIC_PEERS": "10.0.0.2"}
    assert ignored_settings({"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}) == []
    said = ignored_settings(given)
    assert [sentence.split(":")[0] for sentence in said] == [
        "ROS_LOCALHOST_ONLY=1 is ignored",
        "ROS_STATIC_PEERS=10.0.0.2 is ignored",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"), *((name, "/home/me/profile.xml") for name in PROFILES)],
)
def test_a_middleware_or_profile_of_ones_own_is_kept_with_a_warning_that_the_graph_is_open(name, value):
    given = {name: value, "ROS_STATIC_PEERS": "10.0.0.2"}
    assert not set(PROFILES) & set(middleware_environment(given=given)), "it is kept"
    (said,) = ignored_settings(given)  # ROS's own variables are followed then
    assert said.startswith(f"{name}={value} is kept: its sockets are not kept on this computer")
    assert said.endswith("; valid is to unset it")
