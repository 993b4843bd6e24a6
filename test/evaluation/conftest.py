"""A tiny policy and two recorded episodes."""

import pytest
from evaluated_data import TASK, dataset
from tiny_bundle import make_tiny_bundle


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    """Folder of a tiny policy for placing."""
    return make_tiny_bundle(tmp_path_factory.mktemp("policy") / "bundle", TASK)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A data set of two episodes."""
    path = tmp_path_factory.mktemp("data") / "set.npz"
    dataset([1, 2]).save(path)
    return path
