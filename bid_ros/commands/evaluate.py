"""``bid evaluate``: what each decoder would have chosen in recorded episodes."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP, add_list
from bid_ros.core.errors import BidError
from bid_ros.system.folder import find_system

DECODERS: Final = "vanilla,ema,bid"


def add_parser(verbs: Any) -> None:
    """Add ``evaluate``."""
    parser = verbs.add_parser(
        "evaluate",
        help="compare decoders on recorded episodes",
        description="Let decoders decide at every step of recorded episodes, from the same observations and with the "
        "same noise, and hold their choices against what was done. Nothing moves. It reads bags and data sets of "
        "every format that bid train reads. Writes evaluation.json, evaluation.md and evaluation.png to --out.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("data", help="bags, a folder of runs, or a data set")
    add_list(parser, "--decoders", str, default=DECODERS, help=f"comma list of decoders (default {DECODERS})")
    parser.add_argument("--samples", type=int, default=16, help="N, strong samples a decision (default 16)")
    parser.add_argument("--bundle", default="", help="folder of the policy bundle (default: system.yaml's)")
    parser.add_argument("--runtime", default="auto", help="network runtime (default auto)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default 0)")
    parser.add_argument("--out", default="out/evaluation", help="folder for the results (default out/evaluation)")
    parser.add_argument("--json", action="store_true", help="print evaluation.json on standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate. Return 0."""
    from bid_ros.commands.datasets import progress_bar
    from bid_ros.evaluation.evaluate import Evaluation
    from bid_ros.evaluation.report import draw, markdown, summary
    from bid_ros.formats import mapped, open_source
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.registry import load_policy

    system = find_system(options.system)
    task = system.task
    bundle = load_bundle(Path(system.bundle(options.bundle)), task)
    decoders = tuple(dict.fromkeys(filter(None, options.decoders)))
    if not decoders:
        raise BidError("--decoders names none; valid is a comma list of one or more")
    policy = load_policy(bundle, task, options.runtime)
    evaluation = Evaluation(task, bundle, policy, decoders, options.samples, options.seed)
    source = mapped(open_source(options.data, task), task)
    with progress_bar(source.contents) as progress:
        episodes = list(evaluation.run(source, progress))
    if not episodes:
        raise BidError(f"{options.data} holds no episode; valid is data with one or more that ended in success")
    found = summary(episodes)
    found |= {"task": task.name, "bundle_sha256": bundle.sha256, "samples": options.samples, "seed": options.seed}
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "evaluation.json").write_text(json.dumps({**found, "by_episode": [vars(item) for item in episodes]}))
    (out / "evaluation.md").write_text(markdown(found) + "\n")
    draw(found, out / "evaluation.png")
    print(json.dumps(found) if options.json else markdown(found))
    print(f"wrote {out}/evaluation.json, .md and .png", file=sys.stderr)
    return 0
