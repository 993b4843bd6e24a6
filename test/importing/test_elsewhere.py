"""Checkpoints that are not rebuilt: `bid policy import` says for each type what to do."""

from __future__ import annotations

import json

import pytest

from bid_ros.cli import main

ASKED = "then a bundle asks it: bid remote HOST:8000 BUNDLE --task TASK --prompt TEXT --key FEATURE=NAME"
LEROBOT = "serve it from LeRobot's own environment in openpi's protocol, by the twenty lines of docs/how-to"


def lerobot(kind):
    return {"pretrained_model/config.json": json.dumps({"type": kind, "input_features": {}})}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (lerobot("smolvla"), ("of type smolvla (SmolVLA)", LEROBOT, ASKED, "speaks pickle, which runs code")),
        (lerobot("pi0"), ("of type pi0 (pi0)", LEROBOT, ASKED)),
        (lerobot("pi05"), ("of type pi05 (pi0.5)", LEROBOT, ASKED)),
        (lerobot("groot"), ("of type groot (GR00T)", LEROBOT, ASKED)),
        (lerobot("tdmpc"), ("of type tdmpc, which predicts one action and no chunk",)),
        ({"config.json": '{"model_type": "gr00t_n1_5"}'}, ("of Isaac GR00T (gr00t_n1_5)", ASKED, "speaks ZeroMQ")),
        ({"params/_METADATA": "", "assets/norm_stats.json": ""}, ("checkpoint of openpi", "--policy.dir=", ASKED)),
        ({"meta/info.json": "{}"}, ("is a data set of LeRobot, no policy: bid data info",)),
        ({"model.safetensors": "", "assets/norm_stats.json": ""}, ("checkpoint of openpi", "serve_policy.py", ASKED)),
    ],
)
def test_what_to_do_is_said_in_one_sentence(tmp_path, capsys, files, words):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert main(["policy", "import", str(tmp_path), "--task", "franka_place", "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}") and error.count("\n") == 1
    assert not [word for word in words if word not in error]
    assert not (tmp_path / "out").exists()


def test_another_type_is_told_of_it_too(kit, tmp_path, capsys):
    folder = kit.write_lerobot(tmp_path / "policy", config={"type": "new"})
    assert main(["policy", "import", str(folder), "--task", "franka_place", "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "type is 'new'; valid are" in error and "may run in their own environment" in error
