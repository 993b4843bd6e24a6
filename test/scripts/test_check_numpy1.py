"""The check with NumPy 1.26, with a Python that only pretends to make an environment and to test in it."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_numpy1.sh"
PRETENDS = '#!/bin/sh\n[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"\n[ "$2" != pytest ] || exit %d\n'


@pytest.mark.parametrize("failed", [0, 1])
def test_an_environment_of_its_own_does_not_stay(tmp_path, failed):
    python, here = tmp_path / "python", tmp_path / "tmp"
    python.write_text(PRETENDS % failed)
    python.chmod(0o755)
    here.mkdir()
    asked = {**os.environ, "PYTHON": str(python), "TMPDIR": str(here)}
    assert subprocess.run([str(SCRIPT)], env=asked, check=False).returncode == failed
    assert not list(here.iterdir())
    subprocess.run([str(SCRIPT), str(tmp_path / "named")], env=asked, check=not failed)
    assert (tmp_path / "named" / "bin" / "python").exists()
