"""Batches that several threads fill, and constraints that several threads use."""

from __future__ import annotations

import json
import random
import threading

import numpy as np
import pytest

import constrain
from tests.reference import vocabularies

SCHEMAS = [
    {"type": "array", "items": {"type": "string", "pattern": f"^[a-{'cdefgh'[i]}]{{1,9}}$"}}
    for i in range(6)
]


@pytest.fixture(scope="module")
def world() -> vocabularies.TestVocabulary:
    return vocabularies.load("small")


def random_text(rng: random.Random) -> str:
    return json.dumps(["".join(rng.choices("abc", k=rng.randint(1, 9))) for _ in range(4)])


@pytest.mark.parametrize("same", [True, False])
def test_rows_of_threads_equal_single_calls(world, same):
    rng = random.Random(3)
    vocabulary = world.vocabulary
    schemas = SCHEMAS[:1] if same else SCHEMAS
    compiled = [constrain.compile(constrain.JsonSchema(s), vocabulary) for s in schemas]
    again = [constrain.compile(constrain.JsonSchema(s), vocabulary) for s in schemas]
    count = 40
    matchers = [compiled[i % len(compiled)].matcher() for i in range(count)]
    singles = [again[i % len(again)].matcher() for i in range(count)]
    texts = [world.encode(random_text(rng)) for _ in range(count)]
    many = constrain.allocate_bitmask(count, vocabulary.size)
    one = constrain.allocate_bitmask(count, vocabulary.size)
    for step in range(max(map(len, texts)) + 1):
        constrain.fill_bitmasks(matchers, many, threads=1 + step % 4)
        for i, matcher in enumerate(singles):
            matcher.fill_bitmask(one, i)
        assert np.array_equal(many, one)
        for i, text in enumerate(texts):
            if step < len(text):
                matchers[i].advance(text[step])
                singles[i].advance(text[step])
            elif rng.random() < 0.5 and step:
                matchers[i].rollback(1)
                singles[i].rollback(1)
                texts[i] = texts[i][: step - 1]
    assert all(a.tokens == b.tokens for a, b in zip(matchers, singles, strict=True))


def test_forks_and_the_same_matcher_twice(world):
    compiled = constrain.compile(constrain.JsonSchema(SCHEMAS[0]), world.vocabulary)
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(32, world.vocabulary.size)
    constrain.fill_bitmasks(
        [matcher] * 16 + [matcher.fork() for _ in range(16)], bitmask, threads=2
    )
    assert (bitmask == bitmask[0]).all()


def test_errors_of_rows_that_helpers_fill(world):
    compiled = constrain.compile(constrain.Regex("a{3}"), world.vocabulary)
    matchers = [compiled.matcher() for _ in range(32)]
    bitmask = constrain.allocate_bitmask(32, world.vocabulary.size)
    budgets = [1 if i in (3, 30) else 9 for i in range(32)]
    with pytest.raises(constrain.LimitExceededError) as caught:
        constrain.fill_bitmasks(matchers, bitmask, remaining=budgets, threads=2)
    assert sorted(caught.value.rows) == [3, 30]
    with pytest.raises(constrain.ConstrainError, match="threads"):
        constrain.fill_bitmasks(matchers, bitmask, threads=0)


def test_memory_of_constraints_that_threads_share_is_bounded(world):
    """A constraint too large for a share of the memory stays in one lane."""
    compiled = constrain.compile(
        constrain.JsonSchema(SCHEMAS[0]), world.vocabulary, max_memory=60_000
    )
    matchers = [compiled.matcher() for _ in range(32)]
    bitmask = constrain.allocate_bitmask(32, world.vocabulary.size)
    for _ in range(4):
        constrain.fill_bitmasks(matchers, bitmask, threads=4)
        assert (bitmask == bitmask[0]).all()


def test_many_threads_use_one_constraint_in_batches_and_alone(world):
    vocabulary = world.vocabulary
    compiled = [constrain.compile(constrain.JsonSchema(s), vocabulary) for s in SCHEMAS[:2]]
    shared = [c.matcher() for c in compiled for _ in range(10)]
    expected = constrain.allocate_bitmask(2, vocabulary.size)
    for i, c in enumerate(compiled):
        c.matcher().fill_bitmask(expected, i)
    errors: list[BaseException] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        try:
            bitmask = constrain.allocate_bitmask(20, vocabulary.size)
            for _ in range(15):
                constrain.fill_bitmasks(shared, bitmask, threads=rng.choice([1, 2, 3]))
                for i, row in enumerate(bitmask):
                    assert np.array_equal(row, expected[i // 10])
                own = compiled[seed % 2].matcher()
                for token in world.encode(random_text(rng)):
                    own.fill_bitmask(bitmask, 0)
                    own.advance(token)
                assert own.is_accepting
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
