"""The registry finds decoders by itself, and every one of them has a page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bid_ros.core.registry import Registry, collect
from bid_ros.decoding import DecodingError, build_decoder, decoder_names
from bid_ros.decoding.registry import merge
from bid_ros.decoding.vanilla import vanilla

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package's decoders as links, where a test can add a file."""
    folder = tmp_path / "more_decoders"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in ("vanilla", "bidirectional"):
        (folder / f"{name}.py").write_text(f"from bid_ros.decoding.{name} import DECODERS\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("more_decoders")]:
        del sys.modules[name]


def test_a_new_decoder_is_one_file(package):
    (package / "newest.py").write_text("from bid_ros.decoding.vanilla import vanilla\nDECODERS = {'newest': vanilla}\n")
    found = merge(collect("more_decoders", "DECODERS"))
    assert found["newest"] is vanilla
    assert list(found)[:6] == ["vanilla", "ema", "warmstart", "bid", "bid+ema", "bid+warmstart"]


def test_two_decoders_of_one_name_are_refused(package):
    (package / "zz_again.py").write_text("DECODERS = {'ema': None}\n")
    with pytest.raises(DecodingError, match="decoder 'ema' of module 'zz_again' is already another module's"):
        merge(collect("more_decoders", "DECODERS"))


def test_a_decoder_of_another_package_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(Registry, "find", lambda self, name: lambda text, config: object())
    with pytest.raises(DecodingError) as error:
        build_decoder("vanilla")
    assert str(error.value) == (
        "decoder 'vanilla' has no attribute 'needs'; valid is a Needs of bid_ros.decoding, which took the place of "
        "warm_starts and needs_gradient"
    )


@pytest.mark.parametrize("name", decoder_names())
def test_every_decoder_has_a_section_that_is_linked(name):
    page = (ROOT / "docs" / "reference" / "decoders.md").read_text()
    assert f"\n## {name}\n" in page
    assert f"[`{name}`](#{name.replace('+', '')})" in page
