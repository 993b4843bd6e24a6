from pathlib import Path
from typing import Any

from setuptools import Command, find_packages, setup
from setuptools.command.develop import develop
from setuptools.command.install_scripts import install_scripts

NODES = [
    *("arm", "camera", "episode", "monitor", "policy", "recorder", "replay", "replay_policy"),
    *("safety", "teleop", "twin", "arms_policy", "arms_episode"),
]


def nodes_apart(command: type[Command], folder: str) -> type[Command]:
    """Let a command of colcon write `bid` where the path finds it, and the nodes where `ros2 run` looks for them.

    Args:
        command: writes the scripts.
        folder: its attribute for where to, ``PREFIX/bin``.
    """

    class Apart(command):  # type: ignore[misc, valid-type]
        def write_script(self, script_name: str, *content: Any) -> None:
            usual = getattr(self, folder)
            if script_name.endswith("_node"):
                setattr(self, folder, str(Path(usual).parent / "lib" / "bid_ros"))
            super().write_script(script_name, *content)
            setattr(self, folder, usual)

    return Apart


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
    package_data={
        "bid_ros.commands": ["*.json"],
        "bid_ros.evaluation": ["*.html"],
        "bid_ros.teleop": ["page.html"],
        "bid_ros.views": ["*.html"],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/bid_ros"]),
        ("share/bid_ros", ["package.xml"]),
        ("share/bid_ros/hook", ["resource/overlay.dsv"]),  # colcon.pkg names it
        *tree("launch"),
        *tree("config"),
        *tree("models"),
    ],
    python_requires=">=3.11",
    # What bid_ros.decoding needs, which others call from a loop of their own: docs/how-to/own-loop.md.
    install_requires=["numpy", "pydantic>=2"],
    extras_require={
        # The command bid and the nodes. Every other extra is for them, so each brings this one, but for two.
        "run": [
            "argcomplete",
            "scipy",
            "pyyaml",
            "onnxruntime",
            "opencv-python-headless",
            "pillow",
            "imageio-ffmpeg",
            "matplotlib",
            "rosbags",
            "mcap",
            "zstandard",
        ],
        "openvino": ["bid_ros[run]", "openvino"],
        # onnxruntime-gpu and onnxruntime are the same module, so these are for an environment that has the extra run
        # and whose onnxruntime was uninstalled: docs/reference/runtimes.md.
        "cuda": ["onnxruntime-gpu[cuda,cudnn]", "onnx"],
        "tensorrt": ["onnxruntime-gpu[cuda,cudnn]", "tensorrt-cu13==10.*", "onnx"],
        "tensorrt-rtx": ["bid_ros[run]", "onnxruntime-ep-nv-tensorrt-rtx-cu13", "onnx"],
        "franka": ["bid_ros[run]", "franky-control>=2.0", "pin"],
        "twin": ["bid_ros[run]", "franky-sim", "mujoco>=4"],
        "train": ["bid_ros[run]", "torch>=2.13", "onnx", "onnxscript", "safetensors", "tqdm"],
        "data": ["bid_ros[run]", "av", "h5py", "numcodecs", "pyarrow", "tqdm", "zarr>=3"],
        "view": ["bid_ros[run]", "rerun-sdk>=0.31", "textual>=1"],
        "realsense": ["bid_ros[run]", "pyrealsense2"],
        "ros": ["bid_ros[run]", "pin"],
        "spacemouse": ["bid_ros[run]", "pyspacemouse"],
        "teleop": ["bid_ros[run]", "ruckig", "evdev", "websockets"],
        "ur": ["bid_ros[run]", "ur-rtde>=1.6.5", "pin"],
        "bench": ["bid_ros[run]", "gym-pusht>=0.1.8", "onnx", "pyarrow", "tqdm"],
        # In an environment of its own, beside MuJoCo 4 of the twins: make benchmarks.
        "benchmarks": [
            "bid_ros[run]",
            "gymnasium",
            "gymnasium-robotics==1.4.2",
            "mujoco==3.3.7",
            "onnx",
            "robosuite==1.5.2",
            "tqdm",
        ],
        "ray": ["bid_ros[run]", "ray"],
        "remote": ["bid_ros[run]", "msgpack", "websockets"],
        "umi": ["bid_ros[run]", "imagecodecs-numcodecs"],
    },
    cmdclass={
        "install_scripts": nodes_apart(install_scripts, "install_dir"),
        "develop": nodes_apart(develop, "script_dir"),  # colcon build --symlink-install
    },
    entry_points={
        "console_scripts": [
            "bid = bid_ros.cli:main",
            *[f"{name}_node = bid_ros.nodes.{name}_node:main" for name in NODES],
        ]
    },
)
