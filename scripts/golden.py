#!/usr/bin/env python3
"""Hold decisions and scores against a golden recording: what the software decided at an earlier commit.

    scripts/golden.py record test/golden     write decisions.npz and scores.json anew
    scripts/golden.py check test/golden      compare, one line for each case; exit status 1 where a choice differs

A case is a command that decides in one process: rehearsals of the shipped systems, Push-T with the shipped policies,
replays of one recorded episode of each robot, whose bags say what the live system decided.
Every decision counts: the index of the chosen sample and the chosen chunk, ``(H, D)`` float64. On the computer that
recorded, equal means equal in every bit. Another processor computes the networks with other instructions, so there the
values agree within ``--tolerance`` until a choice differs for the first time.
"""

import argparse
import io
import json
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.cli import main as bid
from bid_ros.policy.decide import DecisionMaker

SHORT = ["--episodes", "2", "--seed", "4100", "--json"]
PUSHT = ["--episodes", "2", "--seed", "4", "--steps", "60", "--workers", "1", "--json"]
CASES: dict[str, list[str]] = {
    **{
        f"{system} {decoder}": ["rehearse", system, "--decoder", decoder, *SHORT]
        for system, decoders in {
            "franka_place": ("bid+lead", "bid", "vanilla", "ema", "warmstart", "bid+ema", "keystone"),
            "ur5_pick": ("bid", "vanilla"),
            "config/joints/franka_place": ("bid",),
        }.items()
        for decoder in decoders
    },
    "pusht": ["bench", "pusht", "--decoder", "vanilla,ema,warmstart,bid,keystone", "--noise", "0,1", *PUSHT],
    "pusht paper": ["bench", "pusht", "--decoder", "bid", "--variant", "paper,reference_v1,reference_v2", *PUSHT],
    "pusht terms": ["bench", "pusht", "--decoder", "bid", "--terms", "backward,positive,negative,contrast", *PUSHT],
    **{
        f"bag of {bag}": ["replay", f"test/golden/bags/{bag}", "--system", system, *rest, "--json"]
        for bag, (system, *rest) in {
            "franka_place": ("franka_place",),
            "franka_place_joints": ("config/joints/franka_place",),
            "ur5_pick": ("ur5_pick",),
            "ros_pick": ("ur5_pick", "--bundle", "models/ur5_pick"),
        }.items()
    },
    "pusht_vqbet": ["bench", "pusht", "--bundle", "models/pusht_vqbet", "--decoder", "vanilla,bid", *PUSHT],
}
TIMES = ("_ms", "_s", "time", "wall", "took", "machine", "host", "version", "commit", "path", "folder")


class Recorder:
    """Keeps what :meth:`DecisionMaker.finish` returns while a command runs."""

    def __init__(self) -> None:
        self.indices: list[int] = []
        self.actions: list[np.ndarray] = []

    def run(self, arguments: list[str]) -> Any:
        """Run a command of ``bid`` and return what it printed as JSON."""
        original, output = DecisionMaker.finish, io.StringIO()

        def finish(maker: DecisionMaker, *given: Any, **named: Any) -> Any:
            record = original(maker, *given, **named)
            self.indices.append(-1 if record.choice.index is None else int(record.choice.index))
            self.actions.append(np.asarray(record.choice.actions, dtype=np.float64))
            return record

        DecisionMaker.finish = finish  # type: ignore[method-assign]
        try:
            with redirect_stdout(output), redirect_stderr(io.StringIO()):
                status = bid(arguments)
        finally:
            DecisionMaker.finish = original  # type: ignore[method-assign]
        if status:
            raise SystemExit(f"bid {' '.join(arguments)} ended with status {status}")
        return json.loads(output.getvalue())


def run_case(name: str, arguments: list[str]) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the indices ``(T,)``, the chunks ``(T, H, D)`` and the scores of a case."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        if arguments[0] == "bench":
            arguments = [*arguments, "--out", folder]
        scores = untimed(recorder.run(arguments))
    return np.array(recorder.indices), np.array(recorder.actions), scores


def untimed(value: Any) -> Any:
    """Leave out what differs from run to run: durations of the computation, and where it ran."""
    if isinstance(value, dict):
        return {key: untimed(item) for key, item in value.items() if not any(word in key for word in TIMES)}
    return [untimed(item) for item in value] if isinstance(value, list) else value


def known(found: Any, wanted: Any) -> Any:
    """Leave out what the golden recording does not have: a later version says more of an episode."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return {key: known(item, wanted[key]) for key, item in found.items() if key in wanted}
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        return [known(*pair) for pair in zip(found, wanted, strict=True)]
    return found


def record(folder: Path) -> int:
    """Write the golden recording of every case."""
    arrays: dict[str, np.ndarray] = {}
    scores: dict[str, Any] = {}
    for name, arguments in CASES.items():
        indices, actions, scores[name] = run_case(name, arguments)
        arrays[f"{name}: index"], arrays[f"{name}: actions"] = indices, actions
        print(f"{name}: {len(indices)} decisions", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "decisions.npz", **arrays)
    (folder / "scores.json").write_text(json.dumps(scores, indent=1) + "\n")
    return 0


def check(folder: Path, tolerance: float) -> int:
    """Run every case and compare it. Return 1 where an index, a value or a score differs."""
    golden, scores, status = np.load(folder / "decisions.npz"), json.loads((folder / "scores.json").read_text()), 0
    for name, arguments in CASES.items():
        indices, actions, found = run_case(name, arguments)
        wanted, chunks = golden[f"{name}: index"], golden[f"{name}: actions"]
        same_shape = actions.shape == chunks.shape
        largest = float(np.abs(actions - chunks).max()) if same_shape else float("inf")
        good = same_shape and np.array_equal(indices, wanted) and largest <= tolerance
        status |= not good
        bits = "bit for bit" if same_shape and np.array_equal(actions, chunks) else f"largest difference {largest:.3g}"
        told = "scores equal" if known(found, scores[name]) == scores[name] else "SCORES DIFFER"
        print(
            f"{'ok  ' if good else 'FAIL'} {name}: {len(indices)} of {len(wanted)} decisions, {bits}, {told}",
            flush=True,
        )
    return status


def main() -> int:
    """Record or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.0, help="largest difference of a value (default 0)")
    options = parser.parse_args()
    return record(options.folder) if options.what == "record" else check(options.folder, options.tolerance)


if __name__ == "__main__":
    sys.exit(main())
