"""The transformer of type ``multi_task_dit`` without rotations, against layers of PyTorch."""

import math

import pytest
import torch
from torch import nn

from bid_ros.importing.networks.transformer import DiffusionTransformer

SIZE, HEADS, ROWS, COLUMNS, CONDITION, EMBEDDING = 16, 2, 8, 3, 5, 8


def made(times, positions):
    torch.manual_seed(0)
    network = DiffusionTransformer(
        COLUMNS, ROWS, CONDITION, SIZE, 2, HEADS, EMBEDDING, False, 10000.0, positions, times
    ).eval()
    for value in network.parameters():
        nn.init.normal_(value, std=0.3)
    return network


def expected(network, sample, time, condition):
    """Compute one prediction for each sample on its own, with PyTorch's attention (Peebles & Xie 2023, Figure 3)."""
    half = EMBEDDING // 2
    angles = time * torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
    embedded = network.time_mlp[1:](torch.cat([angles.sin(), angles.cos()]))
    context = nn.functional.silu(torch.cat([embedded, condition]))
    hidden = network.input_proj(sample)
    if network.pos_embedding is not None:
        hidden = hidden + network.pos_embedding[0]
    for block in network.transformer_blocks:
        attention = nn.MultiheadAttention(SIZE, HEADS, batch_first=True).eval()
        attention.load_state_dict(block.multihead_attn.state_dict())
        shift, scale, gate, shift_after, scale_after, gate_after = block.adaLN_modulation[1](context).chunk(6)
        normal = nn.functional.layer_norm(hidden, (SIZE,), eps=1e-6) * (1 + scale) + shift
        hidden = hidden + gate * attention(normal[None], normal[None], normal[None])[0][0]
        normal = nn.functional.layer_norm(hidden, (SIZE,), eps=1e-6) * (1 + scale_after) + shift_after
        hidden = hidden + gate_after * block.mlp(normal)
    return network.output_proj(hidden)


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize(("times", "step"), [(1, 37), (1000, 250)])  # a noise level is the time; of a flow, its share
def test_a_prediction_is_that_of_the_definition(times, step, positions):
    network = made(times, positions)
    sample, condition = torch.randn(3, ROWS, COLUMNS), torch.randn(1, CONDITION)
    with torch.no_grad():
        found = network(sample, torch.tensor([step]), condition)
        wanted = torch.stack([expected(network, one, step / times, condition[0]) for one in sample])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
