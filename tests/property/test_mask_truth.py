"""A mask is right if it is the one found by trying every token.

Real schemas, random states on random walks, vocabularies of different kinds (byte-level BPE,
SentencePiece with byte fallback, tiktoken-like, and a small one with every oddity); then schemas
from Hypothesis, where the verdict on whole texts is compared with the oracle's as well. At last,
without any machine: every bit in small worlds, and completions of what real schemas allow. More of
that: ``python -m tests.reference.truth --worlds 2000 --schemas 300``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import constrain
from tests.reference import brute, data, oracle, schemas, truth
from tests.reference.drive import judge, new_row
from tests.reference.vocabularies import TestVocabulary
from tests.reference.vocabularies import byte_vocabulary as bytes_only
from tests.reference.vocabularies import small_vocabulary as small_tokens
from tests.reference.walks import Lexicon, Walker, Words

SCHEMAS = 100
OPTIONS: list[dict[str, Any]] = [{}, {"numbers": "any", "whitespace": "any"}]


def compiled_schemas(
    root: Path, vocabulary: TestVocabulary, count: int, seed: int
) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """(name, schema, compiled, options) of `count` random MaskBench schemas that compile."""
    rng = random.Random(seed)
    pool = data.maskbench(root)
    rng.shuffle(pool)
    found = 0
    for index, bench in enumerate(pool):
        options = OPTIONS[index % len(OPTIONS)]
        try:
            spec = constrain.JsonSchema(bench.schema, **options)
            compiled = constrain.compile(spec, vocabulary.vocabulary)
        except constrain.ConstrainError:
            continue
        yield bench.name, bench.schema, compiled, options
        found += 1
        if found == count:
            return


def check_state(matcher: Any, vocabulary: TestVocabulary, row: Any, where: str) -> None:
    """Compare the mask here with the one by trying every token, and that nothing has changed."""
    size = vocabulary.vocabulary.size
    mask = brute.mask_bits(matcher, row, size)
    truth = brute.tried_mask(matcher, size)
    difference = brute.describe_difference(mask, truth, vocabulary)
    assert (mask == truth).all(), f"{where}: {difference}"
    again = brute.mask_bits(matcher, row, size)
    assert (mask == again).all(), f"{where}: a second mask of the same state differs"


def check_bytes(
    matcher: Any,
    spec: Any,
    text: bytes,
    vocabulary: TestVocabulary,
    row: Any,
    where: str,
    rng: random.Random,
) -> None:
    """Compare a sample of the mask with a matcher over single bytes at the same text."""
    by_bytes = constrain.compile(spec, bytes_only().vocabulary).matcher()
    for byte in text:
        by_bytes.advance(byte)
    size = vocabulary.vocabulary.size
    mask = brute.mask_bits(matcher, row, size)
    allowed = [i for i in mask.nonzero()[0].tolist() if i not in vocabulary.eos_ids]
    sample = rng.sample(range(size), min(size, 300)) + rng.sample(allowed, min(len(allowed), 100))
    for token_id, taken in brute.spelled_mask(by_bytes, vocabulary.tokens, sample).items():
        token = vocabulary.tokens[token_id]
        assert taken == mask[token_id], f"{where}: {token!r} by bytes {taken}, mask says otherwise"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deepseek", "sentencepiece", "tekken"])
def test_masks_of_real_schemas(
    name: str, shared_root: Path, load_vocabulary: Callable[[str], TestVocabulary]
) -> None:
    vocabulary = load_vocabulary(name)
    lexicon = Lexicon(vocabulary)
    checked = 0
    for label, schema, compiled, options in compiled_schemas(shared_root, vocabulary, SCHEMAS, 7):
        rng = random.Random(f"{name}/{label}")
        walker = Walker(compiled, lexicon, Words.of(schema))
        ids, text = walker.wander(rng, rng.choice([0, 1, 3, 8, 20, 40]))
        matcher = compiled.matcher()
        for token in ids:
            matcher.advance(token)
        where = f"{label} {options} after {text!r}"
        check_state(matcher, vocabulary, walker.row, where)
        spec = constrain.JsonSchema(schema, **options)
        check_bytes(matcher, spec, text, vocabulary, walker.row, where, rng)
        checked += 1
    assert checked == SCHEMAS


def test_masks_with_a_small_vocabulary(shared_root: Path, small_vocabulary: TestVocabulary) -> None:
    lexicon = Lexicon(small_vocabulary)
    checked = 0
    for label, schema, compiled, options in compiled_schemas(shared_root, small_vocabulary, 150, 3):
        rng = random.Random(label)
        walker = Walker(compiled, lexicon, Words.of(schema))
        for length in (0, 2, 6, 15, 30):
            ids, text = walker.wander(rng, length)
            matcher = compiled.matcher()
            for token in ids:
                matcher.advance(token)
            check_state(matcher, small_vocabulary, walker.row, f"{label} {options} {text!r}")
            checked += 1
    assert checked == 750


def compile_or_none(schema: Any, vocabulary: TestVocabulary, **options: Any) -> Any:
    """The compiled schema; None where nothing satisfies it."""
    try:
        return constrain.compile(constrain.JsonSchema(schema, **options), vocabulary.vocabulary)
    except constrain.UnsatisfiableError:
        return None


SETTINGS = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SETTINGS
@given(schema=schemas.schemas(), values=st.lists(schemas.instances(), min_size=3, max_size=10))
def test_verdicts_on_generated_schemas(schema: Any, values: list[Any]) -> None:
    """Whole texts: accepted exactly where the oracle says valid."""
    if schemas.is_cyclic(schema):
        with pytest.raises(constrain.ConstrainError):
            constrain.compile(constrain.JsonSchema(schema), bytes_only().vocabulary)
        return
    vocabulary = bytes_only()
    compiled = compile_or_none(schema, vocabulary, numbers="any", whitespace="any")
    reference = oracle.Oracle(schema)
    row = new_row(vocabulary.vocabulary)
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        valid = reference.accepts(text)
        if compiled is None:
            assert not valid, f"{text} is valid, yet the schema was called unsatisfiable"
            continue
        verdict = judge(compiled, vocabulary.encode(text), vocabulary.eos_ids, row)
        assert verdict.accepted == valid, f"{text}: valid is {valid}, refused at {verdict.position}"


@SETTINGS
@given(schema=schemas.schemas(), seed=st.integers(0, 10_000))
def test_masks_and_walks_of_generated_schemas(schema: Any, seed: int) -> None:
    """Masks by trying every token, and that whatever a walk finishes is valid."""
    if schemas.is_cyclic(schema):
        return
    vocabulary = small_tokens()
    compiled = compile_or_none(schema, vocabulary)
    if compiled is None:
        return
    rng = random.Random(seed)
    walker = Walker(compiled, Lexicon(vocabulary), Words.of(schema))
    ids, text = walker.wander(rng, rng.randrange(12))
    matcher = compiled.matcher()
    for token in ids:
        matcher.advance(token)
    check_state(matcher, vocabulary, walker.row, f"after {text!r}")
    walk = walker.walk(rng, rng.randrange(12), home=120, attempts=4)
    assert walk.status != "dead", f"{walk.note}: {walk.text!r}"
    if walk.status == "finished":
        reference = oracle.Oracle(schema)
        assert reference.errors(oracle.parse(walk.text)) == [], walk.text


def is_well_founded(schema: Any) -> bool:
    return not schemas.is_cyclic(schema)


@settings(SETTINGS, max_examples=150)
@given(schema=schemas.schemas().filter(is_well_founded), seed=st.integers(0, 10_000))
def test_every_bit_in_small_worlds(schema: Any, seed: int) -> None:
    """Allowed and refused tokens alike: a finite set of values, whose texts are all known."""
    assert truth.check_world(schema, small_tokens(), random.Random(seed), states=4) > 0


def test_allowed_tokens_complete_and_refused_ones_do_not(
    shared_root: Path, small_vocabulary: TestVocabulary
) -> None:
    benches = data.maskbench(shared_root, every=14, offset=11)
    found = truth.completions_over_maskbench(small_vocabulary, benches, seed=4)
    assert not found.wrong, "\n".join(found.wrong[:20])
    # An obligation under oneOf may need numbers that the completion does not look for.
    assert len(found.unknown) <= found.counts[truth.VALID] // 500, "\n".join(found.unknown[:20])
    assert found.counts[truth.VALID] > 2_500, found.counts
    assert found.counts[truth.HOPELESS] > 2_500, found.counts
