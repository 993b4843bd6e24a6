import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import parse_settings
from bid_ros.policy import manifest as module
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.spaces.config import Space


@pytest.fixture
def export(tiny, task, tmp_path):
    """A folder of graphs without a manifest, and a function that writes one."""
    folder = shutil.copytree(tiny, tmp_path / "export")
    (folder / "bundle.yaml").unlink()
    source = load_bundle(tiny, task)

    def write(**changes):
        values = {
            "name": "written",
            "observation": source.observation,
            "action": source.action,
            "action_spread": source.action_spread,
            "settings": source.settings,
            "graphs": {
                "strong": {"encoder": "strong_encoder.onnx", "denoiser": "strong_denoiser.onnx"},
                "weak": {"encoder": "weak_encoder.onnx", "denoiser": "weak_denoiser.onnx"},
            },
            "provenance": {"commit": "abc", "seeds": [0]},
        }
        return write_bundle_manifest(folder, task, **{**values, **changes})

    return folder, write


def test_what_is_written_loads(export, tiny, task):
    folder, write = export
    bundle = write()
    source = load_bundle(tiny, task)
    assert bundle.sha256 == load_bundle(folder, task).sha256 != source.sha256
    assert bundle.provenance == {"commit": "abc", "seeds": [0]}
    assert bundle.settings == source.settings
    np.testing.assert_array_equal(bundle.action.maximum, source.action.maximum)


def test_a_space_and_weights_are_written(export):
    _, write = export
    assert write().space is None
    inputs = [{"name": name, "columns": [{"feature": name}]} for name in ("tool_position", "tool_rotation")]
    inputs += [{"name": "gripper_width", "columns": [{"feature": "gripper_width", "form": "fraction"}]}]
    inputs += [{"name": name, "camera": name} for name in ("third_person", "wrist")]
    space = parse_settings(Space, {"observation": inputs, "past_rows": 1}, "space")
    bundle = write(space=space, action_weights={"gripper_width": 0.5})
    assert bundle.space == space and bundle.action_weights == {"gripper_width": 0.5}


def test_format_1_is_written_where_it_says_all(export):
    folder, write = export
    write()
    assert yaml.safe_load((folder / "bundle.yaml").read_text())["format"] == 1
    write(action_weights={"gripper_width": 0.5})
    assert yaml.safe_load((folder / "bundle.yaml").read_text())["format"] == 2


def test_what_older_versions_do_not_know_is_left_out_where_it_is_the_default(export, tiny, task):
    folder, write = export
    later = {"beta_start", "beta_end", "kept_noise"}
    write()
    assert not later & yaml.safe_load((folder / "bundle.yaml").read_text())["diffusion"].keys()
    settings = replace(load_bundle(tiny, task).settings, beta_start=0.001, kept_noise="predicted")
    assert write(settings=settings).settings == settings
    section = yaml.safe_load((folder / "bundle.yaml").read_text())["diffusion"]
    assert later & section.keys() == {"beta_start", "kept_noise"}


def test_every_file_is_hashed(export, task):
    folder, write = export
    (folder / "loss.csv").write_text("step,loss\n")
    write(graphs={"strong": {"encoder": "strong_encoder.onnx", "denoiser": "strong_denoiser.onnx"}})
    (folder / "loss.csv").write_text("changed")
    with pytest.raises(BundleError, match=r"loss\.csv is damaged"):
        load_bundle(folder, task)


def test_writing_again_replaces_the_manifest(export):
    _, write = export
    first = write()
    assert write(name="again").sha256 != first.sha256


def test_large_files_are_refused(export):
    folder, write = export
    (folder / "huge.bin").write_bytes(b"0" * (module.MAX_FILE_BYTES + 1))
    with pytest.raises(BundleError, match=r"huge\.bin has 10\.0 MB; valid is up to 10 MB"):
        write()
    assert not (folder / "bundle.yaml").exists()


def test_large_bundles_are_refused(export):
    folder, write = export
    for index in range(3):
        (folder / f"{index}.bin").write_bytes(b"0" * 7_000_000)
    with pytest.raises(BundleError, match=r"has 21\.0 MB; valid is up to 20 MB"):
        write()


def test_an_invalid_bundle_leaves_no_manifest(export):
    folder, write = export
    with pytest.raises(BundleError, match="action_spread"):
        write(action_spread=np.ones(3))
    assert not (folder / "bundle.yaml").exists()
