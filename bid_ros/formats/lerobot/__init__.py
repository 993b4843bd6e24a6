"""LeRobotDataset v2.1 and v3.0, read and written without the package lerobot: their layout, tables and videos."""
