"""The verbs of the ``bid`` command."""
