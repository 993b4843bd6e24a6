"""The code of the page "BID in your own loop", executed as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bid_ros import decoding
from bid_ros.decoding import BidConfig, select

torch = pytest.importorskip("torch")  # of the extra train, which not every Python of the suite has
theirs = pytest.importorskip("decoding.their_policies")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-loop.md"
SAMPLES, EPISODE = 16, 24  # steps
BLOCK = re.compile(r"```python\n(.*?)```", re.S)


def blocks(heading: str) -> list[str]:
    """Return the code of a section of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return BLOCK.findall(section)


def run(code: str, **names) -> dict:
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def chosen(drawn, environments: int, first: int, executed: int, weak=None) -> np.ndarray:
    """Return what is executed in each environment ``(E, decisions * executed, D)``, decided by `select` alone.

    ``first`` is the row of the newest observation; rows before it are of the past.
    """
    config, rows = BidConfig(executed=executed, observation_steps=first + 1), []
    for number in range(environments):
        left_over, own = None, []
        for index, chunks in enumerate(drawn):
            strong, weaker = (
                None if given is None else given.unflatten(0, (environments, -1))[number].numpy()
                for given in (chunks, None if weak is None else weak[index])
            )
            decision = strong[select(strong, weaker, left_over, config).index]
            left_over = decision[executed:]
            own.append(decision[first : first + executed])
        rows.append(np.concatenate(own))
    return np.stack(rows)


def switches(actions: np.ndarray) -> int:
    """How often actions ``(E, steps, D)`` change the side."""
    sides = actions[..., 0] > 0
    return int((sides[:, 1:] != sides[:, :-1]).sum())


def lerobot_rollout(policy, environments: int, steps: int = EPISODE) -> np.ndarray:
    """A loop as LeRobot's ``rollout``: a batch of observations in, an action of each environment out."""
    policy.reset()
    actions = []
    for step in range(steps):
        state = torch.full((environments, theirs.VALUES), float(step))
        action = policy.select_action({"observation.state": state, "task": ["go"] * environments, "index": 0})
        assert action.shape == (environments, theirs.VALUES)
        actions.append(action.numpy())
    return np.stack(actions, axis=1)


@pytest.mark.parametrize("environments", [1, 3])
def test_lerobot_s_loop(environments):
    definition, use = blocks("LeRobot: select_action")
    assert switches(lerobot_rollout(theirs.LeRobotDiffusion(), environments)) > 0
    policy = theirs.LeRobotDiffusion()
    run(definition + use, policy=policy)
    for _ in range(2):  # two episodes: nothing of the first is continued
        policy.modes.drawn.clear()
        actions = lerobot_rollout(policy, environments)
        assert switches(actions) == 0
        assert len(policy.modes.drawn) == EPISODE // 2 and len(policy.modes.drawn[0]) == SAMPLES * environments
        drawn = [chunks[:, theirs.PAST - 1 :] for chunks in policy.modes.drawn]
        np.testing.assert_array_equal(actions, chosen(drawn, environments, 0, 2))


def test_a_chunk_of_which_nothing_is_left_is_not_taken():
    policy = run(blocks("LeRobot: select_action")[0])["with_bid"](theirs.LeRobotDiffusion(), executed=4)
    with pytest.raises(AssertionError, match="nothing of a chunk is left"):
        lerobot_rollout(policy, 1)


def evaluation(policy, environments: int) -> np.ndarray:
    """A loop as that of Diffusion Policy's runners: chunks of actions in all environments until the episode ends."""
    policy.reset()
    actions, step = [], 0
    while step < EPISODE:
        seen = torch.zeros(environments, theirs.PAST, 4, dtype=policy.dtype, device=policy.device)
        with torch.no_grad():
            result = policy.predict_action({"obs": seen, "obs_mask": seen > 0.5})
        action = result["action"].detach().to("cpu").numpy()
        assert action.shape == (environments, policy.n_action_steps, theirs.VALUES)
        actions.append(action)
        step += action.shape[1]
    return np.concatenate(actions, axis=1)


@pytest.mark.parametrize("with_weak", [False, True])
def test_diffusion_policy_s_evaluation(with_weak):
    (definition,) = blocks("Diffusion Policy: evaluation")
    assert switches(evaluation(theirs.DiffusionPolicy(), 4)) > 0
    strong, weak = theirs.DiffusionPolicy(), theirs.DiffusionPolicy(1) if with_weak else None
    policy = run(definition)["BidPolicy"](strong, weak)
    for episode in (1, 2):
        for own in (strong, weak):
            if own is not None:
                own.modes.drawn.clear()
        actions = evaluation(policy, 4)
        assert strong.resets == episode and switches(actions) == 0
        wanted = chosen(strong.modes.drawn, 4, theirs.PAST - 1, 3, weak.modes.drawn if with_weak else None)
        np.testing.assert_array_equal(actions, wanted)


def openpi_loop(client, replan_steps: int = 5) -> np.ndarray:
    """A loop as that of openpi's examples: a plan of some actions of each answer."""
    plan, actions = [], []
    for _ in range(EPISODE):
        if not plan:
            plan = list(client.infer({"observation/state": np.zeros(theirs.VALUES), "prompt": "go"})["actions"])
            plan = plan[:replan_steps]
        actions.append(plan.pop(0))
    return np.stack(actions)[None]


def test_a_client_of_openpi():
    pytest.importorskip("openpi_client.base_policy", reason="openpi-client is not installed")
    definition, use = blocks("openpi: a client")
    assert switches(openpi_loop(theirs.OpenpiPolicy())) > 0
    asked = theirs.OpenpiPolicy()
    client = run(definition + use, WebsocketClientPolicy=lambda host, port: asked, host="gpu", port=8000)["client"]
    actions = openpi_loop(client)
    assert switches(actions) == 0 and asked.resets == 1
    drawn = [torch.cat(asked.modes.drawn[first : first + 8]) for first in range(0, len(asked.modes.drawn), 8)]
    np.testing.assert_array_equal(actions, chosen(drawn, 1, 0, 5)[:, :EPISODE])


def test_many_environments_at_once():
    strong, weak = torch.randn(2, 3, 8, 5, 2, generator=torch.Generator().manual_seed(0))
    left_over, was_reset = strong[:, 0, 1:], torch.tensor([False, True, False])
    names = run(*blocks("Many environments at once"), **vars(decoding), torch=torch, strong=strong, weak=weak,
                left_over=left_over, was_reset=was_reset)  # fmt: skip
    for number, decision in enumerate(names["chosen"]):
        before = None if was_reset[number] else left_over[number]
        assert torch.equal(decision, strong[number, select(strong[number], weak[number], before).index])


def test_another_decoder():
    modes = theirs.TwoModes(0, rows=16)
    given = {"stamp_ns": 0, "dt_ns": 100_000_000, "draw": lambda count: modes.draw(count).repeat(1, 1, 3)[..., :7]}
    names = run(*blocks("Other decoders"), **vars(decoding), **given)
    assert names["proposal"].strong == 16 and names["chunk"].shape == (16, 7)
