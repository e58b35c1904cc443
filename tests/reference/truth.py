"""What a mask must be, decided without the machine: by completing, and by enumerating.

Two questions, for schemas and states at random:

* *Small worlds* (`check_world`). A schema is cut down to a finite set of values, whose valid members
  the oracle finds one by one. With one spelling for each value (no whitespace, plain numbers, no
  escapes), a token is allowed exactly where some valid text continues with it: every bit of the
  mask over all tokens without a backslash is known, the refused ones and the allowed ones alike.
* *Real schemas* (`check_completions`). Each allowed token of a sample is shown completable: it is
  taken, the text is completed, and the oracle judges the whole. Each refused token of a sample is
  put in front of everything that completes the text without it; no such text may be valid. That is
  evidence, not proof, which the small worlds give.

``python -m tests.reference.truth --worlds 2000 --schemas 300 --seed 5`` runs more of both than the
tests do.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference import brute, data, oracle, schemas, vocabularies
from tests.reference.drive import new_row, random_tokens, tokens_by_bytes
from tests.reference.vocabularies import TestVocabulary
from tests.reference.walks import Lexicon, Walker, Words

# -- small worlds ------------------------------------------------------------------------------

_SCALARS: list[Any] = [None, True, False, 0, 1, 2, 5, 10, -1, "", "a", "b", "ab", "é", "😀"]
_ITEMS: list[Any] = [1, 2, "a", "ab", True, [1], {"a": 1}]
_MEMBERS: list[Any] = [1, "a", "ab", None, [], {"a": 1}]
_KEYS = ["a", "b", "ab"]
WORLD: dict[str, Any] = {
    "anyOf": [
        {"enum": _SCALARS},
        {"type": "array", "items": {"enum": _ITEMS}, "maxItems": 3},
        {
            "type": "object",
            "propertyNames": {"enum": _KEYS},
            "additionalProperties": {"enum": _MEMBERS},
        },
    ]
}
"""The schema of the values of `world`."""


def world() -> Iterator[Any]:
    """Every value of the small world, objects in one key order."""
    yield from _SCALARS
    for length in range(4):
        yield from map(list, itertools.product(_ITEMS, repeat=length))
    for count in range(len(_KEYS) + 1):
        for keys in itertools.combinations(_KEYS, count):
            for values in itertools.product(_MEMBERS, repeat=count):
                yield dict(zip(keys, values))


def _texts(value: Any) -> Iterator[bytes]:
    """The texts of a value: its keys in every order."""
    if isinstance(value, dict):
        for keys in itertools.permutations(value):
            members = {key: value[key] for key in keys}
            yield json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    else:
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _moved(schema: Any) -> Any:
    """`schema` with its references to the root pointing at the place where it is put."""
    if isinstance(schema, list):
        return [_moved(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("$ref") == "#":
        return {**schema, "$ref": "#/$defs/schema"}
    return {key: _moved(item) for key, item in schema.items()}


def cut_down(schema: Any) -> dict[str, Any]:
    """`schema`, of values of the small world only."""
    return {
        "$defs": {"schema": _moved(schema), "world": WORLD},
        "allOf": [{"$ref": "#/$defs/schema"}, {"$ref": "#/$defs/world"}],
    }


def check_world(
    schema: Any, vocabulary: TestVocabulary, rng: random.Random, states: int = 6
) -> int:
    """Compare masks of a cut-down schema with the truth, at random states; how many bits agreed.

    Raises AssertionError where a mask differs, or where a schema is called unsatisfiable and is
    not, or the other way round. `schema` must not refer to itself in place.
    """
    import constrain

    judge = oracle.Oracle(schema)
    values = (oracle.parse(json.dumps(value)) for value in world())
    valid = [plain for plain, value in zip(world(), values, strict=True) if judge.is_valid(value)]
    whole = [text for value in valid for text in _texts(value)]
    spec = constrain.JsonSchema(cut_down(schema), whitespace="compact", numbers="plain")
    try:
        compiled = constrain.compile(spec, vocabulary.vocabulary)
    except constrain.UnsatisfiableError:
        assert not whole, f"called unsatisfiable, yet {whole[0]!r} is valid"
        return 1
    assert whole, "no value is valid, yet it compiled"
    ends = set(whole)
    prefixes = {text[:length] for text in ends for length in range(len(text) + 1)}
    tokens = [text if text and b"\\" not in text else None for text in vocabulary.tokens]
    table = tokens_by_bytes(tokens)
    known = np.array([bool(text) for text in tokens], dtype=bool)
    row = new_row(vocabulary.vocabulary)
    size = vocabulary.vocabulary.size
    judged = 0
    for _ in range(states):
        ids = random_tokens(rng.choice(whole), table, rng) or []
        ids = ids[: rng.randrange(len(ids) + 1)]
        matcher = compiled.matcher()
        for token in ids:
            matcher.advance(token)
        text = vocabulary.text(ids)
        mask = brute.mask_bits(matcher, row, size)
        truth = np.array([bool(t) and text + t in prefixes for t in tokens], dtype=bool)
        difference = brute.describe_difference(mask & known, truth, vocabulary)
        assert ((mask & known) == truth).all(), f"after {text!r}: {difference}"
        for end in vocabulary.eos_ids:
            assert mask[end] == (text in ends), f"after {text!r}: the end is {mask[end]}"
        judged += int(known.sum()) + len(vocabulary.eos_ids)
    return judged


# -- real schemas ------------------------------------------------------------------------------

_COMPLETION_BYTES = 20_000
_TRIED = 40
UNKNOWN = "allowed, no completion known"
VALID = "allowed, completed and valid"
HOPELESS = "refused, hopeless"


@dataclass
class Findings:
    """Counts over many states, what was wrong, and what could not be shown either way."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def _completes(matcher: Any, singles: np.ndarray) -> bytes | None:
    """The completion from here, shown to be taken byte by byte and to end; None where there is none.

    Raises AssertionError where it is not.
    """
    completion = matcher.completion(_COMPLETION_BYTES)
    if completion is None:
        return None
    trial = matcher.fork()
    for position, byte in enumerate(completion):
        taken = trial.try_advance(int(singles[byte]))
        assert taken, f"its own completion {completion!r} is refused at {position}"
    assert trial.is_accepting, f"its own completion {completion!r} is no end"
    return completion


def check_completions(
    schema: Any,
    compiled: Any,
    lexicon: Lexicon,
    judge: oracle.Oracle,
    rng: random.Random,
    found: Findings,
    *,
    states: int = 3,
    allowed: int = 12,
    refused: int = 12,
) -> None:
    """Tokens at random states: allowed ones are completed, refused ones tried in vain.

    Refused tokens are only judged right where `compiled` accepts every spelling. Adds to `found`.
    """
    walker = Walker(compiled, lexicon, Words.of(schema))
    vocabulary = lexicon.vocabulary
    size = vocabulary.vocabulary.size
    for _ in range(states):
        ids, text = walker.wander(rng, rng.choice([0, 1, 2, 4, 8, 16, 32]))
        matcher = compiled.matcher()
        for token in ids:
            matcher.advance(token)
        mask = brute.mask_bits(matcher, walker.row, size)
        mask[vocabulary.eos_ids] = False
        yes = mask.nonzero()[0]
        no = np.array([i for i in (~mask).nonzero()[0] if lexicon.tokens[i]], dtype=np.int64)
        for token in rng.sample(yes.tolist(), min(allowed, len(yes))):
            trial = matcher.fork()
            trial.advance(token)
            written = text + (lexicon.tokens[token] or b"")
            try:
                completion = _completes(trial, lexicon.single)
            except AssertionError as error:
                found.wrong.append(f"after {written!r}: {error}")
                continue
            if completion is None:
                found.counts[UNKNOWN] += 1
                found.unknown.append(f"after {written!r}: no completion is known")
            else:
                _judge_allowed(written + completion, judge, found)
        rest = matcher.completion(_COMPLETION_BYTES) or b""
        for token in rng.sample(no.tolist(), min(refused, len(no))):
            _try_refused(text, lexicon.tokens[token] or b"", rest, judge, found)


def _judge_allowed(whole: bytes, judge: oracle.Oracle, found: Findings) -> None:
    try:
        errors = judge.errors(oracle.parse(whole))
    except oracle.NotJsonError as error:
        errors = [str(error)]
    except oracle.OracleError:
        found.counts["allowed, completed, unjudged"] += 1
        return
    found.counts["allowed, yet invalid" if errors else VALID] += 1
    if errors:
        found.wrong.append(f"{whole[:200]!r} is invalid: {errors[0]}")


def _try_refused(
    text: bytes, token: bytes, rest: bytes, judge: oracle.Oracle, found: Findings
) -> None:
    """Whether any tail of a known completion makes `text + token` valid."""
    for start in range(min(len(rest), _TRIED) + 1):
        whole = text + token + rest[start:]
        try:
            value = oracle.parse(whole)
            valid = judge.is_valid(value)
        except oracle.NotJsonError:
            continue
        except oracle.OracleError:
            found.counts["refused, unjudged"] += 1
            return
        if valid:
            found.counts["refused, yet valid"] += 1
            found.wrong.append(f"{token!r} is refused after {text!r}, yet {whole!r} is valid")
            return
        found.counts["refused, texts tried"] += 1
    found.counts[HOPELESS] += 1


def completions_over_maskbench(
    vocabulary: TestVocabulary, benches: list[data.BenchSchema], seed: int
) -> Findings:
    """`check_completions` over schemas of MaskBench, every spelling of a value admitted.

    Formats are ignored, since they are narrowed.
    """
    import constrain

    found = Findings()
    lexicon = Lexicon(vocabulary)
    options = {"numbers": "any", "whitespace": "any", "formats": "ignore"}
    for bench in benches:
        try:
            spec = constrain.JsonSchema(bench.schema, **options)
            compiled = constrain.compile(spec, vocabulary.vocabulary)
            judge = oracle.Oracle(bench.schema)
        except constrain.ConstrainError:
            found.counts["not compiled"] += 1
            continue
        marks = len(found.wrong), len(found.unknown)
        rng = random.Random(f"{seed}/{bench.name}")
        check_completions(bench.schema, compiled, lexicon, judge, rng, found)
        for notes, mark in zip((found.wrong, found.unknown), marks):
            notes[mark:] = [f"{bench.name}: {what}" for what in notes[mark:]]
    return found


def _worlds(vocabulary: TestVocabulary, examples: int, seed: int) -> tuple[int, int]:
    """Small worlds of generated schemas: how many, and how many bits were compared."""
    import hypothesis
    from hypothesis import HealthCheck, given, settings

    counts = [0, 0]

    @hypothesis.seed(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(schema=schemas.schemas().filter(lambda schema: not schemas.is_cyclic(schema)))
    def run(schema: Any) -> None:
        counts[0] += 1
        counts[1] += check_world(schema, vocabulary, random.Random(json.dumps(schema)))

    run()
    return counts[0], counts[1]


def main() -> None:
    """Mask truth, for longer than in the tests."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--worlds", type=int, default=200, help="generated schemas cut down")
    parser.add_argument("--schemas", type=int, default=100, help="schemas of MaskBench")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocabulary", default="small", help="for MaskBench")
    arguments = parser.parse_args()
    start = time.perf_counter()
    if arguments.schemas:
        pool = data.maskbench(data.require_root())
        sample = random.Random(arguments.seed).sample(pool, min(arguments.schemas, len(pool)))
        vocabulary = vocabularies.load(arguments.vocabulary)
        found = completions_over_maskbench(vocabulary, sample, arguments.seed)
        for what in (*found.wrong, *found.unknown):
            print(what)
        for name, count in sorted(found.counts.items()):
            print(f"{name:>32} {count}")
    if arguments.worlds:
        counts = _worlds(vocabularies.small_vocabulary(), arguments.worlds, arguments.seed)
        print(f"{counts[0]} small worlds, {counts[1]} bits compared")
    print(f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
