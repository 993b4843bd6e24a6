"""The bill of materials: valid CycloneDX, and complete.

``test/data/bom-1.5.schema.json.gz`` is CycloneDX's own schema (github.com/CycloneDX/specification, Apache-2.0). The two
schemas that it refers to, of licences and signatures, describe fields that the bill has not.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest


def written(root, folder):
    """Run the script and return the bill."""
    script = root / "scripts" / "bill_of_materials.py"
    done = subprocess.run([sys.executable, script, "-o", folder / "bill.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "bill.json").read_text())


def test_it_is_valid_cyclonedx(root, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    schema = json.loads(gzip.decompress((root / "test" / "data" / "bom-1.5.schema.json.gz").read_bytes()))
    resource = referencing.jsonschema.DRAFT7.create_resource({})
    base = "http://cyclonedx.org/schema/"
    registry = referencing.Registry().with_resources(
        [(f"{base}spdx.schema.json", resource), (f"{base}jsf-0.82.schema.json", resource)]
    )
    validator = jsonschema.Draft7Validator(schema, registry=registry)
    bill = written(root, tmp_path)
    assert [error.message for error in validator.iter_errors(bill)] == []
    for broken in ({**bill, "specVersion": 1.5}, {**bill, "components": [{"name": "numpy"}]}, {**bill, "version": 0}):
        assert list(validator.iter_errors(broken))


def test_every_line_of_every_lock_is_in_it_once(root, tmp_path):
    bill = written(root, tmp_path)
    found = {
        (prop["value"], part["name"], part["version"]): part
        for part in bill["components"]
        for prop in part["properties"]
        if prop["name"] == "bid_ros:lock"
    }
    lines = 0
    for lock in (root / "requirements").glob("*.lock"):
        for line in lock.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, version = line.partition(" ;")[0].partition("==")
                assert (lock.stem, name.lower().replace("_", "-").replace(".", "-"), version.strip()) in found
                lines += 1
    assert lines == len(found)
    references = [part["bom-ref"] for part in bill["components"]]
    assert len(references) == len(set(references)) and bill["dependencies"][0]["dependsOn"] == references
    numpy = found[("run", "numpy", next(version for lock, name, version in found if (lock, name) == ("run", "numpy")))]
    assert numpy["scope"] == "required" and numpy["purl"] == f"pkg:pypi/numpy@{numpy['version']}"


def test_the_same_locks_give_the_same_bill(root, tmp_path):
    assert written(root, tmp_path) == written(root, tmp_path)


def test_a_line_that_is_no_package_is_named(root, tmp_path):
    for folder in ("scripts", "requirements"):
        (tmp_path / folder).mkdir()
    script = tmp_path / "scripts" / "bill_of_materials.py"
    script.write_bytes((root / "scripts" / script.name).read_bytes())
    (tmp_path / "package.xml").write_bytes((root / "package.xml").read_bytes())
    (tmp_path / "requirements" / "run.lock").write_text("# locked\nnumpy>=2\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.endswith("line 2 is 'numpy>=2'; valid is NAME==VERSION\n")
