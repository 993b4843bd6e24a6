"""Predicted joints against the chain that the arm's own kinematics are tested with."""

import numpy as np
import pytest
from joint_task import HOME, joint_task, model_of

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.posture import PosturePrediction

DT_S = 0.1


@pytest.fixture(params=["franka", "ur"])
def arm(request):
    return request.param, model_of(joint_task(request.param))


def motions(model, home, count=6, rows=15, speed=0.15, seed=0):
    """Straight motions of the tool from home, ``(N, n, 3)`` and ``(N, n, 3, 3)``, some of them turning."""
    random = np.random.default_rng(seed)
    place, rotation = model.forward(home)
    ways = random.standard_normal((count, 1, 3))
    ways *= speed * DT_S / np.linalg.norm(ways, axis=2, keepdims=True)
    ways[..., 2] = np.abs(ways[..., 2]) * 0.3
    position = place + ways * np.arange(rows)[None, :, None]
    return position, np.broadcast_to(rotation, (count, rows, 3, 3))


def test_the_predicted_joints_put_the_tool_where_it_is_commanded(arm):
    name, model = arm
    position, rotation = motions(model, HOME[name])
    found = PosturePrediction(model).of(position, rotation, HOME[name], DT_S)
    place, turned = model.forward(found.joints)
    assert found.reached.all()
    np.testing.assert_allclose(place, position, atol=1e-3)
    np.testing.assert_allclose(turned, rotation, atol=3e-3)
    assert np.abs(found.joints[:, 0] - HOME[name]).max() < 1e-2
    assert np.abs(np.diff(found.joints, axis=1)).max() < 0.3  # one posture goes over into the next


def test_each_motion_is_predicted_as_if_it_were_alone(arm):
    name, model = arm
    position, rotation = motions(model, HOME[name])
    prediction = PosturePrediction(model)
    together = prediction.of(position, rotation, HOME[name], DT_S).joints
    for number in range(len(position)):
        alone = prediction.of(position[number : number + 1], rotation[number : number + 1], HOME[name], DT_S).joints
        np.testing.assert_allclose(alone[0], together[number], atol=5e-3)


def test_singular_values_are_those_of_the_jacobian_where_they_count(arm):
    name, model = arm
    position, rotation = motions(model, HOME[name])
    exact = PosturePrediction(model).of(position, rotation, HOME[name], DT_S, singular=10.0)
    wanted = np.linalg.svd(model.chain.jacobian(exact.joints), compute_uv=False)[..., -1]
    np.testing.assert_allclose(exact.singular, wanted, atol=1e-3)
    least = float(np.median(wanted))
    some = PosturePrediction(model).of(position, rotation, HOME[name], DT_S, singular=least)
    assert ((some.singular >= least) == (wanted >= least)).mean() > 0.97
    assert (some.singular <= wanted + 1e-3).all()


def test_a_place_out_of_reach_is_not_reached(arm):
    name, model = arm
    position, rotation = motions(model, HOME[name], count=2)
    far = position.copy()
    far[1, -1] = [2.5, 0.0, 0.5]
    found = PosturePrediction(model).of(far, rotation, HOME[name], DT_S)
    assert found.reached[0].all() and found.reached[1, :-1].all() and not found.reached[1, -1]


def test_a_redundant_arm_goes_to_its_rest_while_the_tool_stays():
    known = model_of(joint_task("franka"))
    model = ArmModel(known.chain, known.limits, tuple(HOME["franka"]))
    away = HOME["franka"] + np.array([0.4, 0.0, -0.4, 0.0, 0.0, 0.0, 0.0])
    place, rotation = model.forward(away)
    rows = 40
    position, turned = np.tile(place, (1, rows, 1)), np.tile(rotation, (1, rows, 1, 1))
    found = PosturePrediction(model).of(position, turned, away, DT_S)
    rest = np.linalg.norm(found.joints[0] - np.array(model.rest), axis=1)
    assert found.reached.all() and rest[-1] < 0.7 * rest[0]
    np.testing.assert_allclose(found.joints[0, 0], away, atol=1e-3)
