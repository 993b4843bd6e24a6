"""Probes of this computer: libraries, clock, real-time limits, network buffers, disk."""

import ctypes
import os
import platform
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Final

from bid_ros.policy.runtimes.registry import RUNTIMES, missing
from bid_ros.recording.provenance import installed_version
from bid_ros.system.check.finding import CheckFinding, least

RMEM: Final = Path("/proc/sys/net/core/rmem_max")
RMEM_NEEDED: Final = 4 << 20  # bytes; images of some hundred kilobytes do not fit the usual 200 kB
LOCKED_NEEDED: Final = 1 << 30  # bytes
DISK_WARN, DISK_FAIL = 5e9, 2e8  # bytes; a run with two small cameras writes about 40 MB a minute
FRANKY: Final = "franky-control"
OFFSET_WARN_S: Final = 0.005
_LIMITS: Final = "let a group of yours have {limit} in /etc/security/limits.d, then log in again"


def computer_findings(robot: bool, drivers: tuple[str, ...], out: Path) -> Iterator[CheckFinding]:
    """Yield what this computer is.

    Args:
        robot: whether a robot will be driven; a twin needs no real time.
        drivers: Python packages that robot or twin need, beside those that bid_ros requires.
        out: folder that runs are written to, or an ancestor of it.
    """
    yield _libraries(drivers)
    yield _runtimes()
    yield clock_finding(robot)
    yield from _real_time(robot, FRANKY in drivers)
    yield _buffers(robot)
    yield _disk(out)


def _libraries(drivers: tuple[str, ...]) -> CheckFinding:
    """Whether everything that the command bid requires is installed, and the drivers' versions."""
    required = requires("bid_ros") or () if installed_version("bid_ros") else ()
    own = [text for text in required if "extra ==" not in text or re.search(r"""extra == ["']run["']""", text)]
    names = [match.group() for text in own if (match := re.match(r"[\w.-]+", text))]
    missing = [name for name in (*names, *drivers) if not _is_there(name)]
    if missing:
        advice = f"pip install {' '.join(missing)}, unless another package manager brought them"
        return CheckFinding("libraries", "warn", f"pip knows no {', '.join(missing)}", advice)
    shown = ", ".join(f"{name} {installed_version(name)}" for name in ("bid_ros", "numpy", *drivers))
    return CheckFinding(
        "libraries", "ok", f"Python {platform.python_version()}, {shown}, {len(names)} required are there"
    )


def _is_there(name: str) -> bool:
    """Whether pip knows a package. The onnxruntime of GPUs is the same module, which the other would replace."""
    return any(map(installed_version, (name, "onnxruntime-gpu") if name == "onnxruntime" else (name,)))


def _runtimes() -> CheckFinding:
    """Which runtimes of networks can be used here, and what the others lack."""
    usable: list[str] = []
    lacks: dict[str, list[str]] = {}
    for name in RUNTIMES:
        problem = missing(name)
        (lacks.setdefault(problem, []) if problem else usable).append(name)
    rest = "".join(f"; {', '.join(names)}: {problem}" for problem, names in lacks.items())
    return CheckFinding("runtimes", "ok", f"{', '.join(usable)}{rest}")


def clock_finding(robot: bool) -> CheckFinding:
    """Return how well this computer's clock is kept: what chrony or PTP say, else the kernel."""
    advice = "synchronise all computers with chrony or PTP: stamps of other hosts are compared with this clock"
    for name, offset_s in (("chrony", _chrony_s()), ("PTP", _ptp_s())):
        if offset_s is not None:
            shown = f"{1e3 * offset_s:.3f} ms off by {name}"
            return least("clock", OFFSET_WARN_S, abs(offset_s), shown, advice)
    timex = (ctypes.c_long * 64)()  # longer than the kernel's struct: modes (padded), offset, freq, maxerror in us
    state = ctypes.CDLL(None).adjtimex(timex)
    if state != 5:  # TIME_ERROR
        return CheckFinding("clock", "ok", f"synchronised, largest error {timex[3] / 1e3:.1f} ms by the kernel")
    return CheckFinding("clock", "warn" if robot else "ok", "not synchronised", advice if robot else "")


def _chrony_s() -> float | None:
    fields = _output("chronyc", "-c", "tracking").split(",")
    # Of the 14 fields of `chronyc -c tracking` the fifth is the system time's offset, the last the leap status.
    return float(fields[4]) if len(fields) == 14 and fields[13] != "Not synchronised" else None


def _ptp_s() -> float | None:
    match = re.search(r"offsetFromMaster\s+(-?[\d.]+)", _output("pmc", "-u", "-b", "0", "GET CURRENT_DATA_SET"))
    return float(match.group(1)) / 1e9 if match else None


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):  # it is not installed, or says nothing
        return ""


def _real_time(robot: bool, franka: bool) -> Iterator[CheckFinding]:
    needed = 1 if robot else 0
    priority, locked = _limit(resource.RLIMIT_RTPRIO), _limit(resource.RLIMIT_MEMLOCK)
    shown = "unlimited" if locked == float("inf") else f"{locked / 1e6:.0f} MB"
    yield least("rtprio", priority, 80 * needed, f"{priority:g}", _LIMITS.format(limit="rtprio 99"))
    yield least("memlock", locked, LOCKED_NEEDED * needed, shown, _LIMITS.format(limit="memlock unlimited"))
    patched = Path("/sys/kernel/realtime").exists() or "PREEMPT_RT" in platform.version()
    kernel = f"{platform.release()}, {'PREEMPT_RT' if patched else 'no PREEMPT_RT'}"
    if robot and franka and not patched:  # its driver enforces one
        yield CheckFinding("kernel", "fail", kernel, "install a real-time kernel: without it the arm node ends")
    else:
        yield CheckFinding("kernel", "ok", kernel)


def _limit(which: int) -> float:
    soft, _ = resource.getrlimit(which)
    return float("inf") if soft == resource.RLIM_INFINITY else float(soft)


def _buffers(robot: bool) -> CheckFinding:
    value = int(RMEM.read_text()) if RMEM.exists() else 0
    advice = f"sudo sysctl net.core.rmem_max={RMEM_NEEDED}: large images are lost otherwise"
    return least("receive buffers", value, RMEM_NEEDED if robot else 0, f"rmem_max {value}", advice)


def _disk(out: Path) -> CheckFinding:
    folder = next(path for path in (out, *out.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    shown, advice = f"{free / 1e9:.1f} GB free at {folder}", "free some space, or write elsewhere with --out"
    if free < DISK_FAIL or not os.access(folder, os.W_OK):
        writable = "" if os.access(folder, os.W_OK) else ", not writable"
        return CheckFinding("disk", "fail", shown + writable, advice)
    return least("disk", free, DISK_WARN, shown, advice)
