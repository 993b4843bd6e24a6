"""Bundles that a key must have signed: what is refused, each in one sentence."""

from __future__ import annotations

import subprocess

import pytest
from tiny_bundle import make_tiny_bundle

from bid_ros.core.errors import BundleError
from bid_ros.core.task import load_task
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.manifest import write_bundle_manifest
from bid_ros.policy.signature import SIGNATURE, check_signature


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """The file of a private key; its public one is beside it."""
    return new_key(tmp_path_factory.mktemp("keys") / "key")


def new_key(file):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    return file


@pytest.fixture
def task(root):
    return load_task(root / "config" / "franka_place" / "task.yaml")


@pytest.fixture
def bundle(task, tmp_path):
    return load_bundle(make_tiny_bundle(tmp_path / "bundle", task), task)


def sign(bundle, key, namespace="bid_ros"):
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", namespace, bundle.path / "bundle.yaml"]
    subprocess.run(command, check=True, capture_output=True)


def refusal(bundle, key):
    with pytest.raises(BundleError) as raised:
        check_signature(bundle, key)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_bundle_passes_that_one_of_the_keys_has_signed(bundle, key, tmp_path):
    sign(bundle, key)
    check_signature(bundle, key.with_suffix(".pub"))
    several = tmp_path / "operators.pub"
    several.write_text(f"# operators\n\n{new_key(tmp_path / 'other').with_suffix('.pub').read_text()}")
    assert "or another key than" in refusal(bundle, several)
    several.write_text(several.read_text() + key.with_suffix(".pub").read_text())
    check_signature(bundle, several)


def test_one_that_nobody_signed_or_that_was_changed_since_does_not(bundle, key, task):
    public = key.with_suffix(".pub")
    assert f"is not signed, and {public} must have signed it" in refusal(bundle, public)
    sign(bundle, key)
    manifest = bundle.path / "bundle.yaml"
    manifest.write_text(manifest.read_text().replace("name: ", "name: un", 1))
    changed = load_bundle(bundle.path, task)
    assert "was changed after it was signed" in refusal(changed, public)
    assert "is being changed" in refusal(bundle, public)


def test_a_signature_that_was_made_for_something_else_does_not_count(bundle, key):
    sign(bundle, key, namespace="file")
    assert "was changed after it was signed, or another key" in refusal(bundle, key.with_suffix(".pub"))
    (bundle.path / SIGNATURE).write_text("nothing")
    assert "was changed after it was signed, or another key" in refusal(bundle, key.with_suffix(".pub"))


def test_what_is_no_public_key_is_refused(bundle, key, tmp_path):
    assert "is no OpenSSH public key" in refusal(bundle, key)  # the private one
    assert "which cannot be read: No such file" in refusal(bundle, tmp_path / "none.pub")
    (tmp_path / "empty.pub").write_text("# nobody\n")
    assert "is no OpenSSH public key" in refusal(bundle, tmp_path / "empty.pub")
    (tmp_path / "listed.pub").write_text("somebody ssh-ed25519 AAAA")
    assert "is no OpenSSH public key" in refusal(bundle, tmp_path / "listed.pub")


def test_a_computer_without_openssh_says_what_to_install(bundle, key, monkeypatch):
    sign(bundle, key)
    monkeypatch.setenv("PATH", "")
    assert "apt install openssh-client" in refusal(bundle, key.with_suffix(".pub"))


def test_a_bundle_that_is_written_anew_is_not_signed_any_more(bundle, key, task):
    sign(bundle, key)
    write_bundle_manifest(
        bundle.path,
        task,
        name="again",
        observation=bundle.observation,
        action=bundle.action,
        action_spread=bundle.action_spread,
        settings=bundle.settings,
        graphs={"strong": {role: path.name for role, path in bundle.strong.items()}, "weak": None},
        provenance={},
    )
    assert not (bundle.path / SIGNATURE).exists()
