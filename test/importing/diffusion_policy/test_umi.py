"""Policies of UMI: its encoder against what the published class computed, and its poses from file to chunk.

``umi_golden.npz`` was written by ``scripts/umi_golden.py``.
"""

import importlib.util
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from bid_ros.cli import main
from bid_ros.core.errors import BidError
from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.settings import load_settings
from bid_ros.core.task import load_task
from bid_ros.importing.diffusion_policy.encoders import timm_images
from bid_ros.importing.diffusion_policy.reading import read_policy
from bid_ros.importing.networks.clip import PatchSizes, PatchTransformer, sizes_of
from bid_ros.importing.networks.observation import Preparation
from bid_ros.importing.networks.unet import ConditionalUnet
from bid_ros.importing.policy import ImportOptions, NetworkFeature
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.observation import ObservationConversion

ROOT = Path(__file__).resolve().parents[3]
SPACE = ROOT / "config" / "spaces" / "umi.yaml"
SIZES = PatchSizes(size=64, hidden=128, layers=1, patch=112, tokens=5)
VECTORS = {
    "robot0_eef_pos": 3,
    "robot0_eef_rot_axis_angle": 6,
    "robot0_gripper_width": 1,
    "robot0_eef_rot_axis_angle_wrt_start": 6,
}
ACTION = {"shape": [10], "horizon": 16, "down_sample_steps": 3}
TRANSFORMS = [
    {"type": "RandomCrop", "ratio": 0.95},
    {"_target_": "torchvision.transforms.ColorJitter", "brightness": 0.3},
]


def _script():
    spec = importlib.util.spec_from_file_location("umi_golden", ROOT / "scripts" / "umi_golden.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()
weight = lru_cache(maxsize=256)(SCRIPT.weight)


@pytest.fixture(scope="module")
def computed():
    with np.load(Path(__file__).with_name("umi_golden.npz")) as file:
        return dict(file)


@pytest.mark.parametrize("name", SCRIPT.CASES)
def test_the_encoder_computes_what_the_published_one_does(computed, name):
    model, pixels, way, groups, cameras, ratio, _ = SCRIPT.CASES[name]
    shapes = json.loads(str(computed["tensors"]))[name]
    tensors = {f"obs_encoder.{key}": torch.from_numpy(weight(key, tuple(shape))) for key, shape in shapes.items()}
    given = SCRIPT.inputs(pixels, cameras)
    features = []
    for key, value in given.items():
        image = value.ndim == 4
        features.append(NetworkFeature(key, (pixels, pixels, 3) if image else value.shape[1:]))
        if image:
            tensors |= normaliser(key, [1.0], [0.0])
    content = encoder_config(model_name=model, feature_aggregation=way, use_group_norm=groups, downsample_ratio=ratio)
    observing = timm_images(tuple(features), dict.fromkeys(given, 2), content, tensors, "file")
    network = observing.network.eval()
    with torch.no_grad():
        steps = [
            [torch.from_numpy(given[key][step].transpose(1, 2, 0))[None] for key in network.cameras] for step in (0, 1)
        ]
        points = torch.cat([network.frame(*images) for images in steps])
        found = network.condition(points, {key: torch.from_numpy(given[key]) for key in network.vectors})
    np.testing.assert_allclose(found[0].numpy(), computed[name], atol=2e-5)


def test_the_middle_is_cut_out_and_enlarged():
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 40, 50, 3), np.uint8))
    plain = image[:, 1:39, 6:44].permute(0, 3, 1, 2).float() / 255
    expected = torch.nn.functional.interpolate(plain, size=(40, 40), mode="bilinear", align_corners=False)
    found = Preparation((40, 50), [1.0] * 3, [0.0] * 3, (40, 40), (38, 38), crop_first=True)(image)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_window_of_its_own_for_each_feature(layout, tmp_path):
    policy = read(write(layout, tmp_path / "umi.ckpt", image_steps=1))
    assert policy.encoder.size(2) == 64 + 2 * 16 and policy.observation_steps == 2
    vectors = {name: torch.full((2, size), 0.5) for name, size in VECTORS.items()}
    points = torch.arange(128.0).reshape(2, 64)
    found = policy.encoder.condition(points, vectors)[0]
    assert found[:64].equal(points[1]) and found[64:].equal(torch.full((32,), 0.5))


def test_a_policy_of_umi_drives_a_task(layout, tmp_path, capsys):
    """Poses count from the newest one, the rotation at the start from a tool that points down."""
    checkpoint = write(layout, tmp_path / "umi.ckpt")
    content = yaml.safe_load((ROOT / "config" / "franka_place" / "task.yaml").read_text())
    task_file = tmp_path / "task.yaml"
    task_file.write_text(yaml.safe_dump({**content, "horizon": 9}))
    out = tmp_path / "bundle"
    options = ["--task", str(task_file), "--space", str(SPACE), "--out", str(out)]
    assert main(["policy", "import", str(checkpoint), *options]) == 0
    notes = capsys.readouterr().err
    assert "note: poses are along the axes of UMI's tool: x to the right of the camera's image" in notes
    assert "note: the published policy crops images" in notes and "rows are 3 rows of the data set apart" in notes
    task = load_task(task_file)
    bundle = load_bundle(out, task)
    assert bundle.provenance["pose_repr"] == {"obs_pose_repr": "relative", "action_pose_repr": "relative"}
    history = bundle.history(task)
    assert (history.steps, history.dt_ns) == (2, 50_000_000)
    policy = load_policy(bundle, task, "onnx")
    values = dict(blank_observation(task).values)
    values["tool_position"] = np.array([[0.5, 0.0, 0.3], [0.5, 0.02, 0.3]])
    values["tool_rotation"] = np.tile([1.0, 0.0, 0.0, 0.0, -1.0, 0.0], (2, 1))
    seen = (
        ObservationConversion(load_settings(Space, SPACE, "space file"), task).to_network(Observation(0, values)).values
    )
    np.testing.assert_allclose(seen["robot0_eef_pos"], [[0, 0.02, 0], [0, 0, 0]], atol=1e-12)  # the tool's y is -y
    for name in ("robot0_eef_rot_axis_angle", "robot0_eef_rot_axis_angle_wrt_start"):
        np.testing.assert_allclose(seen[name], np.tile([1, 0, 0, 0, 1, 0], (2, 1)), atol=1e-12)
    chunks, _ = policy.sample(policy.encode(Observation(0, values)), 3, 0, np.random.default_rng(0))
    assert chunks.shape == (3, 9, 10)
    moved = np.abs(chunks[:, 1:, :3] - values["tool_position"][-1])
    assert (moved <= 0.1 + 1e-6).all() and moved.max() > 1e-3  # the normaliser's range, from the newest position


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_name": "vit_base_patch14_dinov2"}, r"model_name is 'vit_base_patch14_dinov2'; valid are resnet18"),
        ({"feature_aggregation": "all_tokens"}, "feature_aggregation is 'all_tokens'; valid"),
        ({"model_name": "resnet18", "feature_aggregation": "transformer"}, "aggregation is 'transformer'; valid for a"),
        ({"model_name": "resnet18", "feature_aggregation": "avg"}, "lacks the tensor 'obs_encoder.key_model_map.cam"),
        ({"transforms": [{"_target_": "torchvision.transforms.Normalize"}]}, "transforms has Normalize; valid are"),
        ({"transforms": [{"type": "RandomCrop", "ratio": 2}]}, "ratio of RandomCrop is 2; valid is"),
        ({"transforms": "none"}, "transforms is 'none'; valid is a list"),
        ({"global_pool": "avg"}, "global_pool is 'avg'; valid"),
        ({"surprise": 1}, "unknown field 'surprise'"),
        ({"_target_": "x.TransformerObsEncoder"}, "obs_encoder is a x.TransformerObsEncoder; valid is TimmObsEncoder"),
    ],
)
def test_other_encoders_are_refused(layout, tmp_path, changes, message):
    with pytest.raises(BidError, match=message) as error:
        read(write(layout, tmp_path / "umi.ckpt", **changes))
    assert "\n" not in str(error.value)


def test_a_small_file_asks_for_no_large_network():
    weights = PatchTransformer(SIZES, clip=True).state_dict()
    assert sizes_of(weights) == SIZES
    far = weights | {"blocks.1000000000.norm1.weight": torch.zeros(64), "blocks.x": torch.zeros(1)}
    assert sizes_of(far).layers == 3
    assert sizes_of(weights | {f"blocks.{layer}.x": torch.zeros(1) for layer in range(25)}) is None
    wide = {"patch_embed.proj.weight": torch.zeros(2048, 3, 1, 1), "blocks.0.mlp.fc1.weight": torch.zeros(1, 2048)}
    assert sizes_of(weights | wide) is None
    for shape in ((64, 3, 0, 0), (1, 1, 4096, 1)):
        assert sizes_of(weights | {"patch_embed.proj.weight": torch.zeros(shape)}) is None


@pytest.mark.parametrize("action", [None, [10], {"horizon": 16}])
def test_a_file_without_an_action_is_refused(layout, tmp_path, action):
    with pytest.raises(BidError, match=r"shape_meta\.action\.shape is None; valid is \[D\]"):
        read(write(layout, tmp_path / "umi.ckpt", action=action))


def test_steps_of_different_lengths_are_refused(layout, tmp_path):
    path = write(layout, tmp_path / "umi.ckpt", pace=1)
    with pytest.raises(BidError, match=r"down_sample_steps of robot0_eef_pos is 1; valid is that of the action, 3"):
        read(path)


def read(path):
    return read_policy(str(path), ImportOptions())


def normaliser(name, scale, offset):
    prefix = f"normalizer.params_dict.{name}"
    return {f"{prefix}.scale": torch.tensor(scale), f"{prefix}.offset": torch.tensor(offset)}


def encoder_config(**changes):
    return {
        "_target_": "diffusion_policy.model.vision.timm_obs_encoder.TimmObsEncoder",
        "model_name": "vit_base_patch16_clip_224.openai",
        "pretrained": False,
        "frozen": False,
        "global_pool": "",
        "feature_aggregation": "attention_pool_2d",
        "transforms": None,
        "use_group_norm": True,
        "imagenet_norm": True,
        **changes,
    }


def write(layout, path, image_steps=2, pace=3, action=ACTION, **changes):
    """Write a checkpoint with one camera, random weights and the configuration that UMI publishes."""
    torch.manual_seed(0)
    images, condition = PatchTransformer(SIZES, clip=True), image_steps * 64 + 2 * sum(VECTORS.values())
    network = ConditionalUnet(10, condition, (16, 32), embedding=8)
    tensors = layout.published(network) | {
        f"obs_encoder.key_model_map.camera0_rgb.{name}": value for name, value in images.state_dict().items()
    }
    tensors |= normaliser("camera0_rgb", [1.0], [0.0]) | {"obs_encoder._dummy_variable": torch.empty(0)}
    for name, size in VECTORS.items():
        tensors |= normaliser(name, [1.0] * size, [0.0] * size)
    tensors |= normaliser("action", [10.0] * 3 + [1.0] * 6 + [25.0], [0.0] * 9 + [-1.0])
    observed = {
        "camera0_rgb": {"shape": [3, 224, 224], "horizon": image_steps, "down_sample_steps": 3, "type": "rgb"},
        **{
            name: {"shape": [size], "horizon": 2, "down_sample_steps": pace, "type": "low_dim"}
            for name, size in VECTORS.items()
        },
        "ignored": {"shape": [2], "horizon": 2, "down_sample_steps": 3, "type": "low_dim", "ignore_by_policy": True},
    }
    policy = {
        "_target_": "diffusion_policy.policy.diffusion_unet_timm_policy.DiffusionUnetTimmPolicy",
        "shape_meta": {"obs": observed, "action": action},
        "noise_scheduler": {
            **layout.SCHEDULER,
            "_target_": "diffusers.DDIMScheduler",
            "num_train_timesteps": 50,
            "set_alpha_to_one": True,
            "steps_offset": 0,
        },
        "obs_encoder": encoder_config(**{"transforms": TRANSFORMS, **changes}),
        **layout.UNET,
        "num_inference_steps": 2,
        "obs_as_global_cond": True,
        "input_pertub": 0.1,
        "train_diffusion_n_samples": 1,
    }
    cfg = {
        "policy": policy,
        "training": {"use_ema": True},
        "task": {"pose_repr": {"obs_pose_repr": "relative", "action_pose_repr": "relative"}},
    }
    return layout.write(path, policy, tensors, cfg=layout.omegaconf(cfg))
