"""Pictures of recorded runs: candidates over camera images, videos, plots of the commanded motion."""
