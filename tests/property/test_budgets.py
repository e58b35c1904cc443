"""Budgets in small worlds, where the fewest tokens that complete a prefix are known, and walks under
budgets with the vocabularies of real tokenizers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference import budget_walks, budgets, schemas


def test_masks_within_budgets_in_small_worlds() -> None:
    plain = budgets.plain_vocabulary()
    tally = budgets.Tally()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schemas.schemas().filter(lambda s: not schemas.is_cyclic(s)), st.integers(0, 10**6))
    def check(schema: Any, seed: int) -> None:
        budgets.check_world(schema, plain, random.Random(seed), tally)
        assert not tally.wrong

    check()
    # The shortest completion is found by a search that may give up.
    assert tally.counts["tokens"] > 500
    assert len(tally.longer) <= tally.counts["tokens"] // 50, tally.longer


def _walks(name: str, cases: list[budget_walks.Case], vocabulary: Any, walks: int) -> None:
    rng = random.Random(name)
    lexicon = budget_walks.Lexicon(vocabulary)
    outcome = budget_walks.Outcome()
    for case in cases:
        budget_walks.run(case, lexicon, walks, rng, outcome)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert outcome.walks >= walks * len(cases) * 0.9
    assert outcome.hopeless == 0


def test_random_schemas_end_within_their_budgets(load_vocabulary: Any) -> None:
    vocabulary = load_vocabulary("smollm2").vocabulary
    chosen = budgets.random_schemas(40, seed=3)
    cases = list(budgets.schema_cases(chosen, vocabulary, random.Random(1)))
    _walks("random", cases, vocabulary, walks=2)


def test_published_schemas_end_within_their_budgets(deepseek: Any, shared_root: Any) -> None:
    chosen = budgets.bench_schemas(30, random.Random(5))
    cases = list(budgets.schema_cases(chosen, deepseek.vocabulary, random.Random(1)))
    _walks("published", cases, deepseek.vocabulary, walks=2)


NUMBERS: list[Any] = [
    {"type": "number"},
    {"type": "number", "minimum": 1000.25, "maximum": 1000.75},
    {"type": "integer", "multipleOf": 7, "minimum": 10**4},
    {"not": {"type": "integer"}, "type": "number"},
    {"enum": [1234567, 12345678901, "a", 0.000001]},
]


@pytest.mark.parametrize("number", range(len(NUMBERS)))
def test_numbers_of_large_vocabularies(deepseek: Any, number: int) -> None:
    # Numbers have tables of their own; only large vocabularies use them.
    inner = NUMBERS[number]
    members = {"type": "object", "properties": {"a": inner, "b": inner}, "required": ["a", "b"]}
    chosen = [("one", inner), ("list", {"type": "array", "items": inner, "minItems": 2})]
    chosen += [("members", {**members, "additionalProperties": False}), ("open", members)]
    cases = list(budgets.schema_cases(chosen, deepseek.vocabulary, random.Random(number)))
    assert len(cases) == 4
    _walks(f"numbers {number}", cases, deepseek.vocabulary, walks=6)


# What is known of a token may be known of what is behind a unit that ends within it.
OPEN: list[Any] = [
    {"type": "object", "minProperties": 3},
    {"type": "object", "additionalProperties": {"type": "object", "minProperties": 2}},
    {
        "type": "object",
        "oneOf": [
            {"patternProperties": {"a": {"type": "object"}}, "required": ["x"]},
            {"patternProperties": {"a": False}, "minProperties": 2},
        ],
    },
    {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": ["string", "object"]}},
    {
        "type": "object",
        "propertyNames": {"pattern": "^..$"},
        "minProperties": 2,
        "maxProperties": 3,
    },
]


@pytest.mark.parametrize("number", range(len(OPEN)))
def test_keys_and_values_that_must_differ(deepseek: Any, number: int) -> None:
    rng = random.Random(number)
    cases = [
        one
        for _ in range(2)
        for one in budgets.schema_cases([("open", OPEN[number])], deepseek.vocabulary, rng)
    ]
    _walks(f"open {number}", cases, deepseek.vocabulary, walks=4)


def test_bounds_far_from_the_limit_hold(small_vocabulary: Any) -> None:
    vocabulary = small_vocabulary.vocabulary
    lexicon, rng, tally = budget_walks.Lexicon(vocabulary), random.Random(7), budgets.Tally()
    chosen = [("", one) for one in NUMBERS] + budgets.random_schemas(100, seed=4)
    for case in budgets.schema_cases(chosen, vocabulary, rng):
        budgets.check_bounds(case, lexicon, rng, tally)
    for case in budgets.grammar_cases(vocabulary, large=False):
        budgets.check_bounds(case, lexicon, rng, tally, steps=4)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.counts["bounded"] > 400
