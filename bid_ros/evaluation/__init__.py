"""Evaluation: episodes, replay of recordings, diagnostics and reports over the same code that runs live."""
