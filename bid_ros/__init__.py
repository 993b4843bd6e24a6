"""Reactive execution of learned action-chunking policies on real arms."""

__version__ = "0.1.0"
