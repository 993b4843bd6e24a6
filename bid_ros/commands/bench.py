"""``bid bench``: compare decoders in simulation."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from bid_ros.bench.kitchen.catalogue import KITCHEN
from bid_ros.bench.robomimic.catalogue import TASKS
from bid_ros.commands.arguments import WithDefaults, add_decoders, add_list
from bid_ros.commands.bench_demos import add_demos_parser
from bid_ros.commands.bench_diagnostic import add_diagnostic_parser
from bid_ros.commands.tasks import task_of, task_path
from bid_ros.core.errors import BidError
from bid_ros.core.extras import check_extra
from bid_ros.core.files import check_folder
from bid_ros.core.paths import share
from bid_ros.core.task import Task, load_task
from bid_ros.decoding import TERMS, VARIANTS, DecoderConfig, decoder_names

_USUAL: Final = ("metric", "trim", "mode_size", "decay", "ema_weight", "warm_start")
PUSHT, DOOR = "pusht", "door"
_SCRIPTS: Final = {KITCHEN: "scripts/train_kitchen.sh"} | {name: f"scripts/train_robomimic.sh {name}" for name in TASKS}


def add_parser(verbs: Any) -> None:
    """Add ``bench`` and its parts."""
    bench = verbs.add_parser(
        "bench",
        help="measure decoders in simulation",
        description="Measure what a decoder does to success, smoothness and latency.",
    )
    parts = bench.add_subparsers(title="benches", dest="bench", required=True, metavar="BENCH")
    _add_scenes(parts)
    add_diagnostic_parser(parts)
    add_demos_parser(parts)
    data = parts.add_parser("data", help="turn the human demonstrations of a bench into a data set")
    data.add_argument(
        "file",
        help="pusht_cchi_v7_lowdim.npz, as Diffusion Policy publishes it (Chi et al., 2023), or adroit_door_human.npz, "
        "of hand_dapg (Rajeswaran et al., 2018), or low_dim_v15.hdf5, of robomimic (Mandlekar et al., 2021), or the "
        "folder kitchen_demos_multitask (Gupta et al., 2019), or one with its arrays (Shafiullah et al., 2022)",
    )
    names = f"pusht, pusht_history, door, {KITCHEN} or {', '.join(TASKS)} (default pusht)"
    data.add_argument("--task", default=PUSHT, help=names)
    data.add_argument("-o", "--out", default="", help="file to write (default data/TASK.npz)")
    data.set_defaults(run=run_data)


def _add_scenes(parts: Any) -> None:
    pusht = parts.add_parser(
        PUSHT,
        aliases=[DOOR, KITCHEN, *TASKS],
        help="closed- and open-loop rollouts of Push-T, Adroit's door, Franka Kitchen, or a task of robomimic",
        description="Roll out every combination of the comma lists on the same starts. The same seeds give the same "
        "numbers, whatever --batch and --workers are. Running the command again goes on where it stopped. Only Push-T "
        "takes --drift and --jump.",
        formatter_class=WithDefaults,
    )
    grid = pusht.add_argument_group("what is compared (comma lists)")
    grid.add_argument("--preset", choices=("published",), help="the published decoders and conditions")
    add_decoders(
        grid,
        default="vanilla,bid",
        help=f"decoders: {', '.join(decoder_names())}; settings follow a colon, as in bid:decay=0.3,metric=l1",
    )
    add_list(grid, "--action-horizon", str, dest="horizon", default="1", help="actions a decision; all = open loop")
    add_list(grid, "--noise", float, default="0", help="strength of the action noise")
    add_list(grid, "--drift", float, default="0", help="px that the block moves along x and y a step")
    add_list(grid, "--jump", float, default="0", help="px by which the block is displaced once, to time reactions")
    add_list(grid, "--delay", int, default="0", help="steps from an observation to the first action decided on it")
    add_list(grid, "--samples", int, default="16", help="N, samples a decision")
    add_list(grid, "--variant", str, default="corrected", help=f"one of {', '.join(VARIANTS)}")
    add_list(grid, "--terms", str, default="bid", help=f"one of {', '.join(TERMS)}")
    grid.add_argument("--no-weak", action="store_true", help="do without the weak policy")
    plan = pusht.add_argument_group("how often")
    plan.add_argument("--episodes", type=int, default=100, help="episodes of each cell and seed")
    starts = "comma list of seeds; seed 1 has the published starts"
    add_list(plan, "--seed", int, dest="seeds", default="1,2,3", help=starts)
    plan.add_argument("--steps", type=int, help="longest episode; full score ends it early (default: the task's)")
    run = pusht.add_argument_group("how it is run")
    run.add_argument("--bundle", default="", help="folder of the policy (default: models/BENCH)")
    run.add_argument("--task", default="", help="name or path of the task file (default: what the bundle is of)")
    run.add_argument("--correction", default="", help="folder of the policy's correction head (bid policy correct)")
    run.add_argument("--runtime", default="auto", help="auto, openvino, onnx or torch")
    run.add_argument("--batch", type=int, default=32, help="most environments in one network call")
    run.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, each with one thread")
    run.add_argument("--ray", default="", metavar="ADDRESS", help="run on a Ray cluster instead; local starts one")
    run.add_argument("-o", "--out", default="", help="folder of results (default: runs/BENCH)")
    run.add_argument("--json", action="store_true", help="print summary.json on standard output")
    pusht.set_defaults(run=run_scene)


def run_scene(options: argparse.Namespace) -> int:
    """Run the bench."""
    from bid_ros.bench.cell import BenchPlan, build_cells
    from bid_ros.bench.scene import SCENES, BenchSetup
    from bid_ros.bench.summary import markdown
    from bid_ros.bench.sweep import SUMMARY, run_bench, write_outcome, write_page
    from bid_ros.core.worker_pool import WorkerPool
    from bid_ros.policy.bundle import bundled_task

    name = options.bench
    for setting, moves in (("jump", "jumps"), ("drift", "drifts")):
        if name != PUSHT and any(values := getattr(options, setting)):
            said = ", ".join(map(str, values))
            raise BidError(f"{name}: {setting} is {said}; valid is 0: only Push-T's block {moves}")
    out = Path(options.out or f"runs/{name}")
    check_folder(out)
    pool = WorkerPool(options.workers, options.ray)
    scene = SCENES[name]()
    scene.make(0.0)  # its simulator may be missing: before long work, as whoever makes that gets the rest with it
    check_extra("bench", "the bench", "tqdm", "onnx")
    if options.ray:
        check_extra("ray", "--ray", "ray")
    bundle = options.bundle or _shipped(name)
    made_for = "" if options.task else bundled_task(_bundle(bundle))
    task = _seen(task_of(options.task, made_for, bundle), name)
    cells = build_cells(task, grid_lists(options))
    steps = round(task.episode_timeout * task.rate_hz) if options.steps is None else options.steps
    plan = BenchPlan(options.episodes, options.seeds, steps, options.batch)
    correction = Path(options.correction).absolute() if options.correction else None
    setup = BenchSetup(_bundle(bundle), task, scene, options.runtime, correction)
    outcome = run_bench(cells, plan, setup, out, pool)
    write_outcome(out, outcome)
    said = json.dumps(json.loads((out / SUMMARY).read_text())) if options.json else markdown(outcome.summaries)
    print(said, flush=True)
    print("drawing the report", file=sys.stderr)
    print(f"report: {write_page(out, outcome, setup.scene)}", file=sys.stderr)
    return 0


def _shipped(name: str) -> str:
    """Return the folder of a bench's own policy. Raises BidError with the line that makes one that is missing."""
    folder = f"models/{name}"
    try:
        share(*Path(folder).parts)
    except BidError as error:
        script = _SCRIPTS.get(name)
        how = f"make one with: {script}" if script else "valid is --bundle FOLDER"
        raise BidError(f"the bench {name} has no policy: {error}; {how}") from error
    return folder


def _seen(task: Task, bench: str) -> Task:
    """Return a task that observes what a bench shows. Raises BidError for another one."""
    shown, names = ({item.name for item in (*of.observation, *of.action)} for of in (load_task(task_path(bench)), task))
    if names != shown:
        raise BidError(
            f"task '{task.name}' has the features {', '.join(sorted(names))}; valid are those of the bench {bench}: "
            f"{', '.join(sorted(shown))}"
        )
    return task


def grid_lists(options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of every setting. Raises BidError for a value that is not valid."""
    from bid_ros.bench.cell import PRESETS

    lists: dict[str, Any] = {name: value for name, value in vars(options).items() if isinstance(value, tuple)}
    del lists["seeds"]
    lists["weak"] = [not options.no_weak]
    usual = {name: [getattr(DecoderConfig(), name)] for name in _USUAL}  # unless the decoder's text says otherwise
    return {**lists, **usual, **PRESETS.get(options.preset, {})}


def _bundle(text: str) -> Path:
    """Return the path of a bundle: the folder as given, or the shipped one."""
    path = Path(text)
    # Absolute, because the processes of a cluster start in another folder.
    return path.absolute() if path.exists() or path.is_absolute() else share(*path.parts)


def run_data(options: argparse.Namespace) -> int:
    """Write the data set."""
    from bid_ros.bench.door import data as door
    from bid_ros.bench.kitchen import data as kitchen
    from bid_ros.bench.pusht import data as pusht
    from bid_ros.bench.robomimic import data as robomimic
    from bid_ros.recording.dataset import check_place

    task = load_task(task_path(options.task))
    out = Path(options.out or f"data/{task.name}.npz")
    check_place(out)
    readers = {DOOR: door, KITCHEN: kitchen, **dict.fromkeys(TASKS, robomimic)}
    dataset = readers.get(task.name, pusht).human_dataset(options.file, task)
    dataset.save(out)
    print(f"{out}: {dataset.episodes} episodes, {dataset.rows} rows, sha256 {dataset.sha256}", file=sys.stderr)
    return 0
