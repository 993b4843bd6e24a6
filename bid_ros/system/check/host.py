"""Probes of the computer at a robot: the processor's governor, USB's sleep, and the network to the robot."""

import ipaddress
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bid_ros.system.check.finding import CheckFinding

GOVERNORS: Final = Path("/sys/devices/system/cpu")
AUTOSUSPEND: Final = Path("/sys/module/usbcore/parameters/autosuspend")
FASTEST: Final = "performance"


def host_findings(address: str) -> Iterator[CheckFinding]:
    """Yield what slows the computer at a robot down or cuts it off.

    Args:
        address: of the robot. A name, as of a robot that is driven through ROS, leads to no network.
    """
    yield governor_finding()
    yield usb_finding()
    if _is_ip(address):
        yield network_finding(address)


def governor_finding() -> CheckFinding:
    """Return whether the processor keeps its speed while nodes sleep between two messages."""
    files = sorted(GOVERNORS.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    others = sorted({file.read_text().strip() for file in files} - {FASTEST})
    if not files:
        return CheckFinding("governor", "ok", "the kernel scales no frequency")
    if others:
        return CheckFinding("governor", "warn", ", ".join(others), f"sudo cpupower frequency-set -g {FASTEST}")
    return CheckFinding("governor", "ok", f"{FASTEST}, {len(files)} processors")


def usb_finding() -> CheckFinding:
    """Return whether the kernel lets USB devices sleep, from which cameras and leader arms wake up late or never."""
    try:
        delay_s = int(AUTOSUSPEND.read_text())
    except (OSError, ValueError):
        return CheckFinding("USB", "ok", "the kernel has no USB")
    if delay_s < 0:
        return CheckFinding("USB", "ok", "devices do not sleep")
    advice = "echo -1 | sudo tee /sys/module/usbcore/parameters/autosuspend, or usbcore.autosuspend=-1 for the kernel"
    return CheckFinding("USB", "warn", f"devices may sleep after {delay_s} s", advice)


def network_finding(address: str) -> CheckFinding:
    """Return whether the robot has a network of its own, which nobody else's traffic delays."""
    if shutil.which("ip") is None:
        return CheckFinding("network", "warn", f"way to {address} unknown: no program ip", "apt-get install iproute2")
    way = _routes("get", address)
    if way is None:
        return CheckFinding("network", "warn", f"there is no way to {address}", "look at cable and address: ip route")
    device = str(way.get("dev", ""))
    shown = " ".join([address, "by", device, *(["through", str(way["gateway"])] if "gateway" in way else [])])
    if device == str((_routes("show", "default") or {}).get("dev")):
        advice = "give the robot a network card of its own: other traffic delays its packets"
        return CheckFinding("network", "warn", f"{shown}, as all other traffic", advice)
    if "gateway" in way:
        return CheckFinding("network", "warn", shown, "connect the robot directly, without a router")
    return CheckFinding("network", "ok", shown)


def _routes(*words: str) -> dict[str, Any] | None:
    """Return the first route that ``ip`` tells; None: it tells none."""
    try:
        told = subprocess.run(["ip", "-j", "route", *words], capture_output=True, text=True, timeout=5, check=False)
        routes = json.loads(told.stdout or "[]")
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return routes[0] if routes else None


def _is_ip(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True
