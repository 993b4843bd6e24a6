"""Checkpoint files: what is read of them, and what is refused."""

import os
import pickle
import zipfile

import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.diffusion_policy.checkpoint import read_checkpoint


class Call:
    """Pickles as a call of any function."""

    def __init__(self, function, *values):
        self.call = function, values

    def __reduce__(self):
        return self.call


@pytest.fixture
def good(layout, tmp_path):
    tensors = layout.published(layout.unet()) | layout.normaliser(layout.NORMALISER)
    return layout.write(tmp_path / "good.ckpt", layout.UNET_LOWDIM, tensors)


def test_configuration_and_averaged_weights_are_read(layout, good):
    found = read_checkpoint(good)
    assert found.config == {"policy": layout.UNET_LOWDIM, "training": {"use_ema": True}}
    expected = layout.published(layout.unet()) | layout.normaliser(layout.NORMALISER)
    assert found.tensors.keys() == expected.keys()
    assert all(torch.equal(found.tensors[name], expected[name]) for name in expected)


def test_tensors_may_be_views_and_of_other_types(layout, tmp_path):
    base = torch.arange(24, dtype=torch.float64).reshape(4, 6)
    tensors = {"view": base[1:3, ::2].T, "half": torch.ones(2).half(), "one": torch.tensor(3), "none": torch.empty(0)}
    found = read_checkpoint(layout.write(tmp_path / "views.ckpt", layout.UNET_LOWDIM, tensors)).tensors
    assert all(torch.equal(found[name], value) and found[name].dtype == value.dtype for name, value in tensors.items())


@pytest.mark.parametrize("place", ["cfg", "pickles", "state_dicts"])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ((os.system, "touch {mark}"), "posix.system"),
        ((eval, "open('{mark}', 'w')"), "builtins.eval"),
        ((getattr, "x", "upper"), "builtins.getattr"),
        ((__import__, "os"), "builtins.__import__"),
    ],
)
def test_a_pickle_with_code_is_refused_and_not_run(layout, tmp_path, place, call, name):
    mark = tmp_path / "ran"
    function, *values = call
    hostile = Call(function, *(value.format(mark=mark) for value in values))
    file = layout.write(tmp_path / "hostile.ckpt", layout.UNET_LOWDIM, {}, **{place: {"policy": hostile}})
    with pytest.raises(BidError, match=rf"hostile.ckpt is refused: its pickle asks for {name}; valid are tensors"):
        read_checkpoint(file)
    assert not mark.exists()


def test_a_pickle_that_calls_what_it_may_name_gets_data_only(layout, tmp_path):
    mark = tmp_path / "ran"
    path = tmp_path / "named.ckpt"
    # Protocol 0: REDUCE of a name that stands for data, with arguments that a real one would act on.
    body = b"(dS'cfg'\nctyping\nget_type_hints\n(S'" + str(mark).encode() + b"'\ntRsS'state_dicts'\n(ds."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", body)
    with pytest.raises(BidError, match="cfg has no mapping 'policy'"):
        read_checkpoint(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (bytes((64 << 20) + 1), "is refused: its pickle asks for a data.pkl over 67108864 bytes"),
        (b"(S'cfg'\n" + b"(" * 5000 + b"l" * 5000 + b"d.", "cannot be read as a checkpoint: RecursionError"),
        (b"(lp0\n." * 3, "is refused: its pickle asks for a list in place of a mapping"),
    ],
)
def test_what_would_take_the_memory_ends_at_a_limit(tmp_path, body, message):
    path = tmp_path / "bomb.ckpt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", body)
    with pytest.raises(BidError, match=rf"bomb.ckpt {message}"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no whole zip file"),
        (pickle.dumps({"cfg": 1}), "is no whole zip file"),
        (b"PK\x05\x06" + bytes(18), "0 files data.pkl in place of one"),
    ],
)
def test_other_files_are_named(tmp_path, content, message):
    path = tmp_path / "other.ckpt"
    path.write_bytes(content)
    with pytest.raises(BidError, match=rf"other.ckpt .*{message}"):
        read_checkpoint(path)
    with pytest.raises(BidError, match=r"none.ckpt does not exist"):
        read_checkpoint(tmp_path / "none.ckpt")


def test_a_damaged_file_is_named(layout, good, tmp_path):
    path = tmp_path / "short.ckpt"
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, data[: len(data) // 2] if "/data/" in name else data)
    with pytest.raises(BidError, match=r"short.ckpt is damaged: the numbers of a tensor of 'ema_model'"):
        read_checkpoint(path)


def rewritten(good, path, change, compression=zipfile.ZIP_STORED):
    """Write a checkpoint again, with members changed."""
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w", compression) as target:
        for name in source.namelist():
            target.writestr(name, change(name, source.read(name)))
    return path


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (torch.rand(1000), r"data/\d+ is compressed, which torch does not do"),
        (torch.zeros(1_000_000), r"size \[1000000\] is more than the file holds"),
    ],
)
def test_numbers_that_are_compressed_are_refused(layout, tmp_path, numbers, message):
    """A small file could ask for any memory."""
    good = layout.write(tmp_path / "good.ckpt", layout.UNET_LOWDIM, {"model.numbers": numbers})
    path = rewritten(good, tmp_path / "deflated.ckpt", lambda name, data: data, zipfile.ZIP_DEFLATED)
    with pytest.raises(BidError, match=rf"deflated.ckpt is damaged: .*{message}"):
        read_checkpoint(path)


def test_a_tensor_larger_than_its_storage_is_refused(layout, tmp_path):
    """A stride of 0 makes a size of any length out of one number."""
    content = {"state_dicts": {"ema_model": {"model.huge": torch.zeros(1).expand(1 << 40)}}}
    path = layout.write(tmp_path / "huge.ckpt", layout.UNET_LOWDIM, {}, **content)
    with pytest.raises(BidError, match=r"huge.ckpt is damaged: .* size \[1099511627776\] is more than the file holds"):
        read_checkpoint(path)


def test_many_names_for_one_storage_are_refused(layout, tmp_path):
    one = torch.zeros(100_000)
    tensors = {f"model.{number}": one for number in range(100)}
    content = {"state_dicts": {"ema_model": tensors}}
    path = layout.write(tmp_path / "many.ckpt", layout.UNET_LOWDIM, {}, **content)
    with pytest.raises(BidError, match=r"many.ckpt is damaged: .* size \[100000\] is more than the file holds"):
        read_checkpoint(path)


def test_members_of_another_length_are_refused(layout, good, tmp_path):
    path = rewritten(good, tmp_path / "long.ckpt", lambda name, data: data * 2 if "/data/" in name else data)
    with pytest.raises(BidError, match=r"long.ckpt is damaged: .* bytes in place of "):
        read_checkpoint(path)


def test_a_checkpoint_without_weights_is_refused(layout, tmp_path):
    path = layout.write(tmp_path / "empty.ckpt", layout.UNET_LOWDIM, {})
    with pytest.raises(BidError, match=r"state_dicts has no tensors of 'ema_model', which training.use_ema True asks"):
        read_checkpoint(path)
