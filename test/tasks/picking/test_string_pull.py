"""The string by itself, and the cup it pulls over the table of the scene."""

import mujoco
import numpy as np
import pytest

from bid_ros.robots.robotiq.model import FingerDrive
from bid_ros.robots.ur.twin.model import MODEL_JOINTS, scene_model
from bid_ros.tasks.picking.geometry import CUP_STRING_HEIGHT
from bid_ros.tasks.picking.score import lean
from bid_ros.tasks.picking.string_path import PickingLayout, StringPath, picking_layout
from bid_ros.tasks.picking.string_pull import MAX_TENSION, StringPull
from bid_ros.tasks.picking.world import SCENE, PickingWorld

DT = 0.002
PATH = StringPath((0.49, -0.14), 0.0, 1 / 0.06, 0.04)


def at(x: float = 0.49, y: float = -0.14) -> np.ndarray:
    return np.array([x, y, 0.0])


def test_a_string_only_pulls() -> None:
    string = StringPull(PATH)
    _, force = string.step(at(x=0.52), np.zeros(3), DT)  # the cup is ahead: the string hangs
    assert string.tension == 0.0 and not force.any()
    for _ in range(500):
        knot, force = string.step(at(), np.zeros(3), DT)
    assert string.tension > 0.5
    assert force[0] > 0 and force[2] == pytest.approx(0.0)
    np.testing.assert_allclose(np.linalg.norm(force), string.tension)
    np.testing.assert_allclose(knot, [0.49, -0.14, CUP_STRING_HEIGHT])


def test_a_cup_that_is_held_up_takes_the_string_out_of_the_hand_which_waits() -> None:
    string = StringPull(PATH)
    tensions = []
    for _ in range(3000):
        string.step(at(), np.zeros(3), DT)
        tensions.append(string.tension)
    assert max(tensions) == MAX_TENSION
    # Six seconds at 4 cm/s would have been 24 cm away; the hand went no farther than what stretches the string.
    moved = PATH.position(0.02) - at()[:2]
    _, force = string.step(np.append(at()[:2] + moved, 0.0), np.zeros(3), DT)
    assert not force.any()


def test_a_string_that_let_go_never_pulls_again() -> None:
    string = StringPull(PATH)
    for _ in range(500):
        string.step(at(), np.zeros(3), DT)
    string.let_go()
    assert string.tension == 0.0
    for _ in range(500):
        _, force = string.step(at(x=0.3), np.zeros(3), DT)
        assert not force.any()


def test_a_path_without_speed_never_pulls() -> None:
    string = StringPull(picking_layout(3, 0.0).path)
    start = np.append(picking_layout(3, 0.0).cup_start, 0.0)
    for _ in range(500):
        string.step(start, np.zeros(3), DT)
    assert string.tension == pytest.approx(0.0, abs=1e-9)


class Table:
    """The scene with an arm too heavy to move and open fingers."""

    def __init__(self, layout: PickingLayout) -> None:
        self.model = scene_model(SCENE)
        self.data = mujoco.MjData(self.model)
        for name, angle in zip(MODEL_JOINTS, (np.pi, -1.6, 1.0, -1.0, -1.57, 0.0), strict=True):
            joint = self.model.joint(name)
            self.data.qpos[joint.qposadr[0]] = angle
            self.model.dof_armature[joint.dofadr[0]] = 1e6
        self.fingers = FingerDrive(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)
        self.episode = PickingWorld(self.model, self.data)
        self.episode.lay_out(layout)

    def run(self, seconds: float, dt: float = 0.05) -> np.ndarray:
        """Return the cup's position ``(n, 3)`` every ``dt`` s."""
        seen = []
        every = round(dt / self.model.opt.timestep)
        for index in range(round(seconds / self.model.opt.timestep)):
            if index % every == 0:
                seen.append(self.episode.ground_truth(0).bodies["cup"][0])
            self.episode.before_step()
            self.fingers.step(self.model.opt.timestep)
            mujoco.mj_step(self.model, self.data)
        return np.array(seen)


@pytest.mark.parametrize("speed", [0.02, 0.04])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_cup_follows_the_path_upright_at_the_speed_asked_for(seed: int, speed: float) -> None:
    layout = picking_layout(seed, speed)
    table = Table(layout)
    table.episode.start_path()
    places = table.run(5.0)
    speeds = np.hypot(*np.diff(places[20:, :2], axis=0).T) / 0.05
    np.testing.assert_allclose(speeds, speed, rtol=0.15)
    assert speeds.mean() == pytest.approx(speed, rel=0.03)
    radii = np.hypot(*(places[:, :2] - layout.path.centre).T)
    np.testing.assert_allclose(radii, abs(1 / layout.path.curvature), atol=0.004)
    truth = table.episode.ground_truth(0)
    assert 0.1 < truth.tension < 1.0
    assert lean(truth.bodies["cup"][1]) < 0.01
    np.testing.assert_allclose(places[:, 2], 0.0, atol=1e-3)


def test_the_cup_stands_until_the_path_is_started_and_a_static_one_for_ever() -> None:
    for speed, start in ((0.04, False), (0.0, True)):
        layout = picking_layout(2, speed)
        table = Table(layout)
        if start:
            table.episode.start_path()
        places = table.run(1.0)
        np.testing.assert_allclose(places[:, :2], np.tile(layout.cup_start, (len(places), 1)), atol=1e-4)


def test_lay_out_forgets_the_episode_before() -> None:
    table = Table(picking_layout(3, 0.04))
    table.episode.start_path()
    table.run(1.0)
    layout = picking_layout(4, 0.04)
    table.episode.lay_out(layout)
    places = table.run(0.5)
    np.testing.assert_allclose(places[:, :2], np.tile(layout.cup_start, (len(places), 1)), atol=1e-4)
    np.testing.assert_allclose(table.episode.ground_truth(0).bodies["saucer"][0][:2], layout.saucer)
