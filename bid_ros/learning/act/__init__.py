"""The Action Chunking Transformer, trained: one chunk for one observation."""
