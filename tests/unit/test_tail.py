"""Large and hard schemas: the texts that `tests.benchmarks.tail` times are accepted, others are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import constrain
from tests.benchmarks import tail
from tests.reference import vocabularies

CASES = dict(tail.cases())

WRONG: dict[str, Any] = {
    "long_string": "a" * 10_001,
    "exact_string": "a" * 8_999,
    "many_items": [7] * 999,
    "unique_items": ["a", "b", "a"],
    "enum": "no such word",
    "enum_with_others": None,
    "properties": {},
    "branches": {"field77": 1.5, "kind": "kind78"},
    "exclusive_branches": {"value": 1.5, "kind": "kind200"},
    "counted_pattern": "abcdef-" * 19 + "1",
    "unicode_pattern": "Größe9 übung",
    "unanchored_pattern": "some text, then bar 12",
    "many_patterns": {"axkey": 1, "bykey": "1"},
    "nesting": {"a": {"a": {"a": 1}}},
    "recursion": {"value": 2, "children": [{"value": 3}, {"children": []}]},
    "definitions": {"next": {"next": {"next": 7, "p8": [1, {}]}}},
    "megabyte": "x",
    "multiples": 1001 * 424_242 + 1,
}
"""Instances that the schemas refuse, by a little."""


@pytest.mark.parametrize("name", CASES)
def test_tail_cases_are_exact(name: str) -> None:
    make: Callable[[], tuple[Any, Any]] = CASES[name]
    world = vocabularies.load("small")
    schema, instance = make()
    compiled = constrain.compile(constrain.JsonSchema(schema), world.vocabulary)
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, world.vocabulary.size)
    tokens = world.encode(json.dumps(instance, ensure_ascii=False))
    for at, token in enumerate(tokens):
        if at % 7 == 0:
            matcher.fill_bitmask(bitmask)
            assert bitmask[0, token // 32] >> token % 32 & 1
        matcher.advance(token)
    assert matcher.is_accepting
    other = schema["not"]["enum"][5] if name == "enum_with_others" else WRONG[name]
    wrong = world.encode(json.dumps(other, ensure_ascii=False))
    if compiled.matcher().validate(wrong) == len(wrong):
        matcher.reset()
        for token in wrong:
            matcher.advance(token)
        assert not matcher.is_accepting
