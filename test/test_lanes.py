"""Which tests run side by side: every file has a kind, and every kind a worker."""

from __future__ import annotations

import pytest
from lanes import LOCKSTEP, LONGEST, SYSTEMS, TIMED, Kind, kind_of, kinds_for


@pytest.mark.parametrize("cores", [1, 2, 4, 7, 16])
def test_every_kind_has_a_worker_and_few_run_systems(cores):
    workers = [kinds_for(worker, cores) for worker in range(3 * cores // 2 or 1)]
    counts = {kind: sum(kinds[0] is kind for kinds in workers) for kind in Kind}
    assert counts[Kind.SYSTEM] == max(1, cores // 2)
    assert all(Kind.COMPUTING in kinds for kinds in workers), "whoever has nothing else computes"
    assert Kind.TIMED in workers[0], "alone, it runs everything"


def test_two_cores_run_a_system_and_a_node_beside_what_computes():
    firsts = [kinds_for(worker, 2)[0] for worker in range(3)]
    assert firsts == [Kind.SYSTEM, Kind.TIMED, Kind.COMPUTING]


def test_every_name_is_one_of_a_file_or_folder(root):
    for name in (*SYSTEMS, *TIMED, *LOCKSTEP, *LONGEST):
        assert (root / name).exists(), f"{name} is gone; its tests would run as others"


def test_kinds_of_tests():
    assert kind_of("test/nodes/test_cli.py::test_a_whole_run_in_the_twin") is Kind.SYSTEM
    assert kind_of("test/nodes/test_arm_node.py") is Kind.TIMED
    assert kind_of("test/robots/franka/test_lies.py::test_a_lie_at_rest_is_a_fault") is Kind.COMPUTING
    assert kind_of("test/core/test_task.py::test_one[a-b]") is Kind.COMPUTING
