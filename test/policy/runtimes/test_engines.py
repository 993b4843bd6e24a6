import json
import os
from dataclasses import replace

import pytest

from bid_ros.core.errors import BidError
from bid_ros.policy.runtimes.engines import EngineCache, EngineKey, default_cache

KEY = EngineKey(
    "tensorrt",
    "fp16",
    "ab" * 32,
    {"sample": (16, 16, 10), "step": (1,)},
    "NVIDIA RTX 4090",
    "8.9",
    "580.1",
    {"onnxruntime": "1.31.1", "tensorrt": "101303"},
)


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
    ("change", "sentence"),
    [
        ({"driver": "590.2"}, r"is stale: its driver is 580\.1, here it is 590\.2"),
        ({"versions": {"onnxruntime": "1.32.0"}}, "is stale: its versions is"),
        ({"gpu": "NVIDIA RTX A4000"}, "is foreign: its gpu is NVIDIA RTX 4090, here it is NVIDIA RTX A4000"),
        ({"capability": "8.6"}, r"is foreign: its capability is 8\.9, here it is 8\.6"),
    ],
)
def test_an_engine_of_another_computer_or_time_is_refused_and_built_anew(root, change, sentence):
    key = replace(KEY, **change)
    with pytest.raises(
        BidError, match=rf"{sentence}.*build it with: bid policy compile BUNDLE --runtime tensorrt:fp16$"
    ):
        opened(root, key)
    assert not (EngineCache(root, build=True).open(key, "strong_denoiser.onnx") / "graph.engine").exists()


def test_a_number_of_samples_that_was_not_compiled(root):
    key = replace(KEY, inputs={"sample": (32, 16, 10), "step": (1,)})
    with pytest.raises(
        BidError,
        match=r"no tensorrt engine of strong_denoiser\.onnx for sample 32x16x10 and step 1 in .*; compiled are "
        "sample 16x16x10 and step 1; build",
    ):
        opened(root, key)


def test_a_changed_graph_and_another_precision_have_no_engine(root):
    for change in ({"graph": "cd" * 32}, {"precision": "fp32"}):
        with pytest.raises(BidError, match="there is no tensorrt engine"):
            opened(root, replace(KEY, **change))


def test_a_replaced_engine_is_refused(root):
    (opened(root) / "graph.engine").write_bytes(b"something else")
    with pytest.raises(BidError, match=r"is damaged: graph\.engine is missing or was replaced"):
        opened(root)


def test_a_build_that_broke_off_leaves_no_engine(root):
    key = replace(KEY, precision="fp32")
    (EngineCache(root, build=True).open(key, "g.onnx") / "half.engine").write_bytes(b"half")
    with pytest.raises(BidError, match="there is no tensorrt engine"):
        opened(root, key)


def test_an_unreadable_key_is_no_engine(root):
    (opened(root) / "key.json").write_text(json.dumps([1]))
    with pytest.raises(BidError, match="there is no tensorrt engine"):
        opened(root)


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
