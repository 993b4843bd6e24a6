"""The one-dimensional experiment on action horizons: Liu et al., "Bidirectional Decoding", ICLR 2025, section 5.1.

What it shows, how it is read and what was measured: ``docs/results/diagnostic.md``.
"""
