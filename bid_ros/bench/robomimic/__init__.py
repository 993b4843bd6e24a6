"""Tasks of robomimic (Mandlekar et al., CoRL 2021) in the simulator robosuite: an arm with a gripper at a table."""
