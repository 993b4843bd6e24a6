"""Which task a verb works for."""

import json

import pytest

from bid_ros.cli import main
from bid_ros.commands.tasks import recorded_task, task_of
from bid_ros.core.errors import BidError


def runs(folder, *names):
    """Folders of runs with a bag; a run without a name was killed and has no run.json."""
    bags = []
    for index, name in enumerate(names):
        bag = folder / f"run_{index}" / "bag"
        bag.mkdir(parents=True)
        (bag / "metadata.yaml").touch()
        if name is not None:
            (bag.parent / "run.json").write_text(json.dumps({"task": name}))
        bags.append(bag)
    return bags


def test_bags_are_of_the_task_that_their_runs_were_of_and_a_killed_run_is_of_the_others(tmp_path):
    assert recorded_task(runs(tmp_path, "ur5_pick", None, "ur5_pick")) == "ur5_pick"


@pytest.mark.parametrize("names", [(None,), (None, None)])
def test_bags_that_do_not_say_it_are_refused(tmp_path, names):
    with pytest.raises(BidError, match=r"which task was recorded; give it with --task"):
        recorded_task(runs(tmp_path, *names))


def test_bags_of_two_tasks_are_refused(tmp_path):
    with pytest.raises(BidError, match=r"'franka_place' \(.*run_1.*\) and 'ur5_pick' \(.*valid are bags of one task"):
        recorded_task(runs(tmp_path, "ur5_pick", "franka_place"))


def test_the_task_that_was_named_counts(root):
    assert task_of("franka_place", "ur5_pick", "data").name == "franka_place"
    assert task_of("", "ur5_pick", "data").name == "ur5_pick"
    assert task_of(str(root / "config" / "pusht.yaml"), "", "data").name == "pusht"


def test_data_of_a_task_that_is_not_shipped_ask_for_its_file():
    with pytest.raises(BidError, match=r"my\.npz is of the task 'pour_tea': .* was not found .*--task"):
        task_of("", "pour_tea", "my.npz")


@pytest.mark.parametrize("verb", ["data build", "episodes motion", "episodes video"])
def test_the_verbs_ask_for_the_task_when_nothing_says_it(tmp_path, capsys, verb):
    (bag,) = runs(tmp_path, None)
    out = [] if verb == "episodes motion" else ["--out", str(tmp_path / "file")]
    assert main([*verb.split(), str(bag), *out]) == 2
    assert "does not say which task was recorded; give it with --task" in capsys.readouterr().err


def test_a_folder_without_bags_is_refused(tmp_path, capsys):
    assert main(["data", "build", str(tmp_path), "--out", str(tmp_path / "file")]) == 2
    assert f"there is no bag in {tmp_path}" in capsys.readouterr().err


def test_a_data_set_of_bags_of_another_task_says_so(root, tmp_path, capsys):
    text = (root / "config" / "franka_place" / "task.yaml").read_text()
    (tmp_path / "task.yaml").write_text(text.replace("name: franka_place", "name: pour_tea", 1))
    bag, out = root / "test" / "golden" / "bags" / "franka_place", ["--out", str(tmp_path / "made.npz"), "--json"]
    assert main(["data", "build", str(bag), "--task", str(tmp_path / "task.yaml"), *out]) == 0
    printed = capsys.readouterr()
    said = "1 of 1 bags were recorded for task 'franka_place', and are read as task 'pour_tea'"
    assert f"read otherwise: {said}" in printed.err and json.loads(printed.out)["notes"] == [said]


def test_a_data_set_replaces_no_folder_and_no_file_of_another_kind(root, tmp_path, capsys):
    bag, notes = root / "test" / "golden" / "bags" / "franka_place", tmp_path / "notes.txt"
    notes.write_text("precious")
    for verb in (
        ["data", "build", str(bag), "--task", "franka_place", "--out"],
        ["demos", "franka_place", "--lockstep"],
    ):
        assert main([*verb, str(notes)]) == 2
        said = f"{notes} exists and is no data set of bid; valid is a new file, or one to replace"
        assert said in capsys.readouterr().err and notes.read_text() == "precious"
        assert main([*verb, str(tmp_path)]) == 2
        assert f"or one to replace, such as {tmp_path / 'dataset.npz'}" in capsys.readouterr().err
    build = ["data", "build", str(bag), "--task", "franka_place", "--out", str(tmp_path / "made.npz")]
    assert main(build) == 0 and main(build) == 0, "a data set is made again"


def test_the_video_of_one_episode_has_its_name_or_its_number(tmp_path, capsys):
    (bag,) = runs(tmp_path, "franka_place")
    out = ["--out", str(tmp_path / "a.gif")]
    assert main(["episodes", "video", f"{bag}:1", "--episode", "0", *out]) == 2
    assert "names episode 1 and --episode 0; valid is one of them" in capsys.readouterr().err
    assert main(["episodes", "video", f"{bag}:1", "--quality", "cameras", *out]) == 2
    assert "shows the whole bag, not episode 1; valid with it is another quality" in capsys.readouterr().err
