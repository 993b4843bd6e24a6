"""The text that a policy is asked with: given for an episode, refused by a policy that takes none, and recorded."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray
from nodes.test_policy_node import START_S, Harness, set_parameters
from policy.remote.served import holding, remote_bundle, talking
from qos import STATE
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from tiny_bundle import make_tiny_bundle


def test_the_text_changes_between_two_episodes_and_is_recorded(bench, root, tmp_path, task):
    asked: list[str] = []

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    told, said = [], {}
    bench.node.create_subscription(String, "/policy/instruction", lambda text: told.append(text.data), latched)
    bench.node.create_subscription(
        DiagnosticArray,
        "/diagnostics",
        lambda message: said.update((pair.key, pair.value) for item in message.status for pair in item.values),
        STATE,
    )
    with talking(holding(task, asked)) as address:
        remote_bundle(tmp_path / "pi", task, address, prompt="place it", timeout_ms=5000.0)
        harness = Harness(bench, root, tmp_path / "pi", samples=1, decoder="vanilla")
        assert harness.ready()
        bench.grant("policy")
        assert harness.until_decisions(3) and bench.until(lambda: told == ["place it"])
        assert set_parameters(bench, instruction="stack it")[0].successful
        (wrong,) = set_parameters(bench, instruction="stack it ")
        assert not wrong.successful and "space around" in wrong.reason
        before = len(harness.decisions)
        assert harness.until_decisions(before + 3)
        assert set(asked) == {"place it"} and told == ["place it"], "the text changed while the arm moved"
        bench.grant()
        harness.frames_without_decision()
        bench.grant("policy")
        assert harness.until_decisions(2)
        assert asked[-1] == "stack it" and told == ["place it", "stack it"]
        assert bench.until(lambda: said.get("instruction") == "stack it", START_S)


def test_a_text_for_a_policy_without_language_is_refused(bench, root, tmp_path, task):
    harness = Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task))
    assert harness.ready()
    bench.grant("policy")
    assert harness.until_decisions(1)
    (refused,) = set_parameters(bench, instruction="place it")
    assert not refused.successful
    assert "instruction is 'place it', but bundle tiny@" in refused.reason and "takes no text" in refused.reason
    assert set_parameters(bench, instruction="")[0].successful
    before = len(harness.decisions)
    assert harness.until_decisions(before + 2)


def test_a_text_at_the_start_for_a_policy_without_language_ends_the_node(bench, root, tmp_path, task):
    Harness(bench, root, make_tiny_bundle(tmp_path / "bundle", task), instruction="place it")
    status, output = bench.finish("policy", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "takes no text; valid is an empty one" in output
