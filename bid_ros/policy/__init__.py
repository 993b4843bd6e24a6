"""From an observation to sampled action chunks: bundles, runtimes, the diffusion sampler and one decision."""
