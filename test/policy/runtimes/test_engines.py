import os

import pytest

from bid_ros.core.errors import BidError
from bid_ros.policy.runtimes.engines import EngineCache, default_cache

KEY = {
    "runtime": "tensorrt:fp16",
    "graph": "ab" * 32,
    "inputs": {"sample": [16, 16, 10], "step": [1]},
    "gpu": "NVIDIA RTX 4090",
    "versions": {"driver": "580.1", "onnxruntime": "1.31.1", "tensorrt": "101303"},
}


@pytest.fixture
def root(tmp_path):
    """A cache with one engine."""
    cache = EngineCache(tmp_path / "engines", build=True)
    (cache.open(KEY, "strong_denoiser.onnx") / "graph.engine").write_bytes(b"compiled")
    cache.seal(KEY)
    return cache.root


def opened(root, key=KEY):
    return EngineCache(root, build=False).open(key, "strong_denoiser.onnx")


def test_an_engine_is_found_again(root):
    assert (opened(root) / "graph.engine").read_bytes() == b"compiled"


@pytest.mark.parametrize(
    "change",
    [
        {"versions": {"driver": "590.2"}},
        {"gpu": "NVIDIA RTX A4000"},
        {"inputs": {"sample": [32, 16, 10], "step": [1]}},
    ],
)
def test_an_engine_of_another_computer_time_or_number_of_samples_is_not_taken(root, change):
    key = KEY | change
    with pytest.raises(BidError) as caught:
        opened(root, key)
    size, versions = ("32" if "inputs" in change else "16"), key["versions"].items()
    here = f"sample {size}x16x10 and step 1 on {key['gpu']} ({', '.join(map(' '.join, versions))})"
    assert str(caught.value) == (
        f"there is no tensorrt:fp16 engine of strong_denoiser.onnx for {here} in {root}; compiled are sample 16x16x10 "
        "and step 1 on NVIDIA RTX 4090 (driver 580.1, onnxruntime 1.31.1, tensorrt 101303); build it with: bid policy "
        "compile BUNDLE --runtime tensorrt:fp16"
    )
    assert not (EngineCache(root, build=True).open(key, "strong_denoiser.onnx") / "graph.engine").exists()
    assert (opened(root) / "graph.engine").exists(), "the other one stays"


@pytest.mark.parametrize("change", [{"graph": "cd" * 32}, {"runtime": "tensorrt"}])
def test_a_changed_graph_and_another_precision_have_no_engine(root, change):
    with pytest.raises(BidError, match=r"there is no tensorrt.* engine .*; compiled are none; build it with"):
        opened(root, KEY | change)


def test_a_build_that_broke_off_leaves_no_engine(root):
    key = KEY | {"runtime": "tensorrt"}
    (EngineCache(root, build=True).open(key, "g.onnx") / "half.engine").write_bytes(b"half")
    with pytest.raises(BidError, match="there is no tensorrt engine"):
        opened(root, key)
    assert not list(EngineCache(root, build=True).open(key, "g.onnx").iterdir()), "it is built anew"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        BidError, match=r"the folder of engines .*file/engines cannot be written \(Not a directory\); va"
    ):
        EngineCache(tmp_path / "file" / "engines", build=True).open(KEY, "g.onnx")


def test_where_engines_are(monkeypatch, tmp_path):
    for name in ("BID_ENGINES", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert str(default_cache()) == os.path.expanduser("~/.cache/bid_ros/engines")  # noqa: PTH111
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "bid_ros" / "engines"
    monkeypatch.setenv("BID_ENGINES", "/engines")
    assert str(default_cache()) == "/engines"
