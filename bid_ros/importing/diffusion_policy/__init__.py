"""Checkpoints of the published Diffusion Policy (Chi et al., RSS 2023), read without its code and without running any."""
