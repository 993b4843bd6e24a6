"""The page of an evaluation: one file, everything inside, and a person can go through the decisions."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from browser import CHROMIUM, Browser
from evaluated_data import ROWS, TASK, dataset

from bid_ros.evaluation.evaluate import EvaluationSetup
from bid_ros.evaluation.report import chance, draw, markdown, summary, write_page
from bid_ros.evaluation.run import evaluate
from bid_ros.evaluation.trace import COLUMNS, FRAMES, QUALITY, SIDE, Trace
from bid_ros.formats import mapped, open_source
from bid_ros.formats.bag import dataset_episodes
from bid_ros.recording.dataset import joined

LABEL = "</script><b>bold"


@pytest.fixture(scope="module")
def page(bundle, tmp_path_factory):
    """A page of two episodes, of which the second has a label that would break it."""
    folder = tmp_path_factory.mktemp("page")
    replace(dataset([1, 2]), labels=("clean", LABEL)).save(folder / "set.npz")
    setup = EvaluationSetup(TASK, bundle, ("vanilla", "bid"), samples=4, runtime="onnx")
    outcome = evaluate(setup, "", mapped(open_source(folder / "set.npz", TASK), TASK), folder / "parts")
    found = summary(outcome.episodes) | {
        "task": TASK.name,
        "samples": 4,
        "data": "runs <here>",
        "most_samples": 4,
        "rows": 15,
        "dt_s": 0.1,
        "robot": True,
    }
    draw(found, folder / "evaluation.png")
    write_page(found, outcome.pages, folder / "evaluation.png", folder / "evaluation.html")
    return folder / "evaluation.html"


def test_the_page_needs_no_other_file(page):
    text = page.read_text()
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "http" not in text
    assert text.count("</script>") == 1, "of the page, not of a label"
    assert "runs &lt;here&gt;" in text
    assert text.count("<tr>") == 19, "a row for each measure, and the head"


@pytest.mark.parametrize(
    ("gain", "spread", "said"),
    [
        ([0.1, 0.02, 0.2], 0.3, ""),
        ([0.0, 0.0, 0.0], 0.0, ""),  # one sample: there was nothing to choose
        (
            [0.1, -0.02, 0.2],
            0.3,
            "bid chose no better than a random one of its samples: its gain is 0.1 (-0.02 to 0.2)",
        ),
        ([-0.1, -0.2, -0.05], 0.3, "bid chose worse than a random one of its samples"),
    ],
)
def test_a_selection_that_is_no_better_than_chance_shows(gain, spread, said):
    found = {"episodes": 8, "decoders": {"bid": {"measures": {"gain": gain, "spread": [spread] * 3}}}}
    assert chance(found).startswith(said) and bool(chance(found)) == bool(said)


def test_one_episode_gives_no_interval(bundle, tmp_path):
    dataset([1]).save(tmp_path / "set.npz")
    setup = EvaluationSetup(TASK, bundle, ("vanilla", "bid"), samples=4, runtime="onnx")
    outcome = evaluate(setup, "", mapped(open_source(tmp_path / "set.npz", TASK), TASK), tmp_path / "parts")
    about = {"task": TASK.name, "samples": 4, "data": "runs", "most_samples": 16, "rows": 15, "dt_s": 0.1}
    found = summary(outcome.episodes) | about | {"robot": True}
    found["decoders"]["bid"]["measures"]["gain"] = [-0.1, -0.1, -0.1]
    text = markdown(found)
    assert "; mean, without an interval\n" in text and " to " not in text.split("Jerk of")[0]
    assert "bid chose no better than a random one of its samples: its gain is -0.1, which" in text
    draw(found, tmp_path / "evaluation.png")
    write_page(found, outcome.pages, tmp_path / "evaluation.png", tmp_path / "evaluation.html")
    table = (tmp_path / "evaluation.html").read_text().split("<tbody>")[1].split("</tbody>")[0]
    assert "<td>-0.1</td>" in table and not re.findall(r"<td>[^<]*<small>", table)


def test_an_episode_that_is_too_short_for_a_jerk_has_none(bundle, tmp_path):
    setup = EvaluationSetup(TASK, bundle, ("vanilla",), samples=4, runtime="onnx")
    found = {}
    for name, parts in {"long": [9], "both": [9, 3], "short": [3]}.items():
        sets = [dataset([seed], rows) for seed, rows in enumerate(parts, 1)]
        joined(sets).save(tmp_path / f"{name}.npz")
        source = mapped(open_source(tmp_path / f"{name}.npz", TASK), TASK)
        found[name] = summary(evaluate(setup, "", source, tmp_path / "parts").episodes)
    of_vanilla = {name: item["decoders"]["vanilla"]["measures"]["jerk"] for name, item in found.items()}
    assert of_vanilla["both"] == of_vanilla["long"] and of_vanilla["short"] is None
    assert found["both"]["demonstrated_jerk"] == found["long"]["demonstrated_jerk"] == 0.0
    assert found["short"]["demonstrated_jerk"] is None


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_person_goes_through_the_decisions(page, tmp_path):
    browser = Browser(tmp_path / "profile", page.as_uri())
    try:
        ready = "document.readyState === 'complete' && typeof episodes !== 'undefined' && !!sheet && sheet.complete"
        while not browser.value(ready):  # the timeout of the test ends it
            pass
        assert browser.value("get('time').textContent") == f"0.0 s, decision 1 of {ROWS}"
        assert browser.value("get('episode').options[1].textContent") == f"episode 2, {LABEL}, seed 2"
        drawn = "get('{}').toDataURL().length"
        before = [browser.value(drawn.format(name)) for name in ("picture", "plane0", "series")]
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
        assert browser.value("get('time').textContent") == f"0.1 s, decision 2 of {ROWS}"
        after = [browser.value(drawn.format(name)) for name in ("picture", "plane0", "series")]
        assert all(first != second for first, second in zip(before, after, strict=True))
        assert (
            browser.value("get('episode').value = 1, get('episode').onchange({target: get('episode')}), episode.seed")
            == 2
        )
        hide = "document.querySelectorAll('#legend input')[1].click(), [...hidden].join()"
        assert browser.value(hide) == "bid"
    finally:
        browser.kill()


def test_what_is_kept_of_an_episode_is_bounded():
    rows = 3 * FRAMES
    long = next(dataset_episodes(dataset([1], rows)))
    trace = Trace(long, TASK)
    found = trace.page()
    width, height = found["tile"]
    assert (len(found["shown"]), found["shown"][0], found["shown"][-1]) == (FRAMES, 0, rows - 1)
    assert (height, found["columns"]) == (SIDE, COLUMNS)
    assert len(found["sheet"]) < FRAMES * width * height * 3 * QUALITY / 100, "noise is the largest JPEG there is"
    assert json.dumps(found)
