"""bid evaluate: which policy is evaluated, and as what."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bid_ros.cli import main
from bid_ros.commands.evaluate import _task_and_bundle
from bid_ros.policy.bundle import load_bundle

CONFIG = Path(__file__).resolve().parents[2] / "config"


@pytest.mark.parametrize("system", ["ur5_pick", "joints/ur5_pick"])
def test_a_system_s_policy_is_evaluated_on_the_task_that_it_was_made_for(system):
    """Where a system commands joints, its policy may predict poses of the tool."""
    task, folder, robot = _task_and_bundle(argparse.Namespace(system=str(CONFIG / system), bundle=""))
    assert task.name == "ur5_pick"
    assert load_bundle(folder, task).path == folder
    assert robot


def test_a_task_without_a_system_has_no_robot():
    assert not _task_and_bundle(argparse.Namespace(system="pusht", bundle=""))[2]


@pytest.mark.parametrize("samples", ["0", "257", "1000000000"])
def test_a_number_of_samples_that_no_policy_node_takes_is_one_sentence(tmp_path, capsys, samples):
    """Memory grows with it: 10^9 samples would fill it before anything is said."""
    assert main(["evaluate", "pusht", str(tmp_path), "--samples", samples, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"error: --samples is {samples}; valid is 1 to 256\n"
    assert not (tmp_path / "out").exists()
