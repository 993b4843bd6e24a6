"""Convert odd data sets that are drawn at random, many more than a test does, and print the seed of each batch.

Usage: PYTHONPATH=.:test python scripts/odd_data_sets.py [--count 2000] [--seed 0]
"""

import argparse
import time

from odd_conversions import run

BATCH = 100
EDITED = 30  # of a batch: data sets of LeRobot whose times, rows and videos disagree


def main() -> None:
    """Run the batches. A failure shows the data set and ends the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="data sets in all (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first batch; the next have the next numbers")
    options = parser.parse_args()
    began = time.monotonic()
    for number in range(options.seed, options.seed + options.count // BATCH):
        print(f"seed {number}: {BATCH} data sets", flush=True)
        run(number, BATCH - EDITED, EDITED)
    print(f"{options.count} data sets in {time.monotonic() - began:.0f} s: no silent difference")


if __name__ == "__main__":
    main()
