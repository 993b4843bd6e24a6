"""Clocks that jump: a shim before the C library moves CLOCK_REALTIME of one node, or of all."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final

from fault_campaign.fault import Fault, Robot, Scene
from fault_campaign.system import NODES, Plan

JUMPS_S: Final = (3600.0, -3600.0, 0.5, -0.5)
EVERYBODY: Final = "everybody"
_SHIM: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile double *ahead;
static int (*real)(clockid_t, struct timespec *);
__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("FAULT_CLOCK");
  int file = name ? open(name, O_RDONLY) : -1;
  void *place = file < 0 ? MAP_FAILED : mmap(0, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
  if (place != MAP_FAILED) ahead = place;
  if (file >= 0) close(file);
}
int clock_gettime(clockid_t id, struct timespec *t) {
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(id, t);
  if (!status && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    long long ns = t->tv_nsec + (long long)(*ahead * 1e9), s = ns / 1000000000;
    ns -= s * 1000000000;
    if (ns < 0) { ns += 1000000000; s -= 1; }
    t->tv_sec += s;
    t->tv_nsec = ns;
  }
  return status;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
"""


def missing() -> str:
    """Return one sentence if the shim cannot be made here."""
    return "" if shutil.which("cc") else "no C compiler (cc) is installed, so no clock can be moved; left out"


@cache
def shim() -> Path:
    """Compile the shim once; return its path."""
    folder = Path(tempfile.mkdtemp(prefix="fault_clock_"))
    (folder / "clock.c").write_text(_SHIM)
    library = folder / "clock.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, folder / "clock.c", "-ldl"], check=True)
    return library


def clocks() -> Iterator[Fault]:
    """Yield jumps of the clock of each node, and of all at once, as a time server makes them."""
    for part in (*NODES, EVERYBODY):
        for jump in JUMPS_S:
            yield Fault(
                f"clock-{part}{jump:+g}s",
                "clocks",
                f"clock of {part} jumps by {jump:+g} s",
                partial(_jump, jump),
                lambda _: None,
                prepare=partial(_preload, part),
                may_stop=True,
                missing=missing,
            )


def _file(plan: Plan) -> Path:
    return Path(plan.trace).with_name("clock")


def _preload(part: str, plan: Plan, _: Robot) -> None:
    _file(plan).write_bytes(struct.pack("d", 0.0))
    words = f"export LD_PRELOAD={shim()} FAULT_CLOCK={_file(plan)}; "
    for name in NODES if part == EVERYBODY else (part,):
        plan.before[name] = words + plan.before.get(name, "")


def _jump(seconds: float, scene: Scene) -> None:
    with _file(scene.system.plan).open("r+b") as file:  # in place: it is mapped
        file.write(struct.pack("d", seconds))
