"""The benchmarks measure what they say: verdicts, workers that hang or die, tables, the README."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import engines, maskbench, micro, report, tables
from tests.benchmarks.measuring import (
    Result,
    gather,
    measure_schema,
    shared,
    statistics,
    summarise,
    tail,
)
from tests.reference.data import BenchSchema
from tests.reference.fake_engines import Endless, Liberal
from tests.reference.vocabularies import TestVocabulary

FAKES = "tests.reference.fake_engines:"
INTEGER = BenchSchema(
    "integer",
    {"type": "integer"},
    ({"data": 12, "valid": True}, {"data": "x", "valid": False}, {"data": 1.5, "valid": False}),
)


def titled(title: str) -> BenchSchema:
    return BenchSchema(title, {"title": title, **INTEGER.schema}, INTEGER.tests)


def test_verdicts(byte_vocabulary: TestVocabulary) -> None:
    exact = measure_schema(engines.Constrain(byte_vocabulary), INTEGER, byte_vocabulary)
    assert exact.right
    assert exact.instances == 3
    # "12" and its end, '"' is refused, "1." is refused or "1.5" not allowed to end.
    assert len(exact.token) == len(exact.mask)
    assert 3 + 1 + 2 <= len(exact.token) <= 3 + 1 + 4
    assert len(exact.warm) == len(exact.empty) == 2
    assert 0 < exact.compile <= exact.matcher <= exact.first
    liberal = measure_schema(Liberal(byte_vocabulary), INTEGER, byte_vocabulary)
    assert (liberal.wrong_accept, liberal.wrong_reject) == (2, 0)
    endless = measure_schema(Endless(byte_vocabulary), INTEGER, byte_vocabulary)
    assert (endless.wrong_accept, endless.wrong_reject) == (0, 1)
    refused = BenchSchema("bad", {"type": "nothing"}, INTEGER.tests)
    found = measure_schema(engines.Constrain(byte_vocabulary), refused, byte_vocabulary)
    assert found.status == "refused"
    assert "SchemaError" in found.error


def test_numbers() -> None:
    one = [
        Result("a", compile=1000, matcher=2000, first=3000, token=[1000, 3000], warm=[900]),
        Result("b", "timeout", "late"),
        Result("c", compile=5000, matcher=6000, first=7000, token=[50_000], wrong_accept=1),
    ]
    one[0].empty = [200]
    one[2].warm, one[2].empty = [], []
    other = [Result("a", matcher=4000, token=[8000]), Result("b", matcher=1, token=[1])]
    found = summarise(one)
    assert (found["schemas"], found["compiled"], found["timeout"], found["right"]) == (3, 2, 1, 1)
    assert found["token"]["max"] == 50.0
    assert found["token"]["avg"] == 18.0
    assert found["beyond"]["p50"] == pytest.approx(0.7)
    assert next(iter(found["slowest_tokens"])) == "c"
    assert found["problems"] == {"b": "late"}
    both = shared(one, other)
    assert both["schemas"] == 1
    assert both["one"]["token"]["count"] == 2
    assert both["other"]["token"]["max"] == 8.0
    assert gather([], "token").tolist() == []
    assert statistics([]) == {}
    curve = tail(list(range(1, 1001)))
    assert curve[0] == (1.0, 0.001)
    assert curve[-1] == (0.001, 1.0)
    assert all(a[0] > b[0] and a[1] <= b[1] for a, b in itertools.pairwise(curve[:-1]))


def test_workers_that_hang_die_and_refuse(tmp_path: Path) -> None:
    schemas = [INTEGER, *map(titled, ("hangs", "raises", "refuses", "dies")), titled("fine")]
    found = maskbench.measure(
        ["constrain", f"{FAKES}Strange", f"{FAKES}Absent"], "bytes", schemas, timeout=3.0
    )
    own, strange, absent = found["engines"].values()
    assert own["right"] == found["schemas"] == len(schemas)
    assert (strange["right"], strange["restarts"]) == (2, 2)
    assert [strange[kind] for kind in ("refused", "timeout", "crash")] == [1, 1, 2]
    assert "out of order" in strange["problems"]["raises"]
    assert "ended with 3" in strange["problems"]["dies"]
    assert "no module is called absent" in absent["unavailable"]
    assert list(found["against"]) == [f"{FAKES}Strange"]
    assert found["against"][f"{FAKES}Strange"]["schemas"] == 2
    text = tables.report(found)
    assert "Absent was not measured" in text
    pytest.importorskip("matplotlib")
    tables.plot(found, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


def document(own: float, base: float) -> dict[str, Any]:
    """A measurement in which every time of an engine is the same."""
    results = {
        name: [
            Result(
                "a", "ok", "", *[int(micro * 1000)] * 3, *[[int(micro * 1000)]] * 3, [0], 1, 0, 0
            )
        ]
        for name, micro in (("constrain", own), ("llguidance", base))
    }
    return {
        "kind": "maskbench",
        "machine": {"processor": "P", "cores": 2, "system": "S", "python": "3"},
        "vocabulary": "v",
        "clock": "wall",
        "timeout": 30.0,
        "schemas": 1,
        "engines": {
            name: {"version": "1.0", "settings": "", **summarise(one)}
            for name, one in results.items()
        },
        "against": {"llguidance": shared(results["constrain"], results["llguidance"])},
    }


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index, base in enumerate((10.0, 30.0, 20.0)):
        path = tmp_path / f"run-{index}.json"
        path.write_text(json.dumps(document(2.0, base)), encoding="utf-8")
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    batch = {"seen states": {"64 single calls": 10.0, "2 threads": 5.5}}
    (tmp_path / "batch.json").write_text(json.dumps(batch), encoding="utf-8")
    calls = [
        {"way": way, "objects": "open", "valid": 20, "cut off": 1, "invalid": 3}
        | {"metrics": {"passes_per_token": 0.5}}
        for way in ("free", "budget")
    ]
    (tmp_path / "function_calls.json").write_text(json.dumps(calls), encoding="utf-8")
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nstale\n{report.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path), "--write", str(readme)])
    report.main()
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{report.BEGIN}\n1 schemas of MaskBench")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "stale" not in text
    assert "| mask, check and advance per token, average | 15 | 10 | 10 | 5, 15, 10 |" in text
    assert "| mask of a second sequence, median, beyond an empty call | 1 µs | 2 µs |" in text
    assert (
        "| masks of 64 matchers on 2 threads by 64 single calls, seen states | 0.6 | 0.55 |" in text
    )
    assert text.count("open objects | 24 of 24 | 20 (0.50 forward passes per token) |") == 1
    report.main()
    assert readme.read_text(encoding="utf-8") == text
    readme.write_text("nothing", encoding="utf-8")
    with pytest.raises(SystemExit, match="has no <!-- measured -->"):
        report.main()


def test_runs_are_joined() -> None:
    whole, apart, sample = document(2.0, 10.0), document(3.0, 40.0), document(4.0, 50.0)
    apart["engines"]["slow"] = apart["engines"].pop("llguidance")
    apart["against"]["slow"] = apart["against"].pop("llguidance")
    whole["engines"]["third"] = {"unavailable": "not here"}
    sample["schemas"] = 0
    sample["engines"]["sampled"] = sample["engines"]["llguidance"]
    found = report.joined([apart, sample, whole])
    assert set(found["engines"]) == {"constrain", "llguidance", "slow"}
    assert found["engines"]["constrain"]["token"]["avg"] == 2.0
    assert found["engines"]["slow"]["token"]["avg"] == 40.0
    assert set(found["against"]) == {"llguidance", "slow"}
    assert found["against"]["slow"]["one"]["token"]["avg"] == 3.0


def test_the_readme_has_a_place_for_figures() -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "README.md").read_text(encoding="utf-8")
    assert text.count(report.BEGIN) == text.count(report.END) == 1
    assert text.index(report.BEGIN) < text.index(report.END)


def test_masks_of_the_micro_benchmark(byte_vocabulary: TestVocabulary) -> None:
    found = micro.fill_times(byte_vocabulary)
    assert set(found) == set(micro.PLACES)
    assert all(seconds > 0 for place in found.values() for seconds in place.values())
    assert micro.walk_times(byte_vocabulary)["mask"] > 0


def test_logits_of_the_micro_benchmark() -> None:
    pytest.importorskip("torch")
    found = micro.apply_times(1000, 2, 0.5)
    assert set(found) == {"float32", "float16", "bfloat16", "float64"}
