"""Policies of other projects as bundles: their checkpoints are read without those projects, and without their code."""
