"""A policy elsewhere: the same chunks as here, bit for bit; and whatever a server does wrong is one sentence."""

from __future__ import annotations

import socket
import threading
import time

import numpy as np
import pytest
from policy.remote.served import deaf, remote_bundle, serving, talking

from bid_ros.core.errors import BundleError, DecodingError, ObservationError, RemoteError
from bid_ros.core.observation import Observation
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder, check_decoder
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.dial import parse_address
from bid_ros.policy.remote.link import Link
from bid_ros.policy.remote.wire import pack, unpack

N = 4


@pytest.fixture
def bundle(tiny, task):
    return load_bundle(tiny, task)


@pytest.fixture
def server(policy, bundle, task):
    with serving(policy, bundle, task) as server:
        yield server


@pytest.fixture
def remote(server, task, tmp_path):
    """The policy on the server, as a bundle points to it; patient, as a busy computer delays an answer."""
    pointer = remote_bundle(tmp_path / "remote", task, f"ws://127.0.0.1:{server.port}", timeout_ms=5000.0)
    return load_policy(pointer, task)


def plain(folder, task, address, **settings):
    """A policy on a server that only speaks openpi's protocol."""
    return load_policy(remote_bundle(folder, task, address, timeout_ms=5000.0, **settings), task)


def test_the_same_generator_gives_the_same_chunks_here_and_there(policy, remote, observe):
    here, there = np.random.default_rng(5), np.random.default_rng(5)
    for grey in (10, 200):
        observation = observe(grey=grey)
        for weak in (N, 0):
            ours = policy.sample(policy.encode(observation), N, weak, here)
            theirs = remote.sample(remote.encode(observation), N, weak, there)
            np.testing.assert_array_equal(ours[0], theirs[0])
            assert (ours[1] is None) == (theirs[1] is None)
            if weak:
                np.testing.assert_array_equal(ours[1], theirs[1])
    assert here.bit_generator.state == there.bit_generator.state
    assert remote.capabilities.made_up_rows == 0


def test_it_starts_where_it_is_told_to(policy, remote, observe, task):
    start = np.full((task.horizon, task.action_dim), 0.3)
    ours = policy.sample(policy.encode(observe()), 2, 0, np.random.default_rng(1), start, "renoise")
    theirs = remote.sample(remote.encode(observe()), 2, 0, np.random.default_rng(1), start, "renoise")
    np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.parametrize("decoder", ["bid", "bid+delay", "vanilla", "bid+warmstart"])
def test_decisions_are_the_same_here_and_there(policy, remote, bundle, observe, task, decoder):
    made = []
    for each in (policy, remote):
        maker = DecisionMaker(each, bundle_decoder(decoder, bundle, task, N, 1), task, seed=3)
        maker.delay = 1
        made.append([maker.decide(observe(1_000_000_000 + step * task.dt_ns, 20 * step)) for step in range(4)])
    for ours, theirs in zip(*made, strict=True):
        np.testing.assert_array_equal(ours.chunk.actions, theirs.chunk.actions)
        assert ours.choice.index == theirs.choice.index


def test_the_bundle_tells_decoders_what_the_served_one_does(remote, bundle, task, server, tmp_path):
    pointer = load_bundle(tmp_path / "remote", task)
    np.testing.assert_array_equal(pointer.action_spread, bundle.action_spread)
    assert pointer.family == "remote" and pointer.settings.serves == bundle.sha256 and remote.has_weak
    assert (pointer.weak is None) == (bundle.weak is None)
    remote.warm_up(N)
    report = server.report()
    assert report["answered"] > 0 and report["refused"] == 0 and report["answer_ms_p50"] <= report["answer_ms_p99"]


def test_what_a_decision_took_on_the_network_is_told(remote, observe):
    remote.sample(remote.encode(observe()), 1, 0, np.random.default_rng(0))
    assert remote.capabilities.vitals()["server_ms"] >= 0 and remote.capabilities.vitals()["network_ms"] >= 0


def test_any_client_may_ask_for_samples_of_a_seed(policy, server, observe):
    seen = observe()
    link = Link(f"127.0.0.1:{server.port}", 1_000_000, lambda said: None)
    (answer,) = link.ask(lambda: [pack({**seen.values, "bid": {"n": 3, "weak": 2, "seed": 7}})], 5.0)
    strong, weak = policy.sample(policy.encode(seen), 3, 2, np.random.default_rng(7))
    np.testing.assert_array_equal(answer["bid"]["strong"], strong)
    np.testing.assert_array_equal(answer["bid"]["weak"], weak)
    np.testing.assert_array_equal(answer["actions"], strong[0, 1:])  # from the newest of the two observed steps on


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (3, "'bid' is not valid; valid is a map"),
        ({"samples": 3}, "valid is a map with some of n, weak, seed"),
        ({"n": 0}, "n is 0; valid is 1 to 256"),
        ({"n": True}, "n is True; valid is 1 to 256"),
        ({"weak": -1}, "weak is -1; valid is 0 to 256"),
        ({"seed": "x"}, "seed that is no state"),
        ({"start_mode": "best"}, "start_mode is 'best'; valid are noise"),
        ({"start": np.zeros(3), "start_mode": "renoise"}, "'start' of shape"),
        ({"start_mode": "renoise"}, "start mode 'renoise' got a start of shape None"),
    ],
)
def test_a_question_that_is_not_valid_is_answered_with_one_sentence(server, observe, wanted, words):
    link = Link(f"127.0.0.1:{server.port}", 1_000_000, lambda said: None)
    with pytest.raises(RemoteError) as caught:
        link.ask(lambda: [pack({**observe().values, "bid": wanted})], 5.0)
    assert words in str(caught.value) and server.refused == 1


def test_an_observation_that_does_not_fit_is_not_sent(remote, observe, server, task):
    good = observe()
    with pytest.raises(ObservationError, match="is missing"):
        remote.encode(Observation(1, {}))
    name = task.cameras[0].name
    with pytest.raises(ObservationError, match="has shape"):
        remote.encode(Observation(1, {**good.values, name: np.zeros((1, 2, 3), np.uint8)}))
    assert server.answered == 0


@pytest.mark.parametrize(("strong", "weak"), [(0, 0), (1, -1)])
def test_counts_that_are_not_valid_are_refused(remote, observe, strong, weak):
    with pytest.raises(DecodingError, match="samples were asked for"):
        remote.sample(remote.encode(observe()), strong, weak, np.random.default_rng(0))


def test_what_the_server_refuses_is_said_and_the_next_question_is_answered(remote, observe, server):
    with pytest.raises(RemoteError, match=r"no answer but a text: n is 1000; valid is 1 to 256"):
        remote.sample(remote.encode(observe()), 1000, 0, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(RemoteError):
        remote.sample(remote.encode(observe()), 1000, 0, rng)
    assert rng.bit_generator.state == before, "a decision that failed changed the noise of the next one"
    assert len(remote.sample(remote.encode(observe()), 2, 0, rng)[0]) == 2
    assert server.refused == 2


def test_a_server_with_another_bundle_is_refused(remote, policy, bundle, task, observe, server, tmp_path):
    server.close()
    rng = np.random.default_rng(0)
    with pytest.raises(RemoteError, match=r"cannot be reached|ended the connection"):
        remote.sample(remote.encode(observe()), 1, 0, rng)
    changed = tmp_path / "changed"
    changed.mkdir()
    for file in bundle.path.iterdir():
        (changed / file.name).write_bytes(file.read_bytes() + (b"\n" if file.name == "bundle.yaml" else b""))
    wrong = pytest.raises(RemoteError, match=r"that it serves bundle [0-9a-f]{12}; valid is [0-9a-f]{12}")
    with serving(policy, load_bundle(changed, task), task, server.port), wrong:
        remote.sample(remote.encode(observe()), 1, 0, rng)
    with serving(policy, bundle, task, server.port):  # and when the right one comes back, it goes on
        assert len(remote.sample(remote.encode(observe()), 1, 0, rng)[0]) == 1


def test_a_server_that_was_started_again_costs_no_decision(remote, policy, bundle, task, observe, server):
    server.close()
    rng = np.random.default_rng(0)
    with serving(policy, bundle, task, server.port) as again:
        assert len(remote.sample(remote.encode(observe()), 1, 0, rng)[0]) == 1
        assert again.answered == 1


def test_two_clients_at_once_each_get_what_they_asked_for(policy, bundle, task, remote, observe, tmp_path):
    other = load_policy(remote_bundle(tmp_path / "other", task, remote._config.address, timeout_ms=9000.0), task)
    found: dict[int, list[np.ndarray]] = {}

    def ask(each, grey):
        rng = np.random.default_rng(grey)
        found[grey] = [each.sample(each.encode(observe(grey=grey + step)), 2, 2, rng)[0] for step in range(8)]

    threads = [threading.Thread(target=ask, args=pair) for pair in ((remote, 10), (other, 200))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for grey, chunks in found.items():
        rng = np.random.default_rng(grey)
        for step, chunk in enumerate(chunks):
            expected = policy.sample(policy.encode(observe(grey=grey + step)), 2, 2, rng)[0]
            np.testing.assert_array_equal(chunk, expected)


def test_a_name_server_that_does_not_answer_does_not_hold_up_the_asker(monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: asked.wait(20.0) and [])
    begin = time.monotonic()
    with pytest.raises(RemoteError, match="policy server ws://gpu:8000 did not answer within 200 ms"):
        Link("gpu:8000", 1000, lambda said: None).connect(0.2)
    assert time.monotonic() - begin < 3.0
    asked.set()


def test_a_name_that_nobody_knows_is_one_sentence():
    with pytest.raises(RemoteError, match=r"policy server ws://no\.such\.invalid:1 cannot be reached: "):
        Link("no.such.invalid:1", 1000, lambda said: None).connect(20.0)
    with pytest.raises(RemoteError, match=r"cannot be reached: 'x*\.invalid' is no name of a computer"):
        Link(f"ws://{'x' * 70}.invalid:1", 1000, lambda said: None).connect(20.0)


def test_a_server_that_takes_the_call_and_says_nothing_is_given_up():
    """The kernel takes connections of a program that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        link = Link(f"127.0.0.1:{hanging.getsockname()[1]}", 1000, lambda said: None)
        begin = time.monotonic()
        with pytest.raises(RemoteError, match="did not answer within 200 ms"):
            link.connect(0.2)
        assert time.monotonic() - begin < 3.0


def chunk(rows, size):
    return np.arange(rows * size, dtype=np.float32).reshape(rows, size)


def test_a_server_of_openpi_is_asked_once_a_sample(task, tmp_path, observe):
    asked = []
    rows, past = task.horizon - task.observation_steps + 1, task.observation_steps - 1

    def answer(connection):
        connection.send(pack({"actions": chunk(rows + 5, task.action_dim), "server_timing": {"infer_ms": 2.0}}))
        asked.append(True)

    settings = {"keys": {"tool_position": "observation/state"}, "prompt": "place it"}
    with talking(pack({})) as address:
        pointer = remote_bundle(tmp_path / "pi", task, address, **settings)
    assert (pointer.action_spread > 0).all() and pointer.weak is None and pointer.settings.serves == ""
    with talking(pack({"anything": 1}), *[answer] * 3) as address:
        remote = plain(tmp_path / "pi0", task, address, **settings)
        chunks, weak = remote.sample(remote.encode(observe()), 3, 0, np.random.default_rng(0))
    assert len(asked) == 3 and weak is None and chunks.shape == (3, task.horizon, task.action_dim)
    expected = chunk(rows, task.action_dim)
    np.testing.assert_array_equal(chunks[:, past:], np.stack([expected] * 3))
    np.testing.assert_array_equal(chunks[:, :past], np.stack([expected[:1].repeat(past, 0)] * 3))
    assert remote.capabilities.made_up_rows == past


def test_a_server_of_openpi_is_asked_with_the_newest_text(task, tmp_path, observe):
    asked, answer = [], pack({"actions": chunk(task.horizon, task.action_dim)})

    def serve(connection):
        connection.send(pack({}))
        while True:
            asked.append(unpack(connection.recv()).get("prompt"))
            connection.send(answer)

    with talking(serve) as address:
        remote = plain(tmp_path / "pi", task, address, prompt="place it")
        for text, told in (("stack it", "stack it"), ("", "place it")):
            assert remote.capabilities.instruct(text) == told
            remote.sample(remote.encode(observe()), 1, 0, np.random.default_rng(0))
    assert asked == ["stack it", "place it"]


def test_a_server_of_bid_serve_takes_no_text(remote):
    assert remote.capabilities.instruct is None


@pytest.mark.parametrize("took", [float("nan"), float("inf")])
def test_a_time_that_is_no_number_is_not_told(task, tmp_path, observe, took):
    """The vitals go out as JSON, which has no such number."""
    answer = pack({"actions": chunk(task.horizon, task.action_dim), "server_timing": {"infer_ms": took}})
    with talking(pack({})) as address:
        remote_bundle(tmp_path / "pi", task, address)
    with talking(pack({}), answer) as address:
        remote = plain(tmp_path / "pi0", task, address)
        remote.sample(remote.encode(observe()), 1, 0, np.random.default_rng(0))
    assert remote.capabilities.vitals()["server_ms"] == 0.0 and remote.capabilities.vitals()["network_ms"] > 0.0


def test_what_only_bid_serve_can_do_is_refused_before_anything_moves(task, tmp_path, observe):
    with talking(pack({})) as address:
        remote = plain(tmp_path / "pi", task, address)
        warm = bundle_decoder("bid+warmstart", load_bundle(tmp_path / "pi", task), task, N, 1)
        with pytest.raises(DecodingError, match="starts from its last decision"):
            check_decoder(warm, remote)
        with pytest.raises(DecodingError, match="valid is 'noise'"):
            start = np.zeros((task.horizon, task.action_dim))
            remote.sample(remote.encode(observe()), 1, 0, np.random.default_rng(0), start, "renoise")
        with pytest.raises(DecodingError, match="no weak policy"):
            remote.sample(remote.encode(observe()), 1, 1, np.random.default_rng(0))


def no_answer(connection):
    connection.recv()


def hang_up(connection):
    connection.close(1011, "out of memory")


BAD = {
    "wrong shape": (pack({"actions": np.zeros((3, 2))}), r"'actions' of shape \(3, 2\); valid is"),
    "flat": (pack({"actions": np.zeros(4)}), r"'actions' of shape \(4,\)"),
    "nan": (lambda task: pack({"actions": np.full((task.horizon, task.action_dim), np.nan)}), "not finite"),
    "nothing in it": (pack({}), "nothing as 'actions'"),
    "empty": (b"", "no msgpack"),
    "noise": (b"\xc1\xff\x00", "no msgpack"),
    "a list": (pack({}) and b"\x90", "a list; valid is a map"),
    "text": ("Traceback:\n  File x\nValueError: bad state", "no answer but a text: ValueError: bad state"),
    "giant": (bytes(17 * 1024 * 1024), "a message of more than 16777216 bytes"),
    "closed": (hang_up, "ended the connection: out of memory"),
    "silence": (no_answer, "did not answer within 300 ms"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_answer_is_one_sentence_and_no_decision(task, tmp_path, observe, kind):
    says, words = BAD[kind]
    if kind == "nan":
        says = says(task)
    limit_ms = 300.0 if kind == "silence" else 5000.0
    with talking(pack({}), says) as address:
        pointer = remote_bundle(tmp_path / "pi", task, address, timeout_ms=limit_ms)
        maker = DecisionMaker(load_policy(pointer, task), bundle_decoder("vanilla", pointer, task, 1, 1), task)
        with pytest.raises(RemoteError, match=words) as caught:
            maker.decide(observe())
    assert str(caught.value).startswith(f"policy server {address} ") and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_answer_that_comes_too_late_is_never_taken_for_the_next_one(policy, bundle, task, remote, observe, tmp_path):
    """The slow answer to the first question is on its way when the second one is asked."""
    pointer = remote_bundle(tmp_path / "hasty", task, remote._config.address, timeout_ms=100.0)
    hasty = load_policy(pointer, task)
    sample = policy.sample

    def slow(*arguments, **named):
        time.sleep(0.3)
        return sample(*arguments, **named)

    policy.sample = slow
    try:
        with pytest.raises(RemoteError, match="did not answer within 100 ms"):
            hasty.sample(hasty.encode(observe(grey=0)), 1, 0, np.random.default_rng(0))
    finally:
        del policy.sample
    expected = policy.sample(policy.encode(observe(grey=255)), 1, 0, np.random.default_rng(0))[0]
    found = remote.sample(remote.encode(observe(grey=255)), 1, 0, np.random.default_rng(0))[0]
    np.testing.assert_array_equal(found, expected)
    for _ in range(50):  # the hasty one may have to wait for the rest of the slow answer
        try:
            found = hasty.sample(hasty.encode(observe(grey=255)), 1, 0, np.random.default_rng(0))[0]
            break
        except RemoteError:
            continue
    np.testing.assert_array_equal(found, expected)


def test_a_message_before_the_question_is_refused(task, tmp_path, observe):
    early = pack({"actions": np.zeros((task.horizon, task.action_dim))})

    def twice(connection):
        connection.send(early)
        connection.send(early)

    with talking(pack({}), *[twice] * 50) as address:
        remote = plain(tmp_path / "pi", task, address)
        with pytest.raises(RemoteError, match="a message before it was asked"):
            for _ in range(50):  # the first one too many may not have arrived yet
                remote.sample(remote.encode(observe()), 1, 0, np.random.default_rng(0))


def test_a_server_that_reads_nothing_does_not_hold_up_the_sender():
    """More is sent than the buffers of both ends take."""
    with deaf() as address:
        link = Link(address, 1000, lambda said: None)
        link.connect(5.0)
        begin = time.monotonic()
        with pytest.raises(RemoteError, match="did not answer within 300 ms"):
            link.ask(lambda: [bytes(16 * 1024 * 1024)], 0.3)
        assert time.monotonic() - begin < 3.0


@pytest.mark.parametrize("text", ["", "ftp://host:1", "host:port", "ws://", "ws://host:1/path", "http://host"])
def test_an_address_that_is_none_is_refused(text):
    with pytest.raises(BundleError, match="valid is HOST:PORT"):
        parse_address(text)


def test_an_address_needs_no_scheme():
    assert parse_address("gpu:8000") == "ws://gpu:8000" and parse_address("wss://gpu/") == "wss://gpu"


def test_nobody_there_is_one_sentence(task, tmp_path):
    with talking(pack({})) as address:
        pointer = remote_bundle(tmp_path / "pi", task, address)
    with pytest.raises(RemoteError, match=f"policy server {address} cannot be reached: Connection refused"):
        load_policy(pointer, task)
