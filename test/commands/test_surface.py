"""How many verbs and options ``bid`` has, and what it says of those that have another name today."""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bid_ros.bench.diagnostic.experiment import reading_for
from bid_ros.cli import FIRST, GROUPS, build_parser, main
from bid_ros.commands.examples import EXAMPLES, leaves
from bid_ros.commands.moved import TABLE
from bid_ros.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]
# With `cameras` and `accept`, `--also`, `--ignore-field` and `--verify` for what others have, and `--decision-rate`.
# Then `bench demos`, and two of `train`, three of `policy correct` and one of `bench` for decisions that arrive late.
# `up` and `teleop --no-prepare`: nothing goes to a start by itself.
MOST_VERBS = 26
MOST_OPTIONS = 308
MOVED = json.loads(TABLE.read_text())


def options_of(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield verb and option, ``--x`` and ``--no-x`` as one; what every program has, help and version, is left out."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers = {
                id(inner): (name, inner) for name, inner in reversed(action.choices.items())
            }  # an alias is no other
            for name, inner in parsers.values():
                yield from options_of(inner, f"{path} {name}".strip())
        elif action.option_strings and not isinstance(action, argparse._HelpAction | argparse._VersionAction):
            yield path, action.option_strings[-1]


def test_every_option_says_what_it_is_and_its_default_once():
    wrong = []
    for parser in leaves(build_parser()):
        formatter = parser._get_formatter()
        for action in parser._actions:
            text = formatter._expand_help(action) if action.help else ""
            has_default = action.default not in (None, False, "", (), [], argparse.SUPPRESS) and action.option_strings
            counted = len(re.findall(r"\(default:? |; default |, default ", text))
            if not text or re.search(r"\bNone\b", text) or counted > 1 or (has_default and not counted):
                wrong.append(f"{parser.prog} {action.option_strings or action.dest}: {text}")
    assert not wrong, "\n".join(wrong)


def test_the_help_of_every_verb_has_an_example_that_can_be_typed():
    parser = build_parser()
    for verb in leaves(parser):
        assert " ".join(verb.format_help().split()).count(f"Example: {verb.prog}") == 1, verb.prog
    for text in EXAMPLES:
        assert parser.parse_args(text.split()).run, text


def test_the_examples_name_formats_and_files_that_are_taken():
    options = {text: build_parser().parse_args(text.split()) for text in EXAMPLES}
    assert {each.to for each in options.values() if hasattr(each, "to")} <= set(FORMATS.names())
    published = next(each for text, each in options.items() if text.startswith("bench data "))
    data = next(verb for verb in leaves(build_parser()) if verb.prog == "bid bench data")
    assert published.file in data.format_help()


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from every_parser(inner)


def test_the_help_has_no_line_that_a_terminal_breaks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    wide = [
        f"{parser.prog}: {line}"
        for parser in every_parser(build_parser())
        for line in parser.format_help().splitlines()
        if len(line) > 120
    ]
    assert not wide


def test_the_values_of_the_diagnostic_example_exist():
    options = [build_parser().parse_args(text.split()) for text in EXAMPLES]
    (diagnostic,) = (item for item in options if getattr(item, "bench", "") == "diagnostic")
    assert reading_for(diagnostic.reading, diagnostic.noise).pauses


def test_the_help_of_a_verb_of_verbs_has_an_example_of_each():
    verbs = next(action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for verb in ("episodes", "data", "policy", "bench"):
        assert f"  bid {verb} " in verbs.choices[verb].format_help(), verb


def test_every_verb_that_writes_takes_the_short_option_too():
    for parser in leaves(build_parser()):
        for action in parser._actions:
            assert "--out" not in action.option_strings or "-o" in action.option_strings, parser.prog


def test_the_help_begins_with_six_verbs(capsys):
    assert next(iter(GROUPS)) == FIRST and len(GROUPS[FIRST]) == 6
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out.index(f"\n{FIRST}:\n    up") < 300


def test_there_are_no_more_verbs_and_options_than_a_person_can_learn():
    verbs = [name for group in GROUPS.values() for name in group]
    options = list(options_of(build_parser()))
    print(f"{len(verbs)} verbs, {len(options)} options")
    assert len(verbs) == len(set(verbs)) <= MOST_VERBS
    assert len(options) <= MOST_OPTIONS


@pytest.mark.parametrize(("old", "said"), MOVED["commands"].items())
def test_an_old_command_names_the_new_one(old, said, capsys):
    assert main([*old.split(), "something"]) == 2
    assert capsys.readouterr().err == f"error: bid {old} {said}\n"
    verb, script = said.partition("is now: bid ")[2], said.partition("python ")[2].split()
    paths = {path for path, _ in options_of(build_parser())}
    assert Path(ROOT, script[0]).exists() if script else verb in (*paths, "episodes repair")


@pytest.mark.parametrize(
    ("verb", "option"), [(verb, option) for verb, names in MOVED["options"].items() for option in names]
)
def test_an_old_option_says_what_does_its_work(verb, option, capsys):
    assert (verb, option) not in set(options_of(build_parser())), "it is no old one"
    assert main([*verb.split(), "something", f"{option}=1"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: bid {verb} has no {option} any more: ") and error.count("\n") == 1


def test_settings_of_a_training_are_named_with_dots(capsys):
    for given, said in (
        ("condition=8", "unknown field 'condition'"),
        ("network.condition=0", "network.condition is 0"),
        ("network.condition", "--set is 'network.condition'; valid is NAME=VALUE"),
        ("steps=3", "--set names 'steps', which is an option: --steps 3"),
        ("vqbet.offset_codes=all", "vqbet.offset_codes is 'all'"),
        ("vqbet.codes=8", "--set names vqbet.codes, which the family diffusion does not read; valid is --family vqbet"),
        ("diffusion=3", "--set gives diffusion the value 3; valid are its settings, diffusion.NAME"),
        ("network.condition=8 network.condition=9", "--set gives network.condition twice; valid is once"),
    ):
        assert main(["train", "nowhere.npz", "--set", *given.split()]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--family", "best"], "--family is 'best'; valid is one of diffusion, flow, vqbet, act"),
        (["--family", "flow", "--set", "diffusion=3"], "--set gives diffusion the value 3"),
        (["--simulated-delay", "2", "--set", "diffusion=3"], "--set gives diffusion the value 3"),
        (["--batch", "1000000000"], "batch is 1000000000; valid is a whole number from 1 to 65536"),
        (["--family", "act", "--set", "diffusion.prediction=epsilon"], "valid is --family diffusion or flow"),
    ],
)
def test_settings_of_a_family_are_its_own(options, said, capsys):
    assert main(["train", "nowhere.npz", *options]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "a file could not be written: No space left on device"),
        (OSError(28, "No space left on device", "out/run.json"), "out/run.json: No space left on device"),
        (OSError(5, "Input/output error"), "a file or a device fails: Input/output error"),
        (MemoryError("Unable to allocate 7 TiB"), "there is too little memory for this (Unable to allocate 7 TiB)"),
        (
            RuntimeError("can't allocate memory: 9 bytes"),
            "there is too little memory for this (can't allocate memory: 9 bytes)",
        ),
    ],
)
def test_a_computer_that_is_full_is_one_sentence(error, said, capsys, monkeypatch):
    def fail(words):
        raise error

    monkeypatch.setattr("bid_ros.cli.check_moved", fail)
    assert main(["schema"]) == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_another_failure_is_no_lack_of_memory(monkeypatch):
    def fail(words):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr("bid_ros.cli.check_moved", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        main(["schema"])


def test_tab_completes_verbs_and_options(tmp_path):
    """A shell asks as argcomplete's script does; the answer goes to a file."""
    typed, answer = "bid episodes mo", tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": typed, "COMP_POINT": str(len(typed))}
    variables = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    done = subprocess.run([sys.executable, "-m", "bid_ros.cli"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0 and answer.read_text() == "motion ", done.stderr
