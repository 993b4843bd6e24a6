"""A message of the page, read."""

import json

import numpy as np

from bid_ros.teleop.page_said import LONGEST_NAME, LONGEST_NOTE, read_said

FORWARD = {"live": True, "twist": [1, 0, 0, 0, 0, 0], "toggles": 0, "marks": 0, "mark": ""}


def test_what_an_older_page_does_not_say_is_nothing():
    said = read_said(json.dumps(FORWARD))
    assert (said.view, said.place, said.lean, said.gripper, said.note, said.echo) == ("", None, None, None, "", 0)
    np.testing.assert_array_equal(said.twist, [1, 0, 0, 0, 0, 0])


def test_long_texts_are_cut():
    said = read_said(json.dumps({**FORWARD, "view": "x" * 999, "note": "y" * 999}))
    assert (len(said.view), len(said.note)) == (LONGEST_NAME, LONGEST_NOTE)
