"""Tail cases: schemas that are large or hard on purpose, with the times that they take.

Each case is a schema and a text of it that takes the hard way.  For each: compile with the first
mask, and per token the average and the worst of mask and advance together, cold.

``python -m tests.benchmarks.tail --json tail.json`` prints a Markdown table and takes a minute. It is
a report, not a test: nothing here asserts a time. `tests/unit/test_tail.py` runs the same cases for
their verdicts.
"""

from __future__ import annotations

import argparse
import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import constrain
from tests.benchmarks.measuring import CLOCKS
from tests.reference import vocabularies

Case = tuple[Any, Any]


def _words(count: int, rng: random.Random, length: int = 9) -> list[str]:
    return ["".join(rng.choices(string.ascii_lowercase, k=length)) for _ in range(count)]


def cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Names and makers of (schema, instance)."""
    rng = random.Random(5)

    def long_string() -> Case:
        return {"type": "string", "maxLength": 10_000}, "word " * 400

    def exact_string() -> Case:
        return {"type": "string", "minLength": 9_000, "maxLength": 10_000}, "word " * 1_900

    def many_items() -> Case:
        return {"type": "array", "items": {"type": "integer"}, "minItems": 1_000}, [7] * 1_000

    def unique_items() -> Case:
        return {
            "type": "array",
            "items": {"type": "string"},
            "uniqueItems": True,
            "maxItems": 200,
        }, _words(200, rng)

    def enum() -> Case:
        words = _words(10_000, rng)
        return {"enum": words}, words[5_000]

    def enum_with_others() -> Case:
        words = _words(10_000, rng)
        return {"type": "string", "not": {"enum": words}}, words[77][:-1] + "_"

    def properties() -> Case:
        names = _words(500, rng)
        schema = {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in names},
            "required": names[:250],
            "additionalProperties": False,
        }
        return schema, dict.fromkeys(reversed(names), 3)

    def branches() -> Case:
        options = [
            {
                "type": "object",
                "properties": {"kind": {"const": f"kind{i}"}, f"field{i}": {"type": "number"}},
                "required": ["kind", f"field{i}"],
            }
            for i in range(200)
        ]
        return {"anyOf": options}, {"field77": 1.5, "kind": "kind77"}

    def exclusive_branches() -> Case:
        options = [
            {
                "type": "object",
                "properties": {"kind": {"const": f"kind{i}"}, "value": {"type": "number"}},
                "required": ["kind"],
            }
            for i in range(200)
        ]
        return {"oneOf": options}, {"value": 1.5, "kind": "kind150"}

    def counted_pattern() -> Case:
        return {"type": "string", "pattern": r"^([a-z]{1,40}-){20,200}[0-9]{1,1000}$"}, (
            "abcdef-" * 30 + "1" * 60
        )

    def unicode_pattern() -> Case:
        return {"type": "string", "pattern": r"^(\p{L}|\p{N}){1,500}( \p{Lu}\p{Ll}+){0,100}$"}, (
            "Größe9 Übung Ärger"
        )

    def unanchored_pattern() -> Case:
        pattern = r"(foo|bar|ba+z)[^q]{3,30}(\d{2,4}|x[yz]w)"
        return {"type": "string", "pattern": pattern}, "some text, then bar and more 1234 text"

    def many_patterns() -> Case:
        schema = {
            "patternProperties": {
                f"^{a}{b}": {"type": "integer"} for a in "abcdefgh" for b in "xyz"
            }
        }
        return schema, {f"{a}{b}key": 1 for a in "abcd" for b in "xyz"}

    def nesting() -> Case:
        schema: Any = {"type": "integer"}
        value: Any = 1
        for _ in range(200):
            schema = {
                "type": "object",
                "properties": {"a": schema},
                "required": ["a"],
                "additionalProperties": False,
            }
            value = {"a": value}
        return schema, value

    def recursion() -> Case:
        schema = {
            "$defs": {
                "tree": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "number"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                    },
                    "required": ["value"],
                }
            },
            "$ref": "#/$defs/tree",
        }
        value: Any = {"value": 1}
        for _ in range(60):
            value = {"value": 2, "children": [value, {"value": 3}]}
        return schema, value

    def definitions() -> Case:
        count = 5_000
        definitions = {
            f"d{i}": {
                "type": "object",
                "properties": {"next": {"$ref": f"#/$defs/d{(i * 7 + 1) % count}"}, f"p{i}": True},
            }
            for i in range(count)
        }
        return {"$defs": definitions, "$ref": "#/$defs/d0"}, {"next": {"next": {"p8": [1, {}]}}}

    def megabyte() -> Case:
        names = _words(9_000, rng, 12)
        schema = {
            "type": "object",
            "properties": {
                name: {"type": "string", "maxLength": i % 50 + 1, "description": "d" * 60}
                for i, name in enumerate(names)
            },
        }
        return schema, {names[4_000]: "x", names[3]: "yy"}

    def multiples() -> Case:
        parts = [{"multipleOf": n} for n in (0.01, 7, 11, 13)]
        return {"type": "number", "minimum": 0, "maximum": 10**12, "allOf": parts}, 1001 * 424_242

    for maker in (long_string, exact_string, many_items, unique_items, enum, enum_with_others):
        yield maker.__name__, maker
    for maker in (properties, branches, exclusive_branches, counted_pattern, unicode_pattern):
        yield maker.__name__, maker
    for maker in (unanchored_pattern, many_patterns, nesting, recursion, definitions, megabyte):
        yield maker.__name__, maker
    yield multiples.__name__, multiples


def measure(
    case: Case, vocabulary: Any, encode: Callable[[str], list[int]], clock: Callable[[], int]
) -> dict[str, Any]:
    """Milliseconds to the first mask; microseconds a token: average and worst."""
    schema, instance = case
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    start = clock()
    compiled = constrain.compile(constrain.JsonSchema(schema), vocabulary)
    matcher = compiled.matcher()
    matcher.fill_bitmask(bitmask, 0)
    first = clock() - start
    taken: list[int] = []
    accepted = True
    for token in encode(json.dumps(instance, ensure_ascii=False)):
        start = clock()
        matcher.fill_bitmask(bitmask, 0)
        accepted = matcher.try_advance(token)
        taken.append(clock() - start)
        if not accepted:
            break
    return {
        "first_ms": first / 1e6,
        "tokens": len(taken),
        "average_us": sum(taken) / len(taken) / 1e3,
        "worst_us": max(taken) / 1e3,
        "accepted": accepted and matcher.is_accepting,
        "memory_mb": compiled.memory / 1e6,
    }


def main() -> None:
    """Times of tail cases."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--vocabulary", default="deepseek")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    arguments = parser.parse_args()
    world = vocabularies.load(arguments.vocabulary)
    results: dict[str, Any] = {}
    print("| case | first mask, ms | tokens | average, µs | worst, µs | accepted | MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, make in cases():
        if arguments.only and name not in arguments.only:
            continue
        found = results[name] = measure(
            make(), world.vocabulary, world.encode, CLOCKS[arguments.clock]
        )
        print(
            f"| {name} | {found['first_ms']:.1f} | {found['tokens']} | {found['average_us']:.1f} "
            f"| {found['worst_us']:.0f} | {found['accepted']} | {found['memory_mb']:.1f} |",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
