from dataclasses import replace

import numpy as np
import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.core.feature import Feature
from bid_ros.learning import NetworkConfig
from bid_ros.learning.graphs import encoding_roles, random_feeds, write_encoding
from bid_ros.learning.networks import ImageEncoder, PolicyNetworks, SpatialSoftmax
from bid_ros.policy.graph_policy import FrameEncoder, ObservationEncoder
from bid_ros.policy.runtimes.registry import build_runtime

SMALL = NetworkConfig(widths=(16, 32), kernel=3, condition=32, step_embedding=16, keypoints=8, image_width=8)


def test_spatial_softmax_returns_where_a_peak_is() -> None:
    maps = torch.zeros(1, 2, 5, 9)
    maps[0, 0, 4, 2] = maps[0, 1, 1, 8] = 50.0
    torch.testing.assert_close(SpatialSoftmax(5, 9)(maps), torch.tensor([[-0.5, 1.0, 1.0, -0.5]]))


@pytest.mark.parametrize(("height", "width"), [(96, 96), (24, 24), (50, 75)])
def test_images_of_any_size(height: int, width: int) -> None:
    points = ImageEncoder(height, width, SMALL)(torch.rand(2, 3, height, width) - 0.5)
    assert points.shape == (2, 16)
    assert points.abs().max() <= 1


def test_a_feature_whose_name_the_graph_uses_is_refused(make_task) -> None:
    task = make_task()
    features = [replace(item, name="points") if item.kind == "position" else item for item in task.observation]
    with pytest.raises(BidError, match="feature 'points' beside cameras; valid is any other name"):
        PolicyNetworks(replace(task, observation=tuple(features)), SMALL)


def test_the_goal_head_exists_only_where_there_is_a_goal(make_task) -> None:
    assert PolicyNetworks(make_task(), SMALL).goal is not None
    assert PolicyNetworks(make_task(images=False), SMALL).goal is None


def test_the_exported_graph_sees_distances_as_the_network_does(make_task, tmp_path) -> None:
    task = make_task()
    side = task.cameras[0].shape[0]
    depth = Feature("depth", "image", (side, side, 1), depth=(0.1, 2.0))
    task = replace(task, observation=(*task.observation, depth))
    encoder = PolicyNetworks(task, SMALL).eval().encoder
    files = {role: tmp_path / f"{role}.onnx" for role in encoding_roles(task)}
    write_encoding(encoder, task, files)
    runtime = build_runtime("onnx", 1)
    frames = FrameEncoder(runtime.load(files["frames"]), encoder.cameras)
    feeds, points, vectors = random_feeds(task, np.random.default_rng(0), encoder, frames)
    with torch.no_grad():
        expected = encoder.finish(points, vectors).numpy()
    graphs = ObservationEncoder(files, task, runtime)
    np.testing.assert_allclose(graphs.graph.run(feeds), expected, atol=1e-5)
