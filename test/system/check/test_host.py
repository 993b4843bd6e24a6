"""Probes of the computer at a robot: each reads what is there, from the files and the program that say it."""

from __future__ import annotations

import shutil
import stat

import pytest

from bid_ros.system.check import host
from bid_ros.system.check.computer import computer_findings
from bid_ros.system.check.host import governor_finding, host_findings, network_finding, usb_finding

ROUTES = """#!/bin/sh
case "$*" in
  "-j route show default") echo '[{"dst":"default","gateway":"10.0.0.1","dev":"eth0"}]';;
  "-j route get 172.16.0.2") echo '[{"dst":"172.16.0.2","dev":"eth1","prefsrc":"172.16.0.1"}]';;
  "-j route get 172.16.0.3") echo '[{"dst":"172.16.0.3","gateway":"172.16.0.9","dev":"eth1"}]';;
  "-j route get 10.0.0.7") echo '[{"dst":"10.0.0.7","dev":"eth0"}]';;
  *) echo "RTNETLINK answers: Network is unreachable" >&2; exit 2;;
esac
"""


@pytest.fixture
def routes(tmp_path, monkeypatch):
    program = tmp_path / "ip"
    program.write_text(ROUTES)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_page_on_the_computer_names_every_check_of_it(root, tmp_path):
    page = (root / "docs" / "how-to" / "host.md").read_text()
    names = {found.what for found in (*computer_findings(True, (), tmp_path), *host_findings("127.0.0.1"))}
    assert len(names) > 8 and not [name for name in names if f"`{name}`" not in page]


@pytest.mark.parametrize(
    ("address", "state", "shown"),
    [
        ("172.16.0.2", "ok", "172.16.0.2 by eth1"),
        ("172.16.0.3", "warn", "172.16.0.3 by eth1 through 172.16.0.9"),
        ("10.0.0.7", "warn", "10.0.0.7 by eth0, as all other traffic"),
        ("192.168.9.9", "warn", "there is no way to 192.168.9.9"),
    ],
)
def test_a_robot_wants_a_network_of_its_own(routes, address, state, shown):
    finding = network_finding(address)
    assert (finding.state, finding.measured) == (state, shown) and bool(finding.advice) == (state == "warn")


def test_a_computer_without_the_program_that_tells_its_routes_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = network_finding("172.16.0.2")
    assert (finding.state, finding.measured) == ("warn", "way to 172.16.0.2 unknown: no program ip")
    assert finding.advice == "apt-get install iproute2"


def test_this_computer_is_its_own_network_and_says_something_of_each():
    found = {finding.what: finding for finding in host_findings("127.0.0.1")}
    assert list(found) == ["governor", "USB", "network"]
    seen = "127.0.0.1 by lo" if shutil.which("ip") else "way to 127.0.0.1 unknown: no program ip"
    assert found["network"].measured == seen
    assert all(bool(finding.advice) == (finding.state != "ok") for finding in found.values())
    assert [finding.what for finding in host_findings("my_arm")] == ["governor", "USB"], "a name of a ROS driver"


@pytest.mark.parametrize(
    ("governors", "state", "shown"),
    [
        (["performance", "performance"], "ok", "performance, 2 processors"),
        (["performance", "powersave"], "warn", "powersave"),
        ([], "ok", "the kernel scales no frequency"),
    ],
)
def test_a_processor_that_saves_power_is_warned_of(tmp_path, monkeypatch, governors, state, shown):
    for number, governor in enumerate(governors):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
    monkeypatch.setattr(host, "GOVERNORS", tmp_path)
    finding = governor_finding()
    assert (finding.state, finding.measured) == (state, shown)


@pytest.mark.parametrize(
    ("text", "state", "shown"),
    [
        ("-1\n", "ok", "devices do not sleep"),
        ("2\n", "warn", "devices may sleep after 2 s"),
        (None, "ok", "the kernel has no USB"),
    ],
)
def test_usb_devices_that_may_sleep_are_warned_of(tmp_path, monkeypatch, text, state, shown):
    file = tmp_path / "autosuspend"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(host, "AUTOSUSPEND", file)
    finding = usb_finding()
    assert (finding.state, finding.measured) == (state, shown)
