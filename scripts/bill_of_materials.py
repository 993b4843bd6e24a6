"""Write the bill of materials of the locks as CycloneDX 1.5: which packages, which versions, needed for what.

Usage: python scripts/bill_of_materials.py [-o bid_ros.cdx.json]

It needs no package and no network. The same locks give the same file. The locks have no hashes of files, so the bill
has none either.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)\s*(?:;\s*(.+))?")
RUNNING = ("run", "ros")
"""Locks of what a system needs to run; the others are for training, tests and displays."""


def packages(folder: Path) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return name and version of each package, with its locks and its conditions.

    Raises:
        SystemExit: a line of a lock is none of NAME==VERSION.
    """
    found: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: {"lock": set(), "marker": set()})
    for lock in sorted(folder.glob("*.lock")):
        for number, line in enumerate(lock.read_text().splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            match = LINE.fullmatch(line.strip())
            if match is None:
                sys.exit(f"error: {lock} line {number} is '{line}'; valid is NAME==VERSION")
            name = re.sub(r"[-_.]+", "-", match[1]).lower()
            about = found[name, match[2]]
            about["lock"].add(lock.stem)
            if match[3]:
                about["marker"].add(match[3])
    return dict(found)


def component(name: str, version: str, about: dict[str, set[str]]) -> dict[str, Any]:
    """Return a package as CycloneDX has it."""
    address = f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
    return {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "scope": "required" if about["lock"] & set(RUNNING) else "optional",
        "purl": address,
        "properties": [
            {"name": f"bid_ros:{key}", "value": value} for key in ("lock", "marker") for value in sorted(about[key])
        ],
    }


def bill(root: Path = ROOT) -> dict[str, Any]:
    """Return the bill of materials of a source tree."""
    package = ElementTree.parse(root / "package.xml").getroot()
    own = {"type": "application", "bom-ref": "bid_ros", "name": "bid_ros", "version": package.findtext("version", "")}
    parts = [component(*key, about) for key, about in sorted(packages(root / "requirements").items())]
    content = json.dumps([own, parts], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": "bid_ros", "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-o", "--out", default="bid_ros.cdx.json", help="file to write (default bid_ros.cdx.json)")
    out = Path(parser.parse_args().out)
    found = bill()
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {out}: {len(found['components'])} packages")


if __name__ == "__main__":
    main()
