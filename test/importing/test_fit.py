"""How many samples and steps fit: times of a bundle, counted operations, and the line that a person reads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bid_ros.importing.fit import Fit, gflop
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions


def fit(decision_ms, **changes):
    given = {"runtime": "openvino", "weak": False, "steps": 10, "divided": 0, "option": "--sampling-steps"}
    given |= {"samples": max(decision_ms), "budget_ms": 45.0, "encode_ms": 5.0, "gflop": 480.0}
    return Fit(**{**given, "decision_ms": decision_ms, **changes})


@pytest.mark.parametrize(
    ("found", "fitting", "fewer", "said"),
    [
        (fit({16: 40.0}), 16, (0, 0), "takes 40 ms here (openvino, one thread), which fits the 45 ms"),
        (fit({16: 105.0, 8: 60.0, 4: 44.0}), 4, (16, 4), "fit N = 4 in 10 steps or N = 16 in 4 steps (--sampling"),
        (fit({16: 105.0, 8: 44.0}, divided=25), 8, (16, 1), "N = 8 in 10 steps or N = 16 in 1 step (--sampling"),
        (
            fit({16: 3005.0, 8: 1905.0, 4: 1405.0, 1: 905.0}),
            0,
            (0, 0),
            "not even N = 1 in one step. All of it needs 67 ",
        ),
        (fit({16: 1005.0, 8: 505.0, 4: 405.0, 1: 305.0}), 0, (4, 1), "fit N = 4 in 1 step (--sampling-steps 1)"),
        (fit({16: 90.0, 8: 90.0, 4: 90.0, 1: 90.0}, steps=0), 0, (0, 0), "fit not even N = 1. All of it needs 2 times"),
        (fit({1: 10.0}, steps=0), 1, (0, 0), "a decision of N = 1 takes 10 ms here"),
        (fit({16: 40.0}, weak=True), 16, (0, 0), "a decision of N = 16 + 16 weak in 10 steps takes"),
        (fit({16: 90.0, 8: 44.0}), 8, (16, 4), "480 GFLOP take 48 ms or more on a GPU that keeps up 10 TF"),
    ],
)
def test_a_line_says_what_fits(found, fitting, fewer, said):
    assert (found.fitting, found.fewer_steps()) == (fitting, fewer)
    assert said in found.sentence() and "\n" not in found.sentence()


def test_operations_are_counted_for_all_samples_and_steps(kit, tmp_path):
    """A step of a sample costs the same each time, and the encoder runs once."""
    counts = {}
    for steps in (2, 4):
        options = ImportOptions(sampling_steps=steps)
        policy = read_policy(str(kit.write_lerobot(tmp_path / f"{steps}")), options)
        counts[steps] = [gflop(policy, samples) for samples in (0, 1, 16)]
    none, one, many = counts[2]
    assert 0 <= none < one and many - none == pytest.approx(16 * (one - none))
    assert counts[4][1] - none == pytest.approx(2 * (one - none))


def test_operations_are_counted_without_triton(tmp_path):
    """Its import crashed a process that had drawn pictures: Mesa brings an LLVM of its own."""
    (tmp_path / "triton.py").write_text("raise SystemExit('triton was imported')")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from bid_ros.importing.fit import flop_counter\n"
        "assert flop_counter().__name__ == 'FlopCounterMode' and 'triton' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
