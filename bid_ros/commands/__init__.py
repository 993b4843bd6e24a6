"""The verbs of the ``bid`` command, one a file."""
