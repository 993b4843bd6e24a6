"""What makes the pages of docs/results and the figures of other pages. Run it: ``python scripts/results --help``."""
