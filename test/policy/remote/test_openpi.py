"""openpi's own client and server, from the packages openpi-client and openpi-server: each talks with ours."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from policy.remote.served import remote_bundle, serving

from bid_ros.core.errors import RemoteError
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.wire import pack, unpack

client = pytest.importorskip("openpi_client.websocket_client_policy", reason="openpi-client is not installed")
coding = pytest.importorskip("openpi_client.msgpack_numpy", reason="openpi-client is not installed")
server = pytest.importorskip("openpi_server.websocket_policy_server", reason="openpi-server is not installed")


class Counting:
    """A policy as openpi's server wants one: each chunk begins with the number of the question."""

    def __init__(self, rows: int, size: int) -> None:
        self.asked: list[dict[str, Any]] = []
        self._shape = rows, size

    def infer(self, obs: dict[str, Any]) -> dict[str, Any]:
        """Return a chunk, or fail."""
        if obs.get("prompt") == "fail":
            raise ValueError("no such prompt")
        self.asked.append(obs)
        return {"actions": np.full(self._shape, len(self.asked), np.float32), "state": np.float32(1.0)}


@contextmanager
def openpi_serving(policy: Counting) -> Iterator[str]:
    """Run openpi's server on loopback; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    loop = asyncio.new_event_loop()
    task = loop.create_task(server.WebsocketPolicyServer(policy, "127.0.0.1", port, {"name": "pi"}).run())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def until_well(address: str) -> None:
    """Wait for openpi's server, by what it says of its health."""
    for _ in range(500):
        try:
            asked = HTTPConnection(address.removeprefix("ws://"), timeout=5)
            asked.request("GET", "/healthz")
            assert asked.getresponse().read() == b"OK\n"
            return
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("openpi's server did not start")


def test_openpi_s_client_gets_chunks_of_bid_serve(policy, tiny, task, observe):
    bundle, rows = load_bundle(tiny, task), task.horizon - task.observation_steps + 1
    newest = {name: value[-1] for name, value in observe().values.items()}
    with serving(policy, bundle, task, key="secret") as ours:
        theirs = client.WebsocketClientPolicy("127.0.0.1", ours.port, api_key="secret")
        assert theirs.get_server_metadata()["bid"]["sha256"] == bundle.sha256
        answer = theirs.infer({**newest, "prompt": "place it"})
        assert answer["actions"].shape == (rows, task.action_dim) and answer["server_timing"]["infer_ms"] > 0
        seen = policy.encode(observe())
        expected = policy.sample(seen, 1, 0, np.random.default_rng((0, 0)))[0][0, task.observation_steps - 1 :]
        np.testing.assert_array_equal(answer["actions"], expected)
        with pytest.raises(RuntimeError, match="is missing or no array"):
            theirs.infer({"prompt": "place it"})
        assert theirs.infer(newest)["actions"].shape == (rows, task.action_dim)  # the connection goes on
        with pytest.raises(Exception, match="HTTP 401"):
            client.WebsocketClientPolicy("127.0.0.1", ours.port, api_key="wrong")


def test_openpi_s_server_is_sampled_n_times(task, tmp_path, observe):
    rows, past = task.horizon - task.observation_steps + 1, task.observation_steps - 1
    asked = Counting(rows + 4, task.action_dim)
    with openpi_serving(asked) as address:
        until_well(address)
        keys = {"wrist": "observation/wrist_image", "tool_position": "observation/state"}
        pointer = remote_bundle(tmp_path / "pi", task, address, keys=keys, prompt="place it", timeout_ms=5000.0)
        remote = load_policy(pointer, task)
        remote.warm_up(3)
        chunks, weak = remote.sample(remote.encode(observe()), 3, 0, np.random.default_rng(0))
        np.testing.assert_array_equal(chunks[:, 0, 0], [2, 3, 4])  # the first question warmed up
        assert chunks.shape == (3, rows + past, task.action_dim) and weak is None
        assert set(asked.asked[-1]) == {*keys.values(), "prompt"} and asked.asked[-1]["prompt"] == "place it"
        np.testing.assert_array_equal(asked.asked[-1]["observation/wrist_image"], observe().values["wrist"][-1])
        assert remote.capabilities.vitals()["server_ms"] >= 0 and remote.capabilities.vitals()["question_kb"] > 0


def test_an_error_in_openpi_s_server_is_one_sentence(task, tmp_path, observe):
    asked = Counting(task.horizon, task.action_dim)
    with openpi_serving(asked) as address:
        until_well(address)
        pointer = remote_bundle(tmp_path / "pi", task, address, prompt="fail", timeout_ms=5000.0)
        remote = load_policy(pointer, task)
        for _ in range(2):  # it closes the connection after a traceback; the next question connects again
            with pytest.raises(RemoteError, match=r"no answer but a text: ValueError: no such prompt$"):
                remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(0))


def test_messages_are_byte_for_byte_those_of_openpi():
    content = {
        "observation/image": np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
        "state": np.array([0.5, -1.0]),
        "half": np.float16(0.5),
        "flag": np.bool_(True),
        "prompt": "place it",
        "nested": [{"a": np.zeros((0, 3), np.float32)}],
    }
    assert pack(content) == coding.packb(content)
    for back in (unpack(coding.packb(content)), coding.unpackb(pack(content))):
        np.testing.assert_array_equal(back["observation/image"], content["observation/image"])
        assert back["half"] == 0.5 and back["nested"][0]["a"].shape == (0, 3)


def lerobot_modules(asked: list[dict[str, Any]], rows: int, size: int) -> dict[str, ModuleType]:
    """Small stand-ins for the modules of LeRobot 0.6 that the page's server imports, with their signatures."""
    torch = pytest.importorskip("torch")  # of the extra train, which not every Python of the suite has

    class Policy:
        config = SimpleNamespace(type="smolvla", device="cpu")

        @classmethod
        def from_pretrained(cls, pretrained_name_or_path: str, **_: Any) -> Any:
            assert pretrained_name_or_path == "checkpoint"
            return cls()

        def predict_action_chunk(self, batch: dict[str, Any], **_: Any) -> Any:
            asked.append(batch)
            return torch.full((1, rows, size), 0.5)

    def prepare(observation: dict[str, Any], device: Any, task: str | None = None, robot_type: Any = None) -> Any:
        for name in observation:
            value = torch.from_numpy(observation[name])
            value = (value.float() / 255).permute(2, 0, 1) if "image" in name else value
            observation[name] = value[None].to(device)
        return {**observation, "task": task or "", "robot_type": robot_type or ""}

    said = {
        "configs.policies": {"PreTrainedConfig": Policy},
        "policies.factory": {
            "get_policy_class": {"smolvla": Policy}.__getitem__,
            "make_pre_post_processors": lambda policy_cfg, pretrained_path: (dict, lambda actions: 2 * actions),
        },
        "policies.utils": {"prepare_observation_for_inference": prepare},
    }
    Policy.type = "smolvla"
    modules = {name: ModuleType(name) for name in ("lerobot", "lerobot.configs", "lerobot.policies")}
    for name, content in said.items():
        modules[f"lerobot.{name}"] = ModuleType(name)
        vars(modules[f"lerobot.{name}"]).update(content)
    return modules


def test_the_page_s_server_of_lerobot_s_policies_is_asked(task, tmp_path, observe, monkeypatch, root):
    page = (root / "docs" / "how-to" / "import-a-policy.md").read_text()
    code = page.split("### SmolVLA, pi0, pi0.5, GR00T")[1].split("```python\n")[1].split("```")[0]
    rows, asked = task.horizon - task.observation_steps + 1, []
    for name, module in lerobot_modules(asked, rows, task.action_dim).items():
        monkeypatch.setitem(sys.modules, name, module)
    names: dict[str, Any] = {}
    exec(compile(code, "serve.py", "exec"), names)
    with openpi_serving(names["Served"]("checkpoint")) as address:
        until_well(address)
        keys = {"wrist": "observation.images.wrist", "tool_rotation": "observation.state.2"}
        keys["tool_position"] = "observation.state.1"
        pointer = remote_bundle(tmp_path / "smolvla", task, address, keys=keys, prompt="place it", timeout_ms=5000.0)
        remote = load_policy(pointer, task)
        chunks, _ = remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(0))
    assert chunks.shape == (2, task.horizon, task.action_dim) and (chunks == 1.0).all()
    batch, seen = asked[-1], {name: values[-1] for name, values in observe().values.items()}
    state = np.concatenate([seen["tool_position"], seen["tool_rotation"]])[None]
    np.testing.assert_allclose(batch["observation.state"].numpy(), state, rtol=1e-6)
    assert batch["observation.images.wrist"].shape == (1, 3, *seen["wrist"].shape[:2]) and batch["task"] == "place it"
