"""Push-T: the simulated bench with human demonstrations; its environment needs the extra ``bench``."""
