"""The benchmark of latencies compares runs that differ in nothing but the constraint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import constrain
from tests.benchmarks import end_to_end

pytest.importorskip("torch")

SCHEMA = {
    "type": "object",
    "properties": {"hello": {"enum": ["red", "green"]}, "yes": {"type": "boolean"}},
    "required": ["hello"],
}


def compiled_for(vocabulary: Any) -> Any:
    spec = constrain.JsonSchema(SCHEMA, extra_properties="forbid")
    return constrain.compile(spec, vocabulary)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_same_texts_and_passes(
    model: Any, tokenizer: Any, vocabulary: Any, temperature: float
) -> None:
    prompts = ["hello world", "red green blue"]
    job = end_to_end.Job(
        (model, tokenizer, vocabulary),
        prompts,
        [compiled_for(vocabulary)] * 2,
        max_tokens=60,
        temperature=temperature,
        seed=3,
    )
    for ids in job.texts:
        matcher = compiled_for(vocabulary).matcher()
        assert all(matcher.try_advance(token_id) for token_id in ids)
        assert matcher.is_accepting
    pair = end_to_end.pair(job, constrained_first=False)
    lengths = [len(ids) for ids in job.texts]
    for side in ("free", "constrained"):
        assert [t.tokens for t in pair[side]["timings"]] == lengths
        assert [t.passes for t in pair[side]["timings"]] == lengths
        assert len(pair[side]["steps"]) == len(pair[side]["cpu"]) == max(lengths) - 1
    assert all(t.mask == 0 for t in pair["free"]["timings"])
    assert all(t.mask > 0 for t in pair["constrained"]["timings"])


def test_summary_and_report(model: Any, tokenizer: Any, vocabulary: Any) -> None:
    tasks = [SimpleNamespace(messages="hello", schema=SCHEMA)] * 3
    found = end_to_end.measure(
        (model, tokenizer, vocabulary),
        tasks,
        [1, 2],
        rounds=1,
        max_tokens=60,
        say=lambda text: None,
        temperature=0.0,
    )
    assert list(found) == ["1", "2"]
    for one in found.values():
        assert one["steps"] > 0
        assert 0 < one["mask_share"] < 1
        assert one["median_of_ratios"] > 0
        assert one["metrics"]["free"]["tokens"] == one["metrics"]["constrained"]["tokens"]
    assert "| 2 |" in end_to_end.report({"batches": found})
