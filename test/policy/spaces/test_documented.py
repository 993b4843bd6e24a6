"""The examples of docs/reference/bundles.md are spaces of the tasks that they speak of."""

import re
from dataclasses import replace

import pytest
import yaml
from space_samples import PLACE, ROOT

from bid_ros.core.feature import Feature
from bid_ros.core.settings import parse_settings
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.policy import rows_of
from bid_ros.policy.spaces.view import network_task

PAGE = (ROOT / "docs" / "reference" / "bundles.md").read_text()
EXAMPLES = re.findall(r"```yaml\nspace:\n(.*?)```", PAGE, re.DOTALL)
JOINTS = replace(
    PLACE,
    observation=(*PLACE.cameras, Feature("joint_positions", "joints")),
    action=(Feature("joint_goal", "joints"),),
)


@pytest.mark.parametrize("example", EXAMPLES, ids=[text.strip().splitlines()[-1].strip()[:40] for text in EXAMPLES])
def test_every_example_fits_its_task(example):
    space = parse_settings(Space, yaml.safe_load(example), "space")
    task = JOINTS if "joint" in example else PLACE
    rows_of(space, task)
    assert network_task(space, task).action_dim == (7 if "joint" in example else network_task(space, task).action_dim)


def test_there_are_several():
    assert len(EXAMPLES) >= 6
