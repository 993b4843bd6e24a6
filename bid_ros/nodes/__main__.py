"""``python -m bid_ros.nodes NAME`` runs a node, for example ``safety_node``."""

import sys
from importlib import import_module

if __name__ == "__main__":
    import_module(f"bid_ros.nodes.{sys.argv.pop(1)}").main()
