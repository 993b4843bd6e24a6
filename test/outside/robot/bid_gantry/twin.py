"""The twin: slides that are where they were told to be, drawn by MuJoCo."""

from __future__ import annotations

import math
import socket
import threading
import time
import xml.etree.ElementTree as ET
from typing import Any

import mujoco
import numpy as np

from bid_gantry.link import PORT, SETPOINT, STATE, receive
from bid_ros.core.errors import ArmError
from bid_ros.sim.mjcf import lamp, plain_visuals
from bid_ros.sim.twin import SceneState, Truth, TwinScene

# The hand looks down: its z axis points along the fingers, whose tips are the tool.
GANTRY = """
<mujoco model="gantry"><worldbody>
  <body><joint name="slide_x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <geom type="box" size="0.04 0.6 0.04" pos="0 0 0.75" rgba="0.3 0.32 0.35 1"/>
    <body><joint name="slide_y" type="slide" axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body><joint name="slide_z" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <geom type="cylinder" size="0.025 0.3" pos="0 0 0.4" rgba="0.85 0.86 0.88 1"/>
        <body name="hand" pos="0 0 0.1" quat="0 1 0 0"><geom type="box" size="0.02 0.06 0.02" rgba="0.2 0.4 0.8 1"/>
          <body><joint name="left" type="slide" axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
            <geom type="box" size="0.008 0.005 0.05" pos="0 0.005 0.05" rgba="0.2 0.2 0.2 1"/></body>
          <body><joint name="right" type="slide" axis="0 -1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
            <geom type="box" size="0.008 0.005 0.05" pos="0 -0.005 0.05" rgba="0.2 0.2 0.2 1"/></body>
        </body></body></body></body>
</worldbody></mujoco>
"""
HOME = (0.45, 0.0, 0.3, 0.08)  # tool in m, base frame, and opening


def scene_model(scene: TwinScene) -> mujoco.MjModel:
    """Compile the gantry in the scene of a task."""
    root = ET.fromstring(GANTRY)
    worldbody, hand = root.find("worldbody"), root.find(".//body[@name='hand']")
    assert worldbody is not None and hand is not None
    plain_visuals(root, (0.45, 0.0, 0.2))
    lamp(worldbody, (1.0, -0.6, 2.0), (-0.4, 0.35, -1.0))
    scene.furnish(root, hand)
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


class GantryTwin:
    """A :class:`bid_ros.sim.twin.Twin` that serves one client after the other."""

    def __init__(self, scene: TwinScene, address: str) -> None:
        self.hostname, self.bodies = address, scene.bodies
        self._scene, self._model = scene, scene_model(scene)
        self._data = mujoco.MjData(self._model)
        self._world = scene.world(self._model, self._data)
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._server: socket.socket | None = None
        self._state = np.array(HOME)

    def start(self) -> None:
        """Serve the gantry."""
        try:
            self._server = socket.create_server((self.hostname, PORT))
        except OSError as error:
            raise ArmError(f"the gantry's twin cannot serve {self.hostname}:{PORT}: {error.strerror}") from error
        self._server.settimeout(0.2)
        threading.Thread(target=self._serve, args=(self._server,), daemon=True).start()

    def stop(self) -> None:
        """End the server."""
        self._stopped.set()

    def reset(self, seed: int, speed: float) -> Any:
        """Lay out an episode's scene."""
        layout = self._scene.layout(seed, speed)
        with self._lock:
            self._world.lay_out(layout)
        return layout

    def start_path(self) -> None:
        """Let what moves in the scene begin to move."""
        with self._lock:
            self._world.start_path()

    def scene_state(self) -> SceneState:
        """Return what a renderer needs."""
        with self._lock:
            x, y, z, width = self._state
            self._data.qpos[:5] = x, y, z, width / 2, width / 2
            self._world.before_step()
            data = self._data
            return SceneState(time.time_ns(), data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())

    def ground_truth(self) -> Truth:
        """Return where everything is."""
        with self._lock:
            return self._world.ground_truth(time.time_ns())

    def statistics(self) -> dict[str, float]:
        """Without physics, real time is always kept."""
        return {"real_time_factor": 1.0, "overruns": 0.0, "lost_s": 0.0}

    def _serve(self, server: socket.socket) -> None:
        with server:
            while not self._stopped.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                with client:
                    client.settimeout(None)
                    self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        while not self._stopped.is_set() and (data := receive(client, SETPOINT.size)):
            wanted = SETPOINT.unpack(data)
            with self._lock:
                self._state = np.array(
                    [now if math.isnan(new) else new for now, new in zip(self._state, wanted, strict=True)]
                )
                answer = STATE.pack(*self._state)
            client.sendall(answer)
