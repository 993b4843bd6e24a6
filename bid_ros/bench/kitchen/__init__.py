"""Franka Kitchen (Gupta et al., CoRL 2019): an arm does four of seven things in a kitchen, in whichever order."""
