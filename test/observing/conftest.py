"""Recordings for the tests of features: those of the tests of recording."""

from __future__ import annotations

from recording.conftest import kit, make_run, task  # noqa: F401
