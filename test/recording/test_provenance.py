"""What the metadata of a bag say about where it comes from."""

from __future__ import annotations

import json
import subprocess

import pytest

from bid_ros.recording.provenance import in_twin, provenance


def test_the_files_of_the_system_are_there_as_they_are_with_software_and_hardware(root):
    folder = root / "config" / "franka_place"
    found = provenance(folder / "task.yaml", {"robot_ip": "172.16.0.2", "device": "page"})
    for name in ("task.yaml", "robot.yaml", "cameras.yaml", "system.yaml", "nodes.yaml"):
        assert found[name] == (folder / name).read_text()
    software, hardware = json.loads(found["software"]), json.loads(found["hardware"])
    head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert head.returncode or head.stdout.startswith(software["commit"].rstrip("+"))
    assert {"bid_ros", "python", "os", "mcap"} <= software.keys() and all(software.values())
    assert (hardware["robot_ip"], hardware["device"]) == ("172.16.0.2", "page")
    assert hardware["cores"] >= 1 and hardware["memory_gb"] > 0.5 and hardware["cpu"]


def test_a_task_file_alone_is_enough(tmp_path):
    (tmp_path / "pusht.yaml").write_text("name: pusht\n")
    assert provenance(tmp_path / "pusht.yaml", {})["pusht.yaml"] == "name: pusht\n"


@pytest.mark.parametrize(
    ("custom", "twin"),
    [({}, True), ({"hardware": '{"twin": false}'}, False), ({"hardware": '{"twin": true}'}, True)],
)
def test_a_bag_says_whether_it_is_of_a_twin(custom, twin):
    assert in_twin(custom) is twin


@pytest.mark.parametrize("text", ["a Franka", "[]", "null"])
def test_what_another_program_wrote_says_nothing_of_a_twin(text):
    assert in_twin({"hardware": text})
