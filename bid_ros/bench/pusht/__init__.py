"""Push-T: the simulated bench with human demonstrations; its environment needs the extra ``bench``."""

from bid_ros.bench.pusht.data import human_dataset, observation_values
from bid_ros.bench.pusht.env import PushTEnv
from bid_ros.bench.pusht.picture import render
from bid_ros.bench.pusht.state import PushTState, score

__all__ = ["PushTEnv", "PushTState", "human_dataset", "observation_values", "render", "score"]
