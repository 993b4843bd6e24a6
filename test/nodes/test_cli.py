"""The ``bid`` command as a person meets it: help, bad input, and one whole run in the twin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from forked_bid import bid
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from tiny_bundle import make_tiny_bundle

from bid_ros import __version__
from bid_ros.cli import CLOSED_PIPE, GROUPS, main
from bid_ros.core.task import load_task
from bid_ros.core.topics import DIAGNOSTICS, ROSOUT, TF, TF_STATIC
from bid_ros.episodes.stops import LEFT
from bid_ros.formats import build_dataset
from bid_ros.recording.reader import BagReader

LIMIT_S = 40.0
SHARED = {DIAGNOSTICS, ROSOUT, TF, TF_STATIC}  # by all systems of a graph
VERBS = [name for group in GROUPS.values() for name in group]
HEAVY = (
    "msgpack",
    "websockets",
    "scipy",
    "matplotlib",
    "cv2",
    "rosbags",
    "torch",
    "pyarrow",
    "av",
    "zarr",
    "onnxruntime",
    "openvino",
    "mujoco",
    "rclpy",
)


def test_a_process_of_its_own_runs_the_command():
    """The other tests here fork it from a process that has imported it."""
    done = subprocess.run([sys.executable, "-m", "bid_ros.cli", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout == bid("--help").stdout and "usage: bid" in done.stdout


def test_a_reader_that_is_gone_ends_a_command_without_a_traceback():
    """As ``head`` is once it has its lines."""
    words = [sys.executable, "-m", "bid_ros.cli", "check", "franka_place", "--json"]
    command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    command.stdout.close()
    assert (command.wait(LIMIT_S), command.stderr.read()) == (CLOSED_PIPE, "")


def test_the_end_of_input_at_a_question_is_one_sentence(monkeypatch, capsys):
    def ask(_):
        raise EOFError

    monkeypatch.setattr("bid_ros.nodes.client.reset_stop", ask)
    assert main(["reset"]) == 2
    assert capsys.readouterr().err == "error: nobody answers here any more; valid is an answer to the question\n"


def test_the_version_is_that_of_the_package():
    assert bid("--version").stdout == f"bid_ros {__version__}\n"


def test_help_names_every_verb_and_says_when_hardware_is_touched():
    done = bid("--help")
    assert done.returncode == 0
    for group in GROUPS:
        assert f"\n{group}:\n" in done.stdout, group
    for verb in VERBS:
        assert f"\n    {verb} " in done.stdout, verb
    assert "--robot-ip" in done.stdout and "twin" in done.stdout


def test_help_does_not_wait_for_libraries_that_it_does_not_need():
    """They take seconds to import, which a person at a prompt feels at every call."""
    code = f"import sys, bid_ros.cli; bid_ros.cli.build_parser(); print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_of_up_says_what_the_exit_status_means():
    done = bid("up", "--help")
    assert done.returncode == 0
    options = (
        "--robot-ip",
        "--decoder",
        "--samples",
        "--moving",
        "--episodes",
        "--seed",
        "--bundle",
        "--out",
        "--json",
    )
    for option in (*options, "0 the run completed", "3 safety stopped it", "franka_place"):
        assert option in " ".join(done.stdout.split()), option


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--samples", "0"), "samples is 0; valid is 1 to 256"),
        (("--moving", "0.15"), "moving is 0.15; valid is 0.0 to 0.1"),
        (("--episodes", "-1"), "episodes is -1; valid is"),
        (("--action-horizon", "20"), "action_horizon is 20; valid is 1 to 15"),
        (("--seed", "2147483648"), "seed is 2147483648; valid is"),
        (("--bundle", "/nonexistent"), "/nonexistent does not exist"),
        (("--namespace", "2left"), "namespace is '2left'; valid are up to 100 letters"),
        (("--parameters", "/nonexistent"), "parameter file /nonexistent does not exist"),
        (("--decoder", "best"), "decoder 'best' does not exist; valid are"),
    ],
)
def test_bad_arguments_of_up_end_with_status_2_and_one_sentence(tmp_path, root, ros_domain, arguments, word):
    bundle = make_tiny_bundle(tmp_path / "bundle", load_task(root / "config" / "franka_place" / "task.yaml"))
    done = bid("up", "franka_place", "--out", str(tmp_path / "out"), "--bundle", str(bundle), *arguments, limit_s=90)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error: ") == 1 and word in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out").exists(), "processes were started for a run that cannot work"


@pytest.mark.parametrize(
    "arguments", [("up", "--driver", "scripted", "--styles", "recover"), ("demos", "--count", "recover=1")]
)
def test_a_style_that_the_system_does_not_have_is_refused(tmp_path, ros_domain, arguments):
    verb, *rest = arguments
    done = bid(verb, "franka_place", *rest, "--out", str(tmp_path / "out"))
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert "style is 'recover'; valid" in done.stderr and "clean, diverse" in done.stderr


def test_a_scripted_demonstration_on_a_robot_is_refused(tmp_path):
    out = tmp_path / "out"
    arguments = ("--driver", "scripted", "--styles", "clean", "--robot-ip", "192.0.2.1", "--out", str(out))
    done = bid("up", "ur5_pick", *arguments)
    assert done.returncode == 2 and done.stderr.count("error: ") == 1
    assert "device 'scripted' works in the twin only" in done.stderr
    assert not out.exists()


def test_a_system_that_does_not_exist_is_refused(tmp_path):
    for named, word in (("pour_tea", "franka_place, ur5_pick"), (str(tmp_path), "it has no system.yaml")):
        done = bid("up", named, "--out", str(tmp_path / "out"))
        assert done.returncode == 2 and done.stderr.count("error: ") == 1 and word in done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("up", "franka_place", "--speed", "1"), "--speed"),
        ((), "VERB"),
    ],
)
def test_what_is_no_command_is_refused_with_usage(arguments, word):
    done = bid(*arguments)
    assert done.returncode == 2
    assert "usage: bid" in done.stderr and word in done.stderr


def answer(bench, services, arguments, text=""):
    """Run ``bid`` beside services that the test offers; return what it did and what was called."""
    called = []

    def handler(name, success):
        def handle(request, response):
            called.append((name, getattr(request, "data", None)))
            said = success if isinstance(success, str) else f"said {name}"
            response.success, response.message = bool(success), said
            return response

        return handle

    for name, (kind, success) in services.items():
        bench.node.create_service(kind, name, handler(name, success))
    results = []
    thread = threading.Thread(target=lambda: results.append(bid(*arguments, text=text)))
    thread.start()
    assert bench.until(lambda: results, LIMIT_S)
    thread.join()
    return results[0], called


@pytest.mark.parametrize(("works", "status"), [(True, 0), (False, 1)])
def test_reset_asks_arm_and_safety_and_says_what_they_said(bench, works, status):
    services = {"/arm/reset": (Trigger, works), "/safety/reset": (Trigger, True)}
    done, called = answer(bench, services, ["reset"])
    assert done.returncode == status
    assert [name for name, _ in called] == (["/arm/reset", "/safety/reset", "/arm/reset"] if works else ["/arm/reset"])
    assert "said /arm/reset" in done.stdout


def test_operator_passes_start_verdict_discard_undo_and_note_on(bench):
    triggers = ("start", "discard", "undo")
    services = {f"/episode/{name}": (Trigger, True) for name in triggers} | {"/episode/outcome": (SetBool, True)}
    notes = []
    bench.node.create_subscription(String, "/episode/note", lambda message: notes.append(message.data), 10)
    done, called = answer(bench, services, ["operator"], "\ny\nx\n\nno\nn\n\nd\nu\nt the cup was wet\nq\n")
    assert done.returncode == 0, done.stderr
    start = ("/episode/start", None)
    assert called == [
        *(start, ("/episode/outcome", True), start, ("/episode/outcome", False)),
        *(start, ("/episode/discard", None), ("/episode/undo", None)),
    ]
    assert notes == ["the cup was wet"] and "said /episode/undo" in done.stdout
    assert "'x' is unknown; valid are [enter], u, t TEXT and q" in done.stdout
    assert "'no' is unknown; valid are y, n, d" in done.stdout
    assert done.stdout.count("keep away until the arm rests") == 3, "once after each outcome"


def test_operator_does_not_ask_for_the_outcome_of_what_did_not_start(bench):
    done, called = answer(bench, {"/episode/start": (Trigger, False)}, ["operator"], "\nq\n")
    assert done.returncode == 0 and called == [("/episode/start", None)]
    assert "not taken: said /episode/start" in done.stdout and "how did it end" not in done.stdout


def test_operator_who_lets_the_arm_go_on_after_a_stop_has_started_no_episode(bench):
    done, called = answer(bench, {"/episode/start": (Trigger, LEFT)}, ["operator"], "\nq\n")
    assert done.returncode == 0 and called == [("/episode/start", None)]
    assert LEFT in done.stdout and "how did it end" not in done.stdout


def test_reset_of_a_system_in_a_namespace_asks_its_nodes(bench):
    names = ("/left/arm/reset", "/left/safety/reset", "/arm/reset")
    done, called = answer(bench, dict.fromkeys(names, (Trigger, True)), ["reset", "--namespace", "left"])
    assert done.returncode == 0
    assert [name for name, _ in called] == ["/left/arm/reset", "/left/safety/reset", "/left/arm/reset"]
    done = bid("reset", "--namespace", "le ft")
    assert done.returncode == 2 and "error: namespace is 'le ft'; valid are" in done.stderr


def test_reset_without_a_system_says_how_to_start_one(ros_domain):
    done = bid("reset")
    assert done.returncode == 2
    assert done.stderr.count("error: ") == 1 and "bid up" in done.stderr


def assert_moved_inside_the_limits(bag, task):
    done = bid("episodes", "motion", str(bag), "--task", task, "--json")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert json.loads(done.stdout)["changes_of_chunk"] > 0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_demonstration_of_picking_is_recorded_in_the_twin(root, tmp_path, ros_domain, patient):
    out = tmp_path / "out"
    command = (
        f"up ur5_pick --driver scripted --styles clean --episodes 1 --moving 0 --seed 3 --json --out {out}".split()
    )
    command += ["--namespace", "cell/right"]
    done = bid(*command, "--parameters", patient, limit_s=90)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["task"], run["episodes"], run["successes"]) == ("ur5_pick", 1, 1)
    task = load_task(root / "config" / "ur5_pick" / "task.yaml")
    data = build_dataset([out / "bag"], task)
    data.validate(task)
    widths = data.actions[:, task.columns("gripper").start]
    assert data.labels[0] == "clean" and widths[0] == widths[-1] == 0.085 and widths.min() == 0.0
    with BagReader(out / "bag") as reader:
        counts = reader.counts
    assert_moved_inside_the_limits(out / "bag", "ur5_pick")
    assert {name for name in counts if not name.startswith("/cell/right/")} == SHARED
    assert counts["/cell/right/heartbeat"] > 100 and counts["/rosout"] > 0 and counts["/tf"] > 20
    truth = "/cell/right/ground_truth"
    assert counts[f"{truth}/saucer_pose"] > 10 and f"{truth}/object_pose" not in counts
    assert not [log for log in (out / "logs").glob("*.log") if "Traceback" in log.read_text()]


def test_a_twin_that_cannot_render_ends_the_start_with_one_sentence(tmp_path, ros_domain, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_FILENAMES", os.devnull)
    done = bid("up", "franka_place", "--episodes", "1", "--out", str(tmp_path), limit_s=100)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error: ") == 1
    assert "error: no offscreen rendering: egl says 'Cannot initialize a EGL device display" in done.stderr
    assert "did not happen within" not in done.stderr, "it waited for a camera that cannot come"
    assert "cameras.yaml" not in (tmp_path / "logs/camera.log").read_text()


@pytest.mark.timeout(240)
def test_a_whole_run_in_the_twin(root, task, tmp_path, ros_domain, patient):
    shipped = root / "models" / "franka_place"
    bundle = shipped if shipped.is_dir() else make_tiny_bundle(tmp_path / "bundle", task)
    out = tmp_path / "out"
    # An episode ends after a few seconds, whether the cup is hit by then or not.
    system = shutil.copytree(root / "config" / "franka_place", tmp_path / "franka_place")
    content = yaml.safe_load((system / "task.yaml").read_text())
    (system / "task.yaml").write_text(yaml.safe_dump({**content, "episode_timeout": 3.0}))
    # Every sample on a busy computer too, and a runtime that starts in a second while twin and cameras run.
    policy = {"budget_ms": 0.0, "runtime": "onnx"}
    parameters = yaml.safe_load(Path(patient).read_text()) | {"policy": {"ros__parameters": policy}}
    (file := tmp_path / "parameters.yaml").write_text(yaml.safe_dump(parameters))
    command = f"up {system} --episodes 1 --moving 0 --decoder bid --samples 4 --json --bundle {bundle} --out {out}"
    done = bid(*command.split(), "--parameters", str(file), limit_s=100)
    # What an untrained policy asks for is noise around its pose, which safety may have to stop.
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    run = json.loads((out / "run.json").read_text())
    assert json.loads(done.stdout) == run
    assert set(run) >= {"episodes", "successes", "decisions", "missed", "decision_ms", "command_age_ms", "decoder"}
    assert run["episodes"] == 1 and (run["decoder"], run["samples"]) == ("bid", 4), done.stderr
    assert len(run["bundle_sha256"]) == 64
    assert run["decisions"] > 0, "the run ended before the policy had acted"
    assert {"p50", "p99", "max"} <= set(run["decision_ms"]) and {"p50", "p99"} <= set(run["command_age_ms"])
    with BagReader(out / "bag") as reader:
        assert reader.was_complete
        counts = reader.counts
        kinds = [item.message.kind for item in reader.messages(["/episode/event"])]
    # A busy computer may stop a preparation, which is counted and begun again.
    stopped = [stop for stop in run["stops"] if stop["outcome_class"] == "infrastructure"]
    assert kinds == [0] * len(stopped) + [0, 1, 2], run["stops"]
    assert counts["/policy/decision"] >= run["decisions"] - 2 and counts["/joint_states"] > 20
    assert_moved_inside_the_limits(out / "bag", "franka_place")
    assert (out / "run.gif").stat().st_size > 1000
    names = {"twin", "camera", "safety", "arm", "policy", "recorder", "episode"}
    assert {file.stem for file in (out / "logs").glob("*.log")} >= names
    assert not [log for log in (out / "logs").glob("*.log") if "Traceback" in log.read_text()]
