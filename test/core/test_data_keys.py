"""The section data of a task file."""

from __future__ import annotations

import pytest

from bid_ros.core.data_keys import split_key
from bid_ros.core.errors import TaskError
from bid_ros.core.settings import read_yaml
from bid_ros.core.task import load_task, parse_task


@pytest.fixture
def content(root):
    return read_yaml(root / "config" / "pusht.yaml", "task file")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("observation.state", ("observation.state", None)),
        ("observation.state[0:3]", ("observation.state", (0, 1, 2))),
        ("obs/eef pos [4, 2]", ("obs/eef pos", (4, 2))),
        ("state[x.pos, y.pos]", ("state", ("x.pos", "y.pos"))),
    ],
)
def test_a_key_names_a_column_and_values(text, found):
    assert split_key(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has another form; valid are KEY"),
        ("state[", "has another form; valid are KEY"),
        ("state[1][2]", "has another form; valid are KEY"),
        ("state[3:3]", "names no column; valid is a range like 0:3"),
        ("state[1,,2]", "has an empty column"),
    ],
)
def test_a_key_of_another_form_is_refused(text, said):
    with pytest.raises(TaskError, match=said):
        split_key(text)


def test_the_keys_do_not_change_what_a_policy_is_for(content, root):
    plain = load_task(root / "config" / "pusht.yaml")
    keyed = parse_task(content | {"data": {"observation": {"agent_position": "state[0:2]"}}})
    assert keyed.data.observation == {"agent_position": "state[0:2]"}
    assert keyed.signature() == plain.signature()
    assert hash(keyed) != hash(plain)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"observation": {"wrist": "img"}},
            "observation names 'wrist', which the task lacks; valid are block_keypoints",
        ),
        ({"action": {"wrist": "img"}}, "action names 'wrist', which the task lacks; valid are agent_position"),
        ({"observation": {"agent_position": "state["}}, "has another form"),
        ({"observation": {"agent_position": 3}}, "data.observation.agent_position"),
        ({"keys": {}}, "unknown field 'keys'; valid are observation, action"),
    ],
)
def test_keys_of_nothing_are_refused(content, data, said):
    with pytest.raises(TaskError, match=said):
        parse_task(content | {"data": data})
