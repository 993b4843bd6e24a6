"""An image policy in LeRobot's layout that imitates the shipped bundle: imported, it places the object in lockstep.

``scripts/lerobot_franka.py`` made its weights and writes it.
"""

import importlib.util
from pathlib import Path

import pytest

from bid_ros.cli import main
from bid_ros.core.task import load_task
from bid_ros.episodes.rehearsal import Rehearsal
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy
from bid_ros.system.folder import find_system

ROOT = Path(__file__).resolve().parents[3]


def script():
    spec = importlib.util.spec_from_file_location("lerobot_franka", ROOT / "scripts" / "lerobot_franka.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_an_imported_image_policy_places_the_object(tmp_path):
    script().write(tmp_path)
    out = tmp_path / "bundle"
    options = ["--weak", str(tmp_path / "weak"), "--space", str(tmp_path / "space.yaml")]
    assert (
        main(["policy", "import", str(tmp_path / "strong"), "--task", "franka_place", "--out", str(out), *options]) == 0
    )
    system = find_system("franka_place")
    task = load_task(system.folder / "task.yaml")
    bundle = load_bundle(out, task)
    policy = load_policy(bundle, task, "onnx")
    assert policy.has_weak
    maker = DecisionMaker(policy, bundle_decoder("bid", bundle, task, 16, 1), task)
    rehearsal = Rehearsal(task, maker, system.stage())
    try:
        results = [rehearsal.run(index, 4800 + index, 0.0) for index in range(4)]
    finally:
        rehearsal.close()
    # It placed in 37 of 40 episodes of other seeds: fewer than 3 of 4 has a chance of 1 in 33 where it is not broken.
    assert sum(result.success for result in results) >= 3, results
