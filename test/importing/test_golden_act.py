"""ACT policies that lerobot 0.6.1 saved, through the exported bundle: chunks, roll-outs, and what may choose."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.core.errors import BidError, DecodingError
from bid_ros.core.observation import Observation
from bid_ros.importing.lerobot.reading import read_policy
from bid_ros.importing.policy import ImportOptions
from bid_ros.importing.write_bundle import write_imported
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.registry import load_policy

EXECUTED = {"act_state": 12, "act_no_vae": 5}  # rows of a chunk
TOLERANCE = 1e-4  # normalised units; the smallest wrong reading moves chunks by 3.3e-3


@pytest.fixture(scope="module")
def imported(golden, kit, tmp_path_factory):
    done = {}

    def case(name):
        if name not in done:
            found = golden(name)
            strong = read_policy(str(found.path / "policy"), ImportOptions())
            task = kit.task_for(strong)
            bundle = write_imported(strong, None, tmp_path_factory.mktemp("bundles") / name, task)
            policy = load_policy(bundle, task, "onnx")
            done[name] = SimpleNamespace(
                numbers=found.numbers, strong=strong, task=task, bundle=bundle, policy=policy, path=found.path
            )
        return done[name]

    return case


def observed(case, group, *at):
    """Return an observation of one step, of an index."""
    names = [item.name for item in case.strong.features]
    return Observation(0, {name: case.numbers[f"{group}{name}"][at][None] for name in names})


@pytest.mark.parametrize("name", EXECUTED)
def test_chunks_are_those_of_lerobot(imported, name):
    case = imported(name)
    for index in range(3):
        chunks, weak = case.policy.sample(case.policy.encode(observed(case, "obs/", index)), 1, 0, None)
        assert weak is None
        assert np.abs(case.bundle.action.normalise(chunks[0]) - case.numbers["chunk"][index]).max() < TOLERANCE
        wanted = case.numbers["chunk_action"]
        assert np.abs(chunks[0] - wanted[index]).max() < TOLERANCE * np.ptp(wanted)


@pytest.mark.parametrize("name", EXECUTED)
def test_a_roll_out_executes_the_rows_of_lerobot(imported, name):
    """The decision maker itself executes as many rows as LeRobot did, and decides when LeRobot did."""
    case = imported(name)
    actions, rows = case.numbers["rollout/action_norm"], EXECUTED[name]
    for robot in range(actions.shape[1]):
        maker = DecisionMaker(case.policy, bundle_decoder("vanilla", case.bundle, case.task, 16, rows), case.task)
        decided, start, chunk = [], 0, None
        for time in range(len(actions)):
            seen = observed(case, "rollout/", time, robot)
            record = maker.decide(Observation(time * case.task.dt_ns, seen.values))
            decided.append(record is not None)
            if record is not None:
                start, chunk = time, case.bundle.action.normalise(record.choice.actions)
            assert np.abs(chunk[time - start] - actions[time, robot]).max() < TOLERANCE
        np.testing.assert_array_equal(decided, case.numbers["rollout/decides"])


def test_one_chunk_leaves_nothing_to_choose(imported):
    case = imported("act_state")
    for name in ("bid", "bid+ema", "keystone"):
        with pytest.raises(DecodingError, match=r"deterministic: it has one chunk .* so N is 1; valid .* --also"):
            bundle_decoder(name, case.bundle, case.task, 16, 1)
    for name in ("vanilla", "ema", "ema:ensemble=0.01"):
        bundle_decoder(name, case.bundle, case.task, 16, 1)
    encoded = case.policy.encode(observed(case, "obs/", 0))
    with pytest.raises(DecodingError, match=r"2 samples were asked for; valid is up to 1: a policy of the family act"):
        case.policy.sample(encoded, 2, 0, None)


def test_what_does_not_fit_is_refused(imported, kit, tmp_path):
    case, out = imported("act_state"), tmp_path / "bundle"
    path = str(case.path / "policy")
    with pytest.raises(BidError, match="draws nothing; valid is neither a sampler nor sampling steps"):
        read_policy(path, ImportOptions(sampler="ddim"))
    with pytest.raises(BidError, match=r"draws no samples, so a weak policy has none .*; valid is --also"):
        write_imported(case.strong, case.strong, out, case.task)
    with pytest.raises(
        BidError, match=r"is no candidate beside .*act_state.*: its features is observation.state \(2,\)"
    ):
        write_imported(case.strong, None, out, case.task, also=[imported("act_no_vae").strong])
    unet = read_policy(str(kit.write_lerobot(tmp_path / "unet")), ImportOptions())
    with pytest.raises(BidError, match=r"draws its own candidates, so no other checkpoint can be one; valid .* --weak"):
        write_imported(unet, None, out, kit.task_for(unet), also=[unet])
    assert not out.exists()
