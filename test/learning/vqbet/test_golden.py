"""The same codes and chunks as LeRobot, from the same weights, observations and uniform numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation
from bid_ros.core.task import parse_task
from bid_ros.importing.lerobot.vqbet import load_lerobot
from bid_ros.learning.graphs import export_graph
from bid_ros.learning.vqbet.graphs import write_decoder
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.policy.registry import load_policy
from bid_ros.policy.vqbet.codes import CodeForecast, VqBetSettings, chunks_of, draw_codes

TASK = {
    "name": "golden",
    "robot": "none",
    "rate_hz": 10,
    "observation_steps": 5,
    "horizon": 9,
    "observation": [
        {"name": "image", "kind": "points", "shape": [64]},
        {"name": "state", "kind": "points", "shape": [2]},
    ],
    "action": [{"name": "target", "kind": "points", "shape": [2]}],
    "limits": {"workspace_min": [0, 0, 0], "workspace_max": [512, 512, 512]},
}


def given(golden) -> list[torch.Tensor]:
    return [torch.from_numpy(golden.numbers[name]) for name in ("rgb/features", "norm/observation.state")]


def test_tokens_and_outputs_are_equal(golden):
    numbers, network = golden.numbers, golden.network
    with torch.no_grad():
        np.testing.assert_allclose(network.tokens(given(golden)), numbers["tokens"], atol=2e-5)
        np.testing.assert_allclose(network(given(golden)), numbers["head_in"], atol=2e-5)


def test_every_code_and_chunk_is_equal(golden):
    numbers, network = golden.numbers, golden.network
    with torch.no_grad():
        outputs = network(given(golden))
        forecast = network.heads(outputs.flatten(0, 1))
        table = network.coder.decode(torch.cartesian_prod(torch.arange(16), torch.arange(16)))
    table = table.numpy().reshape(16, 16, 5, 2)
    np.testing.assert_allclose(table, numbers["decode_table"], atol=2e-5)
    logits = numbers["logits"].reshape(-1, 2, 16)
    np.testing.assert_allclose(forecast.primary, logits[:, 0], atol=2e-5)
    np.testing.assert_allclose(forecast.secondary, np.repeat(logits[:, 1:], 16, axis=1), atol=2e-5)
    uniforms = numbers["uniforms"].reshape(4, -1, 2)
    codes, chunks = numbers["codes"].reshape(4, -1, 2), numbers["predicted"].reshape(4, -1, 5, 2)
    for place in range(uniforms.shape[1]):
        one = CodeForecast(*(part[place].numpy() for part in forecast))
        drawn = draw_codes(one, golden.config.temperature, uniforms[:, place])
        np.testing.assert_array_equal(drawn, codes[:, place])
        np.testing.assert_allclose(chunks_of(drawn, table, one), chunks[:, place], atol=2e-5)


def test_chunks_have_the_same_codes(golden):
    numbers = golden.numbers
    with torch.no_grad():
        codes = golden.network.coder.encode(torch.from_numpy(numbers["encode/action"]))
        latent = golden.network.coder.quantiser.layers(codes).sum(dim=0)
    np.testing.assert_array_equal(codes, numbers["encode/codes"])
    np.testing.assert_allclose(latent, numbers["encode/quantised"], atol=2e-5)


class Given:
    """Uniform numbers in place of random ones."""

    def __init__(self, uniforms: np.ndarray) -> None:
        self.uniforms = uniforms

    def random(self, shape: tuple[int, int]) -> np.ndarray:
        assert shape == self.uniforms.shape
        return self.uniforms


class Newest(nn.Module):
    """The network from image features and state, each a token, to the forecast of the newest observation."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return self.network.heads(self.network([image[None], state[None]])[:, 4]).flat()


@pytest.fixture(scope="module")
def policy(golden, tmp_path_factory):
    """The network as a bundle."""
    folder, task, ranges = tmp_path_factory.mktemp("bundle"), parse_task(TASK), golden.statistics
    example = {"image": torch.zeros(5, 64), "state": torch.zeros(5, 2)}
    export_graph(Newest(golden.network), example, folder / "encoder.onnx", "forecast")
    write_decoder(golden.network.coder, folder / "decoder.onnx")

    def normaliser(name: str) -> LinearNormaliser:
        return LinearNormaliser(*(ranges[f"{name}.{end}"].numpy().astype(np.float64) for end in ("min", "max")))

    bundle = write_bundle_manifest(
        folder,
        task,
        name="golden",
        observation={
            "image": LinearNormaliser(-np.ones(64), np.ones(64)),
            "state": normaliser("observation.state"),
        },
        action=normaliser("action"),
        action_spread=[1.0, 1.0],
        settings=VqBetSettings(golden.config.codes, golden.config.temperature),
        graphs={"strong": {"encoder": "encoder.onnx", "decoder": "decoder.onnx"}},
        provenance={},
        family="vqbet",
    )
    return load_policy(bundle, task, "onnx")


def test_the_bundle_draws_the_same_chunks(golden, policy):
    numbers = golden.numbers
    for index in range(3):
        values = {"image": numbers["rgb/features"][index], "state": numbers["obs/observation.state"][index]}
        encoded = policy.encode(Observation(0, values))
        chunks, weak = policy.sample(encoded, 4, 0, Given(numbers["uniforms"][:, index, 4]))
        assert weak is None
        np.testing.assert_allclose(chunks[:, 4:], numbers["chunk_action"][:, index], atol=5e-3)  # of 512 px
        steps = np.diff(chunks, axis=1)
        np.testing.assert_allclose(steps[:, :4], np.repeat(steps[:, 4:5], 4, axis=1), atol=1e-9)


def test_weights_that_do_not_fit_are_refused(golden):
    weights = dict(golden.weights)
    del weights["vqbet.policy.lm_head.weight"]
    with pytest.raises(BidError, match=r"LeRobot's VQ-BeT do not fit: .*gpt.output.weight"):
        load_lerobot(golden.network, weights)
