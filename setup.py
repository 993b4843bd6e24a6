from pathlib import Path

from setuptools import find_packages, setup

NODES = ["arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin"]


def tree(folder: str) -> list[tuple[str, list[str]]]:
    """Install every file below a folder under share/bid_ros, keeping its subfolders."""
    folders: dict[str, list[str]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            folders.setdefault(f"share/bid_ros/{path.parent}", []).append(str(path))
    return list(folders.items())


setup(
    name="bid_ros",
    version="0.1.0",
    description="Reactive execution of learned action-chunking policies on real arms by Bidirectional Decoding",
    license="Apache-2.0",
    packages=find_packages(include=["bid_ros", "bid_ros.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/bid_ros"]),
        ("share/bid_ros", ["package.xml"]),
        *tree("launch"),
        *tree("config"),
        *tree("models"),
    ],
    python_requires=">=3.11",
    install_requires=[
        "numpy",
        "scipy",
        "pyyaml",
        "onnxruntime",
        "opencv-python-headless",
        "pillow",
        "imageio-ffmpeg",
        "matplotlib",
        "rosbags",
        "mcap",
        "honcho",
    ],
    extras_require={
        "openvino": ["openvino"],
        "franka": ["franky-control>=2.0"],
        "twin": ["franky-sim", "mujoco>=4"],
        "train": ["torch>=2.13", "onnx", "onnxscript"],
        "realsense": ["pyrealsense2"],
        "ur": ["ur-rtde>=1.6.5"],
        "bench": ["gym-pusht>=0.1.8", "pyarrow"],
        "ray": ["ray"],
    },
    entry_points={
        "console_scripts": [
            "bid = bid_ros.cli:main",
            *[f"{name}_node = bid_ros.nodes.{name}_node:main" for name in NODES],
        ]
    },
)
