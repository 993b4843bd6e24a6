import json

import pytest

from bid_ros.system.ended import NOTE, Ended, forget_end, note_end, read_end


@pytest.mark.parametrize("ended", [Ended("arm", -9), Ended("policy", 1), Ended("twin", None)])
def test_a_note_is_read_again(tmp_path, ended):
    note_end(tmp_path, ended)
    assert read_end(tmp_path) == ended
    forget_end(tmp_path)
    assert read_end(tmp_path) is None
    forget_end(tmp_path)


@pytest.mark.parametrize("text", [None, "", "[]", "{", json.dumps({"name": "arm"})])
def test_no_note_and_a_damaged_one_say_nothing(tmp_path, text):
    if text is not None:
        (tmp_path / NOTE).parent.mkdir()
        (tmp_path / NOTE).write_text(text)
    assert read_end(tmp_path) is None


def test_a_folder_that_cannot_be_written_loses_the_note_alone(tmp_path):
    (tmp_path / "logs").write_text("a file")
    note_end(tmp_path, Ended("arm", 1))
    assert read_end(tmp_path) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [(1, "arm ended first (status 1)"), (-9, "arm ended first (status -9, killed by SIGKILL)"), (None, "arm hung")],
)
def test_it_names_the_node_and_its_exit_status(status, text):
    assert str(Ended("arm", status)) == text
