import numpy as np
import pytest

from bid_ros.core.errors import ObservationError
from bid_ros.core.feature import Feature
from bid_ros.core.limits import Limits
from bid_ros.core.observation import History, ObservationBuffer, blank_observation, seen_by_network
from bid_ros.core.task import Task

DT = 100_000_000
MS = 1_000_000
T0 = 1_700_000_000_000_000_000
LIMITS = Limits((0.3, -0.3, 0.0), (0.7, 0.3, 0.6))
POSITION = Feature("tool", "position", (3,), rate_hz=50)
ACTION = (Feature("tool", "position", (3,)),)


def task(steps=2, observation=None):
    cameras = (Feature("front", "image", (2, 3, 3)), Feature("wrist", "image", (2, 3, 3)))
    return Task("t", "franka", 10, steps, 16, observation or (*cameras, POSITION), ACTION, LIMITS)


def image(value):
    return np.full((2, 3, 3), value, dtype=np.uint8)


def filled(buffer, frames=3, start=T0):
    """Frames 0.1 s apart, positions 20 ms apart from a little before the first to a little after the last frame."""
    for k in range(frames):
        buffer.add("front", start + k * DT, image(k))
        buffer.add("wrist", start + k * DT + 5 * MS, image(100 + k))
    for k in range(-1, 5 * frames + 1):
        buffer.add("tool", start + k * 20 * MS, np.full(3, k * 0.02))
    return buffer


def test_rows_lie_on_the_grid_and_take_the_nearest_sample():
    observation = filled(ObservationBuffer(task())).assemble()
    assert observation.stamp_ns == T0 + 2 * DT
    assert observation.values["front"][:, 0, 0, 0].tolist() == [1, 2]
    assert observation.values["wrist"][:, 0, 0, 0].tolist() == [101, 102]
    np.testing.assert_allclose(observation.values["tool"][:, 0], [0.1, 0.2])
    assert observation.values["front"].dtype == np.uint8 and observation.values["tool"].dtype == np.float64
    assert observation.values["front"].shape == (2, 2, 3, 3) and observation.values["tool"].shape == (2, 3)


def test_it_can_be_assembled_for_an_earlier_instant():
    observation = filled(ObservationBuffer(task())).assemble(T0 + DT)
    assert observation.values["front"][:, 0, 0, 0].tolist() == [0, 1]


def test_the_stamp_is_the_newest_that_every_camera_has_reached():
    buffer = ObservationBuffer(task())
    assert buffer.stamp_ns() is None
    buffer.add("front", T0 + DT, image(1))
    assert buffer.stamp_ns() is None
    buffer.add("wrist", T0, image(1))
    assert buffer.stamp_ns() == T0
    buffer.add("tool", T0 + 9 * DT, np.zeros(3))
    assert buffer.stamp_ns() == T0


def test_without_a_camera_the_vectors_set_the_stamp():
    buffer = ObservationBuffer(task(observation=(POSITION,)))
    buffer.add("tool", T0, np.ones(3))
    assert buffer.assemble().stamp_ns == T0


def test_a_row_before_the_first_sample_repeats_it():
    buffer = ObservationBuffer(task(steps=4))
    observation = filled(buffer, frames=2).assemble()
    assert observation.values["front"][:, 0, 0, 0].tolist() == [0, 0, 0, 1]


def test_the_newest_row_is_never_repeated_from_a_sample_that_came_too_late():
    buffer = ObservationBuffer(task())
    buffer.add("front", T0, image(0))
    buffer.add("wrist", T0, image(0))
    buffer.add("tool", T0 + 81 * MS, np.zeros(3))
    with pytest.raises(ObservationError, match="'tool' is 81 ms away"):
        buffer.assemble()


def test_the_oldest_kept_sample_is_not_the_first_one():
    """After samples were dropped, an instant before them is an error, not the start of an episode."""
    buffer = ObservationBuffer(task(observation=(POSITION,)), history_s=0.1)
    for k in range(100):
        buffer.add("tool", T0 + k * 20 * MS, np.zeros(3))
    oldest = T0 + 80 * 20 * MS
    buffer.assemble(oldest + DT)
    with pytest.raises(ObservationError, match="'tool' is 100 ms away"):
        buffer.assemble(oldest)


@pytest.mark.parametrize(("gap_ms", "ok"), [(80, True), (81, False)])
def test_a_sample_too_far_away_is_an_error_that_names_it(gap_ms, ok):
    buffer = ObservationBuffer(task())
    for k in range(2):
        buffer.add("front", T0 + k * DT, image(k))
        buffer.add("wrist", T0 + k * DT, image(k))
    buffer.add("tool", T0, np.zeros(3))
    buffer.add("tool", T0 + DT - gap_ms * MS, np.ones(3))
    if ok:
        assert buffer.assemble().values["tool"][-1, 0] == 1.0
    else:
        with pytest.raises(ObservationError, match="'tool' is 81 ms away"):
            buffer.assemble()


def test_a_lost_frame_is_an_error():
    buffer = ObservationBuffer(task())
    for name in ("front", "wrist"):
        buffer.add(name, T0, image(0))
        buffer.add(name, T0 + 3 * DT, image(3))
    buffer.add("tool", T0 + 3 * DT, np.zeros(3))
    with pytest.raises(ObservationError, match="'front' is 100 ms away"):
        buffer.assemble()


def test_a_feature_that_never_came_is_named():
    buffer = ObservationBuffer(task())
    buffer.add("front", T0, image(0))
    with pytest.raises(ObservationError, match="'wrist' has not arrived yet"):
        buffer.assemble()


def test_samples_that_are_not_newer_are_ignored():
    buffer = ObservationBuffer(task(observation=(POSITION,)))
    buffer.add("tool", T0, np.full(3, 1.0))
    buffer.add("tool", T0, np.full(3, 2.0))
    buffer.add("tool", T0 - 1, np.full(3, 3.0))
    assert buffer.newest_ns("tool") == T0
    assert buffer.assemble().values["tool"][-1, 0] == 1.0


def test_a_driver_that_reuses_its_buffer_does_not_change_the_past():
    buffer = ObservationBuffer(task(observation=(Feature("front", "image", (2, 3, 3)),)))
    shared = image(7)
    buffer.add("front", T0, shared)
    shared[:] = 9
    assert buffer.assemble().values["front"].max() == 7


def test_reset_forgets_everything():
    buffer = filled(ObservationBuffer(task()))
    buffer.reset()
    assert buffer.stamp_ns() is None and buffer.newest_ns("tool") is None
    with pytest.raises(ObservationError, match="has not arrived"):
        buffer.assemble()
    # The start of the next episode may even lie before the end of the last one.
    assert filled(buffer, start=T0 - 50 * DT).assemble().stamp_ns == T0 - 48 * DT


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("side", image(0), "'side' is not in task 't'; valid are front, wrist, tool"),
        ("front", np.zeros((4, 3, 3), dtype=np.uint8), r"shape \(4, 3, 3\); the task says \(2, 3, 3\)"),
        ("front", np.zeros((2, 3), dtype=np.uint8), "shape"),
        ("front", np.zeros((2, 3, 3)), "type float64; valid is uint8"),
        ("tool", np.zeros(4), r"shape \(4,\); the task says \(3,\)"),
        ("tool", np.array([0.0, np.nan, 0.0]), "not finite"),
        ("tool", np.array([0.0, np.inf, 0.0]), "not finite"),
    ],
)
def test_what_the_task_does_not_say_is_refused_and_changes_nothing(name, value, words):
    buffer = ObservationBuffer(task())
    with pytest.raises(ObservationError, match=words):
        buffer.add(name, T0, value)
    assert all(buffer.newest_ns(item) is None for item in ("front", "wrist", "tool"))


def test_an_observation_says_which_samples_its_rows_are_and_is_made_from_them_again():
    buffer = filled(ObservationBuffer(task()))
    observation = buffer.assemble()
    assert observation.samples_ns["front"] == (T0 + DT, T0 + 2 * DT)
    assert observation.samples_ns["wrist"] == (T0 + DT + 5 * MS, T0 + 2 * DT + 5 * MS)
    # The samples that came later are nearer; those that were taken stay.
    for k in range(20):
        buffer.add("tool", T0 + 5 * DT + k * MS, np.zeros(3))
    again = buffer.assemble_from(observation.stamp_ns, observation.samples_ns)
    assert again.stamp_ns == observation.stamp_ns and again.digest() == observation.digest()
    older = {**observation.samples_ns, "tool": (T0 + 40 * MS, T0 + 60 * MS)}
    assert buffer.assemble_from(observation.stamp_ns, older).values["tool"][:, 0].tolist() == [0.04, 0.06]


def test_one_bit_of_one_value_makes_another_digest():
    observation = filled(ObservationBuffer(task())).assemble()
    for name, values in observation.values.items():
        changed = values.copy()
        changed.view(np.uint8).reshape(-1)[-1] ^= 1
        other = type(observation)(observation.stamp_ns, {**observation.values, name: changed})
        assert other.digest() != observation.digest()


def test_a_sample_without_a_header_is_found_by_its_arrival_a_little_apart_from_it():
    buffer = filled(ObservationBuffer(task()))
    samples = buffer.assemble().samples_ns
    moved = {**samples, "tool": tuple(at + 4 * MS for at in samples["tool"])}
    assert buffer.assemble_from(T0, moved).digest() == buffer.assemble_from(T0, samples).digest()
    lost = {**samples, "tool": tuple(at + 6 * MS for at in samples["tool"])}
    with pytest.raises(ObservationError, match=r"sample of observation 'tool' with stamp .* is not in the history"):
        buffer.assemble_from(T0, lost)


def test_samples_of_other_features_are_refused():
    buffer = filled(ObservationBuffer(task()))
    with pytest.raises(ObservationError, match="samples are of front; valid are front, wrist, tool"):
        buffer.assemble_from(T0, {"front": (T0, T0)})


def test_a_policy_may_want_other_steps_than_the_task():
    task_of_two = task(observation=(POSITION,))
    buffer = ObservationBuffer(task_of_two, tolerance_s=0.001, history=History(5, DT // 2))
    for step in range(8):
        buffer.add(POSITION.name, T0 + step * (DT // 2), np.full(3, float(step)))
    observation = buffer.assemble()
    np.testing.assert_array_equal(observation.values[POSITION.name][:, 0], [3, 4, 5, 6, 7])
    assert blank_observation(task_of_two, History(5, DT)).values[POSITION.name].shape == (5, 3)


def test_samples_are_kept_as_long_as_the_steps_need_them():
    slow = History(4, 10 * DT)
    buffer = ObservationBuffer(task(observation=(POSITION,)), history=slow)
    for step in range(31):
        for part in range(4):
            stamp = T0 + step * DT + part * DT // 4
            buffer.add(POSITION.name, stamp, np.full(3, float(step)))
    observation = buffer.assemble(T0 + 30 * DT)
    np.testing.assert_array_equal(observation.values[POSITION.name][:, 0], [0, 10, 20, 30])


def test_a_clock_that_is_set_back_hides_no_later_sample():
    buffer = filled(ObservationBuffer(task()))
    filled(buffer, start=T0 - 3600 * 1_000_000_000)
    assert buffer.assemble().stamp_ns == T0 - 3600 * 1_000_000_000 + 2 * DT


def test_networks_see_distances_between_their_two_ends():
    feature = Feature("front", "image", (1, 6, 1), depth=(0.5, 1.5))
    seen = seen_by_network(feature, np.array([0, 100, 500, 1000, 1500, 9000], np.uint16).reshape(feature.shape))
    assert seen.dtype == np.float32 and seen.ravel().tolist() == [0.5, -0.5, -0.5, 0.0, 0.5, 0.5]
    colours = np.zeros((2, 2, 3), np.uint8)
    assert seen_by_network(Feature("front", "image", (2, 2, 3)), colours) is colours
