import numpy as np
import pytest
from shared_files import shared_file

from bid_ros.bench.pusht.data import human_dataset, observation_values
from bid_ros.bench.pusht.env import PushTEnv
from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import load_task
from bid_ros.recording.dataset import Dataset

NAN = float("nan")


@pytest.fixture
def task(root):
    return load_task(root / "config" / "pusht.yaml")


@pytest.fixture
def human():
    return shared_file("data", "pusht", "pusht_cchi_v7_lowdim.npz")


def arrays():
    rng = np.random.default_rng(0)
    return {
        "state": rng.uniform(0, 5, (9, 5)).astype(np.float32),
        "action": rng.uniform(0, 512, (9, 2)).astype(np.float32),
        "keypoint": rng.uniform(0, 512, (9, 9, 2)).astype(np.float32),
        "episode_ends": np.array([4, 9]),
    }


def write(path, content):
    np.savez(path, **content)
    return path


def test_rows_are_what_was_seen_and_what_was_answered(tmp_path, task):
    content = arrays()
    dataset = human_dataset(write(tmp_path / "human.npz", content), task)
    dataset.validate(task)
    assert (dataset.rows, dataset.episodes, dataset.labels) == (9, 2, ("human", "human"))
    np.testing.assert_array_equal(dataset.actions, content["action"])
    np.testing.assert_array_equal(dataset.observations["agent_position"], content["state"][:, :2])
    assert dataset.seeds.tolist() == [0, 1] and not dataset.truncated.any()
    assert np.diff(dataset.stamps_ns).tolist() == [100_000_000] * 8


def test_training_and_rollout_compute_the_same_key_points(tmp_path, task):
    pytest.importorskip("gym_pusht", reason="the extra 'bench' is not installed")
    content = arrays()
    content["state"][:, :2] = 50
    content["state"][:, 2:4] += 200
    dataset = human_dataset(write(tmp_path / "human.npz", content), task)
    env = PushTEnv()
    for row, state in enumerate(content["state"].astype(np.float64)):
        values = observation_values(env.set_state(state[:2], state[2:]))
        for name, value in values.items():
            np.testing.assert_allclose(dataset.observations[name][row], value, atol=1e-9)


def change(**arrays_):
    return lambda content: content.update(arrays_)


BAD = [
    (lambda content: content.pop("state"), "lacks 'state'; needed are state, action, episode_ends"),
    (lambda content: content.pop("episode_ends"), "lacks 'episode_ends'"),
    (change(state=np.zeros((9, 4))), r"'state' is float64 \(9, 4\); valid are numbers in rows of \(5,\)"),
    (change(action=np.zeros(9)), r"'action' is float64 \(9,\); valid are numbers in rows of \(2,\)"),
    (change(action=np.full((9, 2), "x")), r"'action' is <U1 \(9, 2\)"),
    (change(action=np.zeros((8, 2))), "'actions' has 8 rows; valid is 9"),
    (change(episode_ends=np.array([4.0, 9.0])), r"'episode_ends' is float64 \(2,\); valid are whole"),
    (change(episode_ends=np.array([4, 8])), r"episode_ends is \[4, 8\]"),
    (change(episode_ends=np.array([], dtype=int)), "'episode_ends' has no rows; valid is one or more"),
    (change(state=np.zeros((0, 5)), action=np.zeros((0, 2))), "'state' has no rows; valid is one or more"),
    (change(episode_ends=np.array([8, 9])), "episode 1 of the data set has 1 rows; valid is at least"),
    (lambda content: content["state"].__setitem__((7, 4), NAN), "'state' is not finite in row 7"),
    (lambda content: content["action"].__setitem__((3, 0), np.inf), "'actions' is not finite in row 3"),
]


@pytest.mark.parametrize(("spoil", "words"), BAD, ids=range(len(BAD)))
def test_bad_data_gets_one_clear_sentence(tmp_path, task, spoil, words):
    content = arrays()
    spoil(content)
    path = write(tmp_path / "human.npz", content)
    with pytest.raises(RecordingError, match=words) as error:
        human_dataset(path, task)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_what_is_no_file_or_no_archive_is_refused(tmp_path, task):
    with pytest.raises(RecordingError, match="does not exist"):
        human_dataset(tmp_path / "none.npz", task)
    with pytest.raises(RecordingError, match="is no file"):
        human_dataset(tmp_path, task)
    cut = write(tmp_path / "whole.npz", arrays()).read_bytes()[:500]
    for name, content in (("text.npz", b"hello"), ("empty.npz", b""), ("cut.npz", cut)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RecordingError, match="damaged or of another kind"):
            human_dataset(tmp_path / name, task)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(RecordingError, match="damaged or of another kind"):
        human_dataset(tmp_path / "one.npy", task)


def test_another_task_is_refused(tmp_path, root, task):
    path = write(tmp_path / "human.npz", arrays())
    with pytest.raises(RecordingError, match="lacks observation 'third_person'"):
        human_dataset(path, load_task(root / "config" / "franka_place" / "task.yaml"))
    object.__setattr__(task, "rate_hz", 20.0)
    with pytest.raises(RecordingError, match="10 rows a second; task 'pusht' has 20"):
        human_dataset(path, task)


def test_the_command_writes_the_data_set(tmp_path, task, capsys):
    out = tmp_path / "deep" / "pusht.npz"
    assert main(["bench", "data", str(write(tmp_path / "human.npz", arrays())), "--out", str(out)]) == 0
    Dataset.load(out).validate(task)
    assert "2 episodes, 9 rows" in capsys.readouterr().err


def test_the_human_data_is_read_whole(human, task):
    dataset = human_dataset(human, task)
    assert (dataset.episodes, dataset.rows) == (206, 25_650)
    with np.load(human) as content:
        away = np.abs(dataset.observations["block_keypoints"].reshape(-1, 9, 2) - content["keypoint"]).max(axis=(1, 2))
    assert np.mean(away < 0.01) > 0.9 and away.max() < 2.5


def test_human_actions_move_the_block_as_they_did(human, task):
    """Every 30th episode from its seed, against each recorded row: an action acts between its row and the next."""
    pytest.importorskip("gym_pusht", reason="the extra 'bench' is not installed")
    dataset = human_dataset(human, task)
    env = PushTEnv()
    for episode in range(14, dataset.episodes, 30):
        start, end = int(dataset.episode_starts[episode]), int(dataset.episode_ends[episode])
        state = env.reset(int(dataset.seeds[episode]))
        for row in range(start, end):
            for name, value in observation_values(state).items():
                np.testing.assert_allclose(value, dataset.observations[name][row], atol=1e-3)
            state = env.step(dataset.actions[row])
