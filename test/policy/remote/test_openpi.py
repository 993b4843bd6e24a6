"""openpi's own client and server, from the packages openpi-client and openpi-server: each talks with ours."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
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
