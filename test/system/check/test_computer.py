"""Probes of the computer: each reads what is really there, from the programs and files that say it."""

from __future__ import annotations

import stat

import pytest

from bid_ros.system.check.computer import clock_finding, computer_findings

CHRONY = (
    "A29FC801,162.159.200.1,3,1763800000.123456789,{offset},0.000001,0.00002,-12.3,0.001,0.01,0.01,0.0004,64.2,{leap}"
)
PTP = """sending: GET CURRENT_DATA_SET
\t001122.fffe.334455-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET
\t\tstepsRemoved     1
\t\toffsetFromMaster {offset}
\t\tmeanPathDelay    3456.0
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a program that prints a text first on the path, and nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\nwhile read line; do echo \"$line\"; done <<'END'\n{text}\nEND\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return make


@pytest.mark.parametrize(
    ("offset", "state", "shown"), [("0.000012345", "ok", "0.012 ms off by chrony"), ("-0.034", "warn", "-34.000 ms")]
)
def test_the_clock_is_as_far_off_as_chrony_says(program, offset, state, shown):
    program("chronyc", CHRONY.format(offset=offset, leap="Normal"))
    finding = clock_finding(robot=True)
    assert finding.state == state and shown in finding.measured and bool(finding.advice) == (state == "warn")


@pytest.mark.parametrize(("offset", "state"), [("-812.0", "ok"), ("7000000.0", "warn")])
def test_the_clock_is_as_far_off_as_ptp_says(program, offset, state):
    program("pmc", PTP.format(offset=offset))
    finding = clock_finding(robot=True)
    assert finding.state == state and "by PTP" in finding.measured


@pytest.mark.parametrize("text", ["506 Cannot talk to daemon", CHRONY.format(offset="0.0", leap="Not synchronised")])
def test_without_an_answer_of_chrony_the_kernel_is_asked(program, text):
    program("chronyc", text)
    finding = clock_finding(robot=True)
    assert "by the kernel" in finding.measured or (finding.measured, finding.state) == ("not synchronised", "warn")


def findings(robot, drivers=(), out=None):
    return {finding.what: finding for finding in computer_findings(robot, drivers, out)}


def test_every_probe_measures_something(tmp_path):
    found = findings(True, ("franky-control",), tmp_path / "not" / "yet")
    assert list(found) == ["libraries", "runtimes", "clock", "rtprio", "memlock", "kernel", "receive buffers", "disk"]
    assert "franky-control 2." in found["libraries"].measured and "Python 3." in found["libraries"].measured
    assert found["disk"].measured.endswith(f"GB free at {tmp_path}")
    assert all(finding.measured and bool(finding.advice) == (finding.state != "ok") for finding in found.values())


def test_a_twin_needs_no_real_time(tmp_path):
    found = findings(False, (), tmp_path)
    assert {found[name].state for name in ("clock", "rtprio", "memlock", "kernel", "receive buffers")} == {"ok"}


@pytest.mark.parametrize(
    ("robot", "driver", "version", "state"),
    [
        (True, "franky-control", "#1 SMP PREEMPT_DYNAMIC", "fail"),
        (True, "franky-control", "#1 SMP PREEMPT_RT", "ok"),
        (False, "franky-control", "#1 SMP PREEMPT_DYNAMIC", "ok"),
        (True, "ur-rtde", "#1 SMP PREEMPT_DYNAMIC", "ok"),
    ],
)
def test_only_a_franka_needs_a_real_time_kernel_and_it_does(tmp_path, monkeypatch, robot, driver, version, state):
    """A warning let a person go on to a run whose arm node then ended."""
    monkeypatch.setattr("platform.version", lambda: version)
    monkeypatch.setattr("pathlib.Path.exists", lambda self: self == tmp_path)
    assert findings(robot, (driver,), tmp_path)["kernel"].state == state


def test_limits_below_what_a_robot_needs_are_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda which: (0, 0))
    file = tmp_path / "rmem_max"
    file.write_text("212992\n")
    monkeypatch.setattr("bid_ros.system.check.computer.RMEM", file)
    found = findings(True, (), tmp_path)
    assert found["rtprio"].state == found["memlock"].state == found["receive buffers"].state == "warn"
    assert "rtprio 99" in found["rtprio"].advice and "rmem_max=4194304" in found["receive buffers"].advice


def test_a_library_that_is_missing_is_named_with_the_line_that_installs_it(tmp_path):
    finding = findings(False, ("no-such-driver",), tmp_path)["libraries"]
    assert finding.state == "warn" and "no-such-driver" in finding.measured
    assert finding.advice.startswith("pip install no-such-driver")


@pytest.mark.parametrize(("free", "state"), [(1e8, "fail"), (1e9, "warn"), (1e11, "ok")])
def test_a_full_disk_fails(tmp_path, monkeypatch, free, state):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": free}))
    assert findings(False, (), tmp_path)["disk"].state == state


def test_what_the_command_needs_is_required_and_other_extras_are_not(monkeypatch, tmp_path):
    lines = ["numpy", 'scipy; extra == "run"', "absent-one; extra == 'run'", 'absent-two; extra == "view"']
    monkeypatch.setattr("bid_ros.system.check.computer.requires", lambda _: lines)
    finding = findings(False, (), tmp_path)["libraries"]
    assert (finding.state, finding.measured) == ("warn", "pip knows no absent-one")


@pytest.mark.parametrize(("installed", "state"), [({"bid_ros", "onnxruntime-gpu"}, "ok"), ({"bid_ros"}, "warn")])
def test_the_onnxruntime_of_gpus_is_an_onnxruntime(monkeypatch, tmp_path, installed, state):
    """Whoever installed the other one beside it, as the advice said, had lost the GPU."""
    monkeypatch.setattr("bid_ros.system.check.computer.requires", lambda _: ['onnxruntime; extra == "run"'])
    monkeypatch.setattr("bid_ros.system.check.computer.installed_version", lambda name: "1" * (name in installed))
    assert findings(False, (), tmp_path)["libraries"].state == state
