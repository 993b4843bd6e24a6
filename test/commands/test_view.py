"""`bid view` and `bid top` from the command line: recordings, and bad input."""

from __future__ import annotations

import pytest
from recording.conftest import kit, make_run, task  # noqa: F401
from rerun.chunk import RrdReader

from bid_ros.cli import main
from bid_ros.commands.view import is_system
from bid_ros.core.extras import install_line


@pytest.fixture
def run_folder(make_run, tmp_path):  # noqa: F811
    folder = tmp_path / "run"
    make_run(episodes=2, seconds=1.0).write(folder / "bag")
    (folder / "run.json").write_text('{"task": "franka_place"}')
    return folder


def entities(path) -> set[str]:
    return {chunk.entity_path for chunk in RrdReader(path).stream()}


def test_a_recording_becomes_a_file_of_rerun(run_folder, tmp_path, capsys):
    assert main(["view", str(run_folder), "--save", str(tmp_path / "run.rrd")]) == 0
    assert "wrote" in capsys.readouterr().err
    assert {"/space/trail", "/camera/wrist", "/camera/third_person", "/notes"} <= entities(tmp_path / "run.rrd")


def test_an_episode_is_shorter_than_the_recording(run_folder, tmp_path, capsys):
    counts = []
    for source in (run_folder, f"{run_folder}:1"):
        assert main(["view", str(source), "--save", str(tmp_path / "run.rrd")]) == 0
        counts.append(int(capsys.readouterr().err.split()[1]))
    assert 0 < counts[1] < 0.7 * counts[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["view", "no_such_thing"], "'no_such_thing' is neither a system nor a recording"),
        (["view", "franka_place", "--web", "--save", "x.rrd"], "--save and --web are given; valid is one of them"),
        (["view", "franka_place", "--web", "--port", "80"], "--port is 80; valid is 1024 to 65534"),
        (["view", "franka_place", "--save", "x.mcap"], "valid is a name that ends in .rrd"),
        (["top", "no_such_thing"], "system 'no_such_thing' does not exist"),
        (["top", "franka_place", "--seconds", "0"], "--seconds is 0; valid is 0.1 to 3600"),
        (["top", "franka_place", "--namespace", "a b"], "namespace is 'a b'"),
        (["top", "franka_place"], "standard output is no terminal"),
    ],
)
def test_bad_input_is_one_sentence(words, said, capsys):
    assert main(words) == 2
    errors = capsys.readouterr().err
    assert said in errors and len(errors.strip().splitlines()) == 1


def test_an_episode_that_is_not_there_leaves_no_file(run_folder, tmp_path, capsys):
    assert main(["view", f"{run_folder}:7", "--save", str(tmp_path / "run.rrd")]) == 2
    assert "has no episode 7" in capsys.readouterr().err
    assert not (tmp_path / "run.rrd").exists()


def test_a_folder_in_the_way_is_no_shipped_system(tmp_path, monkeypatch):
    assert is_system("franka_place")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "franka_place").mkdir()
    assert not is_system("franka_place")


@pytest.mark.parametrize("module", ["rerun", "textual"])
def test_a_missing_extra_is_one_sentence(module, tmp_path):
    import subprocess
    import sys

    views = {"rerun": "rerun_view", "textual": "top_screen"}
    script = f"import sys; sys.modules['{module}'] = None\nimport bid_ros.views.{views[module]}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "needs the extra 'view'" in done.stderr
    assert install_line("view") in done.stderr, "the line that works here: in a checkout, make"
