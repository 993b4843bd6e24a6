"""``bid serve`` and ``bid remote``: what they say, and that a bundle written by one decides with the other."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import socket
import threading
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgpack
import numpy as np
import pytest
from forked_bid import bid, start_bid
from policy.remote.served import serving, talking
from tiny_bundle import make_tiny_bundle
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bid_ros.cli import main
from bid_ros.core.observation import blank_observation
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.wire import pack, unpack

LIMIT_S = 60.0


@pytest.fixture
def served(task, tmp_path):
    """A server of its own process: the function that ends it and returns what it said, its port, and its bundle."""
    bundle = make_tiny_bundle(tmp_path / "tiny", task)
    output = tmp_path / "serve.log"
    options = ("--port", "0", "--runtime", "onnx", "--samples", "2", "--json")
    process = start_bid("serve", str(bundle), *options, output=output)
    end = time.monotonic() + LIMIT_S
    while not (found := re.search(r"at ws://127\.0\.0\.1:(\d+);", output.read_text())):
        assert time.monotonic() < end and process.poll() is None, output.read_text()
        time.sleep(0.02)

    def finish() -> str:
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 0
        return output.read_text()

    yield finish, int(found[1]), bundle
    process.kill()


def test_a_bundle_that_points_to_a_server_decides_like_the_one_there(served, task, tmp_path):
    finish, port, bundle = served
    done = bid("remote", f"127.0.0.1:{port}", str(tmp_path / "remote"), "--timeout", "5")
    assert done.returncode == 0, done.stderr
    assert "strong and weak samples, task franka_place" in done.stdout
    seen = blank_observation(task)
    found = []
    for path in (bundle, tmp_path / "remote"):
        policy = load_policy(load_bundle(path, task), task, "onnx")
        found.append(policy.sample(policy.encode(seen), 3, 3, np.random.default_rng(4)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    said = finish()
    report = json.loads(said.splitlines()[-1])
    assert report["answered"] == 1 and report["refused"] == 0 and report["answer_ms_p50"] > 0
    for words in ("serving tiny@", "strong and weak policy, runtime onnx", "16 rows of 10 values", "client 0 came"):
        assert words in said, said
    assert "this computer alone reaches it; no key is asked for: whoever reaches it may ask" in said


def test_a_client_of_openpi_gets_one_chunk(served, task):
    """As openpi's client does it: the metadata, then a map of arrays and a prompt, and a map with ``actions`` back."""
    finish, port, _ = served
    newest = {name: value[-1] for name, value in blank_observation(task).values.items()}
    with connect(f"ws://127.0.0.1:{port}", compression=None, max_size=None) as client:
        assert "bid" in unpack(client.recv())
        client.send(pack({**newest, "prompt": "place it"}))
        answer = msgpack.unpackb(client.recv())
        rows = task.horizon - task.observation_steps + 1
        assert answer["actions"][b"shape"] == [rows, task.action_dim] and answer["actions"][b"dtype"] == "<f8"
        assert answer["server_timing"]["infer_ms"] > 0 and "bid" not in answer
        client.send(pack({"prompt": "place it"}))
        refusal = client.recv()
        assert isinstance(refusal, str) and "is missing or no array; valid is (2, 96, 96, 3) or (96, 96, 3)" in refusal
        client.send("hello")
        assert client.recv() == "a question was a text; valid is a map in msgpack"
    assert json.loads(finish().splitlines()[-1])["refused"] == 2


def test_it_tells_that_it_is_well_and_lets_no_page_of_a_browser_ask(served):
    _, port, _ = served
    asked = HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    asked.request("GET", "/healthz")
    assert asked.getresponse().status == 200
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{port}", origin="http://elsewhere.example")


def run(*arguments):
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
        status = main(list(map(str, arguments)))
    return status, said.getvalue()


def test_a_port_that_is_taken_is_one_sentence(task, tmp_path):
    bundle = make_tiny_bundle(tmp_path / "tiny", task)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = run("serve", bundle, "--port", port, "--runtime", "onnx", "--samples", 1)
    assert status == 2 and f"cannot be served at 127.0.0.1 port {port}" in said


@pytest.mark.parametrize(("flag", "value"), [("port", 70000), ("samples", 0)])
def test_a_value_outside_its_range_is_one_sentence(flag, value):
    status, said = run("serve", "nowhere", f"--{flag}", value)
    assert status == 2 and said.startswith(f"error: {flag} is {value}; valid is ")


def test_an_option_that_went_is_one_sentence(tmp_path):
    status, said = run("remote", "127.0.0.1:9", tmp_path / "pi", "--connections", 4)
    assert status == 2
    assert said == "error: bid remote has no --connections any more: a policy has one connection: leave it out\n"


def test_a_server_of_openpi_needs_a_task_and_may_be_told_names(tmp_path, task):
    with talking(pack({})) as address:
        status, said = run("remote", address, tmp_path / "pi")
        assert status == 2 and "does not say of which task it is; name the file with --task" in said
    with talking(pack({})) as address:
        status, said = run("remote", address, tmp_path / "pi", "--task", "franka_place", "--key", "wrist")
        assert status == 2 and "--key is 'wrist'; valid is FEATURE=KEY, with a feature of third_person" in said
    keys = ("--key", "wrist=observation/wrist_image", "--key", "tool_position=observation/state")
    with talking(pack({})) as address:
        status, said = run("remote", address, tmp_path / "pi", "--task", "franka_place", *keys, "--prompt", "place it")
        assert status == 0, said
    settings = load_bundle(tmp_path / "pi", task).settings
    assert settings.keys == {"wrist": "observation/wrist_image", "tool_position": "observation/state"}
    assert settings.prompt == "place it" and settings.serves == ""
    with talking(pack({})) as address:
        assert run("remote", address, tmp_path / "plain", "--task", "franka_place")[0] == 0
    assert load_bundle(tmp_path / "plain", task).settings.prompt == task.description != ""
    with talking(pack({})) as address:
        status, said = run("remote", address, tmp_path / "pi", "--task", "franka_place")
        assert status == 2 and "is not empty; valid is a new folder" in said


def test_a_server_of_another_task_is_refused(served, tmp_path):
    _, port, _ = served
    status, said = run("remote", f"127.0.0.1:{port}", tmp_path / "remote", "--task", "ur5_pick")
    assert status == 2 and "serves task 'franka_place'; task 'ur5_pick' is another one" in said


def test_a_key_is_never_on_the_command_line(task, tmp_path, monkeypatch):
    """The bundle names the file. Whoever has neither is refused in one sentence."""
    policy = load_policy(bundle := load_bundle(make_tiny_bundle(tmp_path / "tiny", task), task), task, "onnx")
    key = tmp_path / "key"
    key.write_text("word-1\n")
    monkeypatch.delenv("BID_API_KEY", raising=False)
    with serving(policy, bundle, task, key="word-1") as server:
        address = f"127.0.0.1:{server.port}"
        status, said = run("remote", address, tmp_path / "none")
        assert status == 2 and said.endswith(
            "it asks for a key; valid is a file with the server's key, or the variable BID_API_KEY\n"
        )
        status, said = run("remote", address, tmp_path / "keyed", "--api-key-file", key)
        assert status == 0 and not said
    assert load_bundle(tmp_path / "keyed", task).settings.api_key_file == str(key)
    assert "word-1" not in (tmp_path / "keyed" / "bundle.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "nowhere", "--api-key-file", "absent"), "the file of the key, absent, cannot be read: No such file"),
        (("serve", "nowhere", "--certificate", "absent"), "there is no file absent; valid is one in PEM form"),
        (("serve", "nowhere", "--certificate", __file__), "test_serve.py holds no certificate with its key"),
        (("serve", "nowhere", "--certificate-key", "absent"), "append the key to the file of --certificate"),
        (
            ("remote", "gpu:1", "new", "--certificate", "absent"),
            "ws://gpu:1 is not encrypted; valid is",
        ),
    ],
)
def test_a_file_of_keys_or_certificates_that_is_none_is_one_sentence(arguments, words):
    status, said = run(*arguments)
    assert status == 2 and words in said and said.count("\n") == 1


@pytest.mark.parametrize("address", ["", "ftp://host", "host:many"])
def test_an_address_that_is_none_is_one_sentence(tmp_path, address):
    status, said = run("remote", address, tmp_path / "remote")
    assert (
        status == 2
        and said == f"error: address is '{address}'; valid is HOST:PORT, ws://HOST:PORT or wss://HOST:PORT\n"
    )


def test_something_that_is_no_policy_server_is_one_sentence(tmp_path):
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.handle_request, daemon=True).start()
        status, said = run("remote", f"127.0.0.1:{other.server_port}", tmp_path / "remote")
    assert status == 2 and f"policy server ws://127.0.0.1:{other.server_port} is no websocket server: " in said
