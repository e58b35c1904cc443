"""Statistics of the command line: `generate --stats` and `bench-model`, on a tiny model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import constrain
from constrain.cli import _report, _runtime
from constrain.cli._svg import Panel, Series, bar_chart
from constrain.cli._tasks import TASKS
from constrain.cli.main import main
from constrain.decoding import Metrics, Timings

pytest.importorskip("torch")

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def tiny(
    model: Any, tokenizer: Any, vocabulary: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    import copy

    chatty = copy.deepcopy(tokenizer)
    chatty.chat_template = "{% for m in messages %}{{ m.content[:20] }} {% endfor %}"
    loaded = (model, chatty, vocabulary)
    monkeypatch.setattr(_runtime, "open_model", lambda *names, **options: loaded)
    monkeypatch.chdir(tmp_path)
    Path("schema.json").write_text(
        json.dumps(
            {
                "type": "object",
                "properties": {"hello world": {"enum": ["red", "green"]}},
                "required": ["hello world"],
            }
        )
    )
    return tmp_path


def test_the_tasks_are_what_they_say() -> None:
    assert len(TASKS) == 24
    assert len({task.name for task in TASKS}) == 24
    compact = {"whitespace": "compact"}
    for task in TASKS:
        for extra in ("schema", "forbid"):
            spec = constrain.JsonSchema(task.schema, extra_properties=extra, **compact)
            _runtime.compile_alone(spec)
        assert all(member in task.messages[0]["content"] for member in task.schema["properties"])


def test_statistics_of_generate(tiny: Path, capfd: pytest.CaptureFixture) -> None:
    arguments = [
        "generate",
        "hello",
        "--schema",
        "schema.json",
        "--seed",
        "1",
        "--max-tokens",
        "40",
    ]
    assert main([*arguments, "--stats", "json", "--stats-plot", "plot.svg"]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)["hello world"] in ("red", "green")
    stats = json.loads(captured.err)
    (run,) = stats["runs"]
    assert len(stats["steps"]["inter_token_latency"]) == run["tokens"] - 1
    removed = stats["steps"]["probability_removed"]
    assert len(removed) == run["tokens"] - run["forced_tokens"]
    assert sum(removed) / len(removed) == pytest.approx(run["probability_removed"])
    assert run["sequences"] == 1
    assert 0 < run["forward_passes"] <= run["tokens"]
    assert 0 < run["probability_removed"] < 1
    assert 0 < run["mask_share"] < 1
    drawn = ElementTree.parse("plot.svg").getroot()
    assert drawn.tag == f"{SVG}svg"
    said = [element.text for element in drawn.findall(f"{SVG}text")]
    for title in (
        "share of masks in the time (%)",
        "perceived tokens per second",
        "latency of each token behind the first (ms)",
        "probability removed by each mask (%)",
    ):
        assert title in said
    # Without --stats the plot has the same panels.
    assert main([*arguments, "--stats-plot", "alone.svg"]) == 0
    assert capfd.readouterr().err == ""
    alone = ElementTree.parse("alone.svg").getroot()
    assert "probability removed by each mask (%)" in [e.text for e in alone.findall(f"{SVG}text")]
    assert main([*arguments, "--stats", "--forced", "off", "--speculate", "both"]) == 0
    assert "forward passes per token" in capfd.readouterr().err
    assert main([*arguments, "--stats-plot", "no/such/folder.svg"]) == 3
    assert "cannot write to no/such/folder.svg" in capfd.readouterr().err


def test_budget_of_generate(tiny: Path, capfd: pytest.CaptureFixture) -> None:
    arguments = ["generate", "hello", "--schema", "schema.json", "--max-tokens", "3"]
    assert main(arguments) == 3
    assert "max_tokens leaves 3 tokens, and the shortest text" in capfd.readouterr().err
    assert main([*arguments, "--no-budget"]) == 1
    assert "cut off after 3 tokens" in capfd.readouterr().err


def test_bench_model(tiny: Path, capfd: pytest.CaptureFixture) -> None:
    arguments = ["bench-model", "--schema", "schema.json", "--max-tokens", "40", "--seed", "2"]
    ways = ["--batch", "1,2", "--ways", "free,constrained,forced,both", "--plot", "plot.svg"]
    assert main([*arguments, *ways, "--whitespace", "compact", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    runs = {run["name"]: run for run in found["runs"]}
    assert len(runs) == 8
    assert runs["free, batch 1"]["probability_removed"] is None
    assert runs["constrained, batch 1"]["passes_per_token"] == 1
    assert runs["forced, batch 2"]["passes_per_token"] < 0.6
    assert runs["forced, batch 2"]["sequences"] == 2
    assert runs["both, batch 1"]["passes_per_token"] <= 0.6
    assert set(runs["free, batch 1"]) - {"name"} == set(Metrics.of([]).as_dict())
    (latency,) = [cells for name, cells in found["comparison"].items() if "latency" in name]
    assert latency[0] == "1.000"
    drawn = ElementTree.parse("plot.svg").getroot()
    assert len(drawn.findall(f"{SVG}rect")) > 8
    assert main([*arguments, "--ways", "draft"]) == 2
    assert main([*arguments, "--ways", "draft,forced", "--speculate", "small"]) == 0
    captured = capfd.readouterr().out
    assert "draft, batch 1" in captured
    assert "drafted tokens accepted (%)" in captured


def test_bench_model_refuses(tiny: Path, capfd: pytest.CaptureFixture) -> None:
    for arguments, code, message in [
        (["--ways", "fast"], 2, "'fast' is none of"),
        (["--batch", "0"], 2, "less than 1"),
        (["--prompt", "x"], 2, "goes with --schema"),
        (["--schema", "none.json"], 3, "cannot read the schema"),
    ]:
        assert main(["bench-model", *arguments]) == code
        assert message in capfd.readouterr().err
    Path("bad.json").write_text('{"type": "strange"}')
    assert main(["bench-model", "--schema", "bad.json"]) == 3
    assert "bad: " in capfd.readouterr().err


def test_tables_with_and_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    timings = Timings(time_to_first_token=0.5, inter_token=[0.25, 0.25], passes=3)
    columns = {"a": Metrics.of([timings]), "b": Metrics.of([])}
    texts = [_report.table(columns, [("more", ["1", "2"])])]
    monkeypatch.setattr(_report.importlib.util, "find_spec", lambda name: None)
    texts.append(_report.table(columns, [("more", ["1", "2"])]))
    for text in texts:
        cells = {
            line.split("  ")[0].strip(): line.split()[-2:] for line in text.strip().splitlines()
        }
        lines = text.splitlines()
        (latency,) = [line.split() for line in lines if "inter-token latency, mean (ms)" in line]
        assert latency[-2:] == ["250", "-"]
        (speed,) = [line.split() for line in lines if "total tokens per second" in line]
        assert speed[-2:] == ["3", "-"]
        assert not any("acceptance" in line for line in lines)
        assert any("more" in line for line in lines), cells


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.01234, "12.3"), (1.2, "1200"), (12.5, "12500"), (0.0, "0")]
)
def test_times_are_plain_numbers(seconds: float, said: str) -> None:
    columns = {"a": Metrics.of([Timings(time_to_first_token=seconds)])}
    (line,) = [
        line for line in _report.table(columns).splitlines() if "time to first token" in line
    ] or ["0"]
    assert line.split()[-1] == said


def test_bars() -> None:
    text = bar_chart("<a & b>", [Panel("p", [("x", 2.0), ("y", 1.0), ("z", None)]), Panel("q", [])])
    root = ElementTree.fromstring(text)
    background, *bars = root.findall(f"{SVG}rect")
    assert float(bars[0].get("width", 0)) == pytest.approx(
        2 * float(bars[1].get("width", 0)), abs=0.2
    )
    assert len(bars) == 2
    assert float(root.get("height", 0)) == float(background.get("height", 0))
    said = [element.text for element in root.findall(f"{SVG}text")]
    assert "<a & b>" in said
    assert "none" in said


def test_series() -> None:
    root = ElementTree.fromstring(bar_chart("t", [Series("s", [4.0, 1.0, 0.0]), Series("e", [])]))
    _, *bars = root.findall(f"{SVG}rect")
    heights = [float(bar.get("height", -1)) for bar in bars]
    assert heights[0] == pytest.approx(4 * heights[1], abs=0.3)
    assert heights[2] == 0
    bottoms = {round(float(bar.get("y", 0)) + height, 1) for bar, height in zip(bars, heights)}
    assert len(bottoms) == 1
    places = [float(bar.get("x", 0)) for bar in bars]
    assert places == sorted(places)
