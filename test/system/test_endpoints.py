"""The ends that the nodes of a running twin really have are those of the policy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from bid_ros.recording.events import check_events
from bid_ros.system.endpoints import endpoints_of
from bid_ros.system.folder import find_system

START_S = 90.0
KINDS = ("publish", "hear", "offer", "call")
# What only a person at the controls, another device, or a robot needs.
UNUSED = {
    "teleop": {"teleop/switch"},
    "safety": {"safety/shadow"},
    "episode": {"/diagnostics", "teleop/switch", "safety/shadow", "episode/start", "episode/undo", "heartbeat"},
}


def names(bench, node):
    """What a node publishes, hears, offers and calls, by full names."""
    graph = bench.node
    asked = (
        graph.get_publisher_names_and_types_by_node,
        graph.get_subscriber_names_and_types_by_node,
        graph.get_service_names_and_types_by_node,
        graph.get_client_names_and_types_by_node,
    )
    return [{name for name, _ in ask(node, "/")} for ask in asked]


def full(node, given):
    """Full names of what the policy says of a node."""
    return {name.replace("~", f"/{node}") if name[0] in "~/" else f"/{name}" for name in given}


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_running_twin_opens_what_the_policy_allows(bench, tmp_path):
    system = find_system("ur5_pick")
    nodes = endpoints_of(system, twin=True)
    command = "up ur5_pick --driver scripted --styles clean --episodes 1 --moving 0 --seed 3 --out"
    words = [sys.executable, "-m", "bid_ros.cli", *command.split(), str(tmp_path / "out")]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=dict(os.environ)) as run:
        try:
            started = {"twin", "camera", "safety", "arm", "teleop", "recorder", "episode"}
            own = {f"/{name}" for name in ("safety/chunk", "arm/status", "twin/scene", "teleop/chunk", "episode/event")}

            def complete():
                published = {name for name, _ in bench.node.get_topic_names_and_types()}
                return started <= set(bench.node.get_node_names()) and own <= published and "/arm/reset" in {
                    name for name, _ in bench.node.get_service_names_and_types()
                }  # fmt: skip

            assert bench.until(complete, START_S)
            bench.until(lambda: False, 2.0)
            for name in sorted(started):
                ends = nodes[name]
                allowed = (ends.publish, ends.subscribe, ends.serve, ends.call)
                for kind, found, given in zip(KINDS, names(bench, name), allowed, strict=True):
                    may = full(name, given)
                    assert found <= may, f"{name} may not {kind} {sorted(found - may)}"
                    if (name, kind) != ("teleop", "hear"):  # devices of all kinds
                        unused = full(name, UNUSED.get(name, ()))
                        assert may - found <= unused, f"{name} does not {kind} {sorted(may - found - unused)}"
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(timeout=60)
    assert check_events(tmp_path / "out") == ""
    lines = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    assert (lines[0]["kind"], lines[0]["task"], lines[-1]["kind"]) == ("start", system.task.name, "end")
    told = json.loads((tmp_path / "out" / "run.json").read_text())["events"]
    assert told["lines"] == len(lines)
