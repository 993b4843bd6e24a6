from __future__ import annotations

import json

import pytest
from tiny_bundle import make_tiny_bundle
from tiny_vqbet import make_tiny_vqbet

from bid_ros.bench.cell import build_cells
from bid_ros.cli import build_parser, main
from bid_ros.commands.bench import grid_lists
from bid_ros.core.paths import share
from bid_ros.core.task import load_task


@pytest.fixture
def task():
    return load_task(share("config", "pusht.yaml"))


def cells_of(task, *arguments):
    return build_cells(task, grid_lists(build_parser().parse_args(["bench", "pusht", *arguments])))


def test_the_published_comparison(task):
    cells = cells_of(task, "--preset", "published")
    assert {cell.decoder for cell in cells} == {"vanilla", "warmstart", "ema", "bid", "bid+ema", "bid+warmstart"}
    assert [(cell.horizon, cell.noise) for cell in cells] == [(1, 0.0), (1, 1.0)] * 6
    assert {cell.samples for cell in cells if cell.decoder.startswith("bid")} == {16}


def test_comma_lists_span_a_grid(task):
    grid = ["--decoder", "vanilla,bid", "--action-horizon", "1,all", "--noise", "0, 1.5", "--samples", "1,4"]
    cells = cells_of(task, *grid)
    assert len(cells) == 2 * 2 * (1 + 2)
    assert {cell.horizon for cell in cells} == {1, 15}


def test_settings_of_a_decoder_are_cells_of_their_own(task):
    decoders = "bid,bid:decay=0.3,metric=l1,bid:decay=0.5,ema,ema:ema_weight=.2,ema:ensemble=.01"
    *cells, ensemble = cells_of(task, "--decoder", decoders)
    assert (ensemble.decoder, ensemble.ema_weight, ensemble.ensemble) == ("ema", None, 0.01)
    assert [(cell.decoder, cell.decay, cell.metric, cell.ema_weight) for cell in cells] == [
        ("bid", 0.5, "l2", None),  # which bid:decay=0.5 is too
        ("bid", 0.3, "l1", None),
        ("ema", None, None, 0.5),
        ("ema", None, None, 0.2),
    ]


def test_a_bench_of_a_policy_with_more_history(tmp_path, capsys):
    """The task is the one that the bundle is of. Nothing was published for a policy of another family."""
    pytest.importorskip("gym_pusht")
    bundle = make_tiny_vqbet(tmp_path / "bundle", load_task(share("config", "pusht_history.yaml"))).path
    arguments = ["bench", "pusht", "--bundle", str(bundle), "--decoder", "vanilla,bid", "--episodes", "1"]
    arguments += ["--action-horizon", "1,all", "--runtime", "onnx", "--workers", "1", "--seed", "21"]
    assert main([*arguments, "--steps", "300", "--samples", "16", "--out", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [cell["cell"]["horizon"] for cell in found["cells"]] == [1, 5, 1, 5]
    assert not found["batched"]
    assert {cell["published"] for cell in found["cells"]} == {""}
    assert main([*arguments, "--decoder", "bid+warmstart", "--out", str(tmp_path / "refused")]) == 2
    assert "starts from its last decision" in capsys.readouterr().err


def test_a_bundle_of_a_task_that_push_t_does_not_show(tmp_path, capsys):
    pytest.importorskip("gym_pusht")
    bundle = share("models", "franka_place")
    assert main(["bench", "pusht", "--bundle", str(bundle), "--out", str(tmp_path)]) == 2
    assert "those of the bench pusht: agent_position, block_keypoints" in capsys.readouterr().err


def test_a_bench_from_the_command_line(task, tmp_path, capsys):
    pytest.importorskip("gym_pusht")
    bundle = make_tiny_bundle(tmp_path / "bundle", task)
    arguments = ["bench", "pusht", "--bundle", str(bundle), "--episodes", "2", "--seed", "1", "--steps", "6"]
    arguments += ["--samples", "4", "--workers", "1", "--runtime", "onnx", "--out", str(tmp_path / "out"), "--json"]
    assert main(arguments) == 0
    first = json.loads(capsys.readouterr().out)
    assert [cell["cell"]["decoder"] for cell in first["cells"]] == ["vanilla", "bid"]
    assert (tmp_path / "out" / "report.html").exists()

    assert main(arguments) == 0, "running it again has nothing left to do"
    again = json.loads(capsys.readouterr().out)
    assert [cell["score"] for cell in again["cells"]] == [cell["score"] for cell in first["cells"]]

    rows = tmp_path / "out" / "episodes.jsonl"
    rows.write_text(rows.read_text()[:-10])
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and "damaged in line 4, nothing was changed" in error[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise", "much"], "--noise is 'much'; valid is a comma list of numbers"),
        (["--action-horizon", "16"], "horizon 16 with delay 0 does not fit"),
        (["--action-horizon", "long"], "horizon is 'long'"),
        (["--decoder", "best"], "decoder 'best' is unknown"),
        (["--out", f"{__file__}/below"], "test_bench.py is a file; valid is a folder"),
        (["--decoder", "vanilla:memory=bad"], "memory is 'bad'; valid is one of nearest, between"),
        (["--decoder", "bid+lead"], "'bid+lead' moves a commanded position on, but task 'pusht' commands points"),
        (["--seed", "0"], "seeds are [0]"),
        (["--workers", "0"], "workers is 0"),
        (["--samples", "16,1000000000"], "samples is 1000000000; valid is 1 to 256"),
        (["--samples", "0"], "samples is 0; valid is 1 to 256"),
        (["--samples", "4", "--decoder", "bid:mode_size=3"], "valid with 4 samples is at most 2"),
        (["--decoder", "bid-paper"], "decoder 'bid-paper' is now written 'bid:variant=paper'"),
        (
            ["--decay", "0.1,0.3"],
            "bid bench pusht has no --decay any more: say it in the list: --decoder bid:decay=0.3",
        ),
        (["--trim=nearest"], "has no --trim any more: say it in the list: --decoder bid:variant=paper,trim=nearest"),
        (["--bundle", "/nowhere"], "bundle folder /nowhere does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path, capsys, arguments, message):
    common = ["--task", "pusht", "--out", str(tmp_path / "out")]
    assert main(["bench", "pusht", *common, *arguments, "--bundle", "/nowhere"]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and message in error[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["peers", "system"])
def test_a_bench_that_moved_says_where(capsys, name):
    assert main(["bench", name, "franka_place", "--samples", "4"]) == 2
    assert (
        f"bid bench {name} is a script of a checkout of bid_ros now: python scripts/results {name}"
        in capsys.readouterr().err
    )


def test_demonstrations_go_into_a_file(tmp_path, capsys):
    for out, said in ((tmp_path, "which is a folder; valid is a file"), (f"{__file__}/a.npz", "is a file; valid is a")):
        assert main(["bench", "demos", "lift", "--count", "1", "--out", str(out)]) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("setting", "moves"), [("jump", "jumps"), ("drift", "drifts")])
def test_what_lies_on_a_table_does_not_move(tmp_path, capsys, setting, moves):
    assert main(["bench", "lift", f"--{setting}", "0,20", "--out", str(tmp_path / "out")]) == 2
    assert f"lift: {setting} is 0.0, 20.0; valid is 0: only Push-T's block {moves}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["door", "--episodes", "1"],
        ["lift", "--episodes", "1"],
        ["kitchen", "--episodes", "1"],
        ["demos", "lift"],
        ["demos", "kitchen"],
    ],
)
def test_a_bench_without_its_simulator_says_how_to_get_it(tmp_path, capsys, arguments):
    assert main(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and "in an environment of its own; make it with: make benchmarks" in error[0]
    assert not (tmp_path / "out").exists()
