"""Inputs made to cost much: schemas, patterns and grammars for tests and benchmarks.

Each is a name, a maker of a spec, and a text that is tried token by token as far as it is accepted.
What matters is that each is compiled and masked within its limits, or refused with a typed error.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

import constrain

__all__ = ["CASES", "Case", "slow_objects"]

Case = tuple[Callable[[], Any], str]


def _nested(key: str, depth: int, inner: Any = None, *, array: bool = False) -> Any:
    schema: Any = {"type": "integer"} if inner is None else inner
    for _ in range(depth):
        schema = {key: [schema]} if array else {key: schema}
    return schema


def _schema(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: constrain.JsonSchema(make())


def _words(count: int) -> list[str]:
    rng = random.Random(9)
    return ["".join(rng.choices(string.ascii_lowercase, k=8)) for _ in range(count)]


def _branches(count: int, keyword: str) -> Any:
    return {
        keyword: [
            {
                "type": "object",
                "properties": {f"k{i % 17}": {"type": "integer", "minimum": i}},
                "required": [f"k{i % 13}"],
                "minProperties": i % 5,
            }
            for i in range(count)
        ]
    }


def _dependent(count: int) -> Any:
    return {
        "type": "object",
        "dependentSchemas": {
            f"k{i}": {
                "required": [f"k{(i * 7 + 1) % count}"],
                "properties": {f"k{(i * 3 + 2) % count}": {"minimum": i}},
            }
            for i in range(count)
        },
        "minProperties": 2,
    }


def _conditions(depth: int) -> Any:
    schema: Any = {"required": ["end"]}
    for i in range(depth):
        schema = {
            "if": {"properties": {f"p{i}": {"const": 1}}, "required": [f"p{i}"]},
            "then": schema,
            "else": {"required": [f"q{i}"]},
        }
    return schema


def _cycle(count: int, *, plain: bool) -> Any:
    definitions = {
        f"d{i}": {"$ref": f"#/$defs/d{(i + 1) % count}"}
        if plain
        else {"allOf": [{"$ref": f"#/$defs/d{(i + 1) % count}"}, {"minLength": i}]}
        for i in range(count)
    }
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


CASES: dict[str, Case] = {
    # nesting
    "properties 100,000 deep": (
        _schema(lambda: _nested("additionalProperties", 100_000)),
        '{"a":{"a":{"a":{}}}}',
    ),
    "items 100,000 deep": (_schema(lambda: _nested("items", 100_000)), "[[[[[[[[[[]]]]]]]]]]"),
    "not 100,000 deep": (_schema(lambda: _nested("not", 100_000)), "1"),
    "not 300 deep": (_schema(lambda: _nested("not", 300, {"required": ["a"]})), '{"a":1}'),
    "allOf 100,000 deep": (_schema(lambda: _nested("allOf", 100_000, array=True)), "12"),
    "anyOf 2,000 deep": (_schema(lambda: _nested("anyOf", 2_000, array=True)), "12"),
    "a constant 100,000 deep": (
        lambda: constrain.JsonSchema('{"const":' + "[" * 100_000 + "]" * 100_000 + "}"),
        "[[[[[[",
    ),
    "JSON text 100,000 deep": (
        lambda: constrain.JsonSchema('{"items":' * 100_000 + "{}" + "}" * 100_000),
        "[[[[[[]]]]]]",
    ),
    "groups 100,000 deep": (
        lambda: constrain.Regex("(" * 100_000 + "a" + ")" * 100_000),
        "a",
    ),
    "a pattern with groups 100,000 deep": (
        _schema(lambda: {"pattern": "(" * 100_000 + "a" + ")" * 100_000}),
        '"a"',
    ),
    "Lark groups 50,000 deep": (
        lambda: constrain.Lark("start: " + "(" * 50_000 + '"a"' + ")" * 50_000),
        "a",
    ),
    "GBNF groups 50,000 deep": (
        lambda: constrain.Gbnf("root ::= " + "(" * 50_000 + '"a"' + ")" * 50_000),
        "a",
    ),
    "a chain of 10,000 rules": (
        lambda: constrain.Gbnf(
            "root ::= r0\n"
            + "\n".join(f'r{i} ::= r{i + 1} | "x{i}"' for i in range(10_000))
            + '\nr10000 ::= "a"'
        ),
        "x77",
    ),
    # patterns
    "(a+)+ forty times": (_schema(lambda: {"pattern": "^" + "(a+)+" * 40 + "$"}), '"' + "a" * 60),
    "(a|a?){100}b": (lambda: constrain.Regex("(a|a?){100}b"), "a" * 60),
    "the n-th symbol from the end": (lambda: constrain.Regex(".*a.{60}"), "ab" * 60),
    "nested counts": (
        lambda: constrain.Regex("((([a-z]{1,50}x){1,50}y){1,50}z){1,50}"),
        "abxyz" * 9,
    ),
    "a count of two billion": (lambda: constrain.Regex("(ab?){2000000000}"), "abab"),
    "a wide count of alternatives": (
        lambda: constrain.Regex("(" + "|".join(_words(500)) + "){1,1000}"),
        "".join(_words(20)),
    ),
    "lookahead in a loop": (lambda: constrain.Regex("((?=.*a)(?=.*b)(?!.*c.*d).)*"), "xxaxbxx"),
    "intersection of counts": (
        _schema(
            lambda: {"allOf": [{"pattern": f"^([a-c]{{{n}}})*$"} for n in (7, 11, 13, 17, 19, 23)]}
        ),
        '"abcabcabc',
    ),
    "1,000 patterns at once": (
        _schema(lambda: {"allOf": [{"pattern": f"{w[:3]}|{w[3:]}"} for w in _words(1_000)]}),
        '"abc',
    ),
    "100 patterns that are refused": (
        _schema(lambda: {"not": {"anyOf": [{"pattern": w[:2]} for w in _words(100)]}}),
        '"abcabc"',
    ),
    # numbers
    "tiny multiples": (
        _schema(lambda: {"type": "number", "multipleOf": 1e-9, "minimum": 0, "maximum": 1}),
        "0.123456789",
    ),
    "multiples without a common one": (
        _schema(
            lambda: {
                "type": "number",
                "allOf": [{"multipleOf": n} for n in (0.0007, 0.0011, 0.0013, 0.0017, 0.0019)],
                "exclusiveMinimum": 0,
            }
        ),
        "3233.23",
    ),
    "not multiples": (
        _schema(
            lambda: {
                "type": "integer",
                "minimum": 0,
                "maximum": 10**15,
                "allOf": [{"not": {"multipleOf": n}} for n in range(2, 200)],
            }
        ),
        "211",
    ),
    "huge numbers": (
        _schema(lambda: {"type": "integer", "minimum": 10**4_000, "maximum": 10**4_000 + 3}),
        "1" + "0" * 50,
    ),
    "a huge exponent": (
        lambda: constrain.JsonSchema('{"type":"number","minimum":1e999999999}'),
        "1",
    ),
    # arrays and objects
    "contains a million": (
        _schema(lambda: {"type": "array", "contains": {"const": 1}, "minContains": 1_000_000}),
        "[1,1,1,1,1",
    ),
    "unique items out of few": (
        _schema(
            lambda: {
                "type": "array",
                "uniqueItems": True,
                "minItems": 40,
                "items": {"enum": list(range(40))},
            }
        ),
        "[1,2,3,4,5,6,7,8,9,10,11,12",
    ),
    "unique items out of too few": (
        _schema(
            lambda: {
                "type": "array",
                "uniqueItems": True,
                "minItems": 41,
                "items": {"enum": list(range(40))},
            }
        ),
        "[1",
    ),
    "unique objects": (
        _schema(
            lambda: {
                "type": "array",
                "uniqueItems": True,
                "minItems": 9,
                "items": {
                    "type": "object",
                    "properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 2]}},
                    "additionalProperties": False,
                },
            }
        ),
        '[{},{"a":true},{"b":1}',
    ),
    "counts of several kinds": (
        _schema(
            lambda: {
                "type": "array",
                "maxItems": 60,
                "allOf": [
                    {"contains": {"multipleOf": n}, "minContains": 10, "maxContains": 30}
                    for n in (2, 3, 5, 7)
                ],
            }
        ),
        "[210,210,1,2,3",
    ),
    "dependent schemas": (_schema(lambda: _dependent(300)), '{"k1":3,"k8":5'),
    "conditions 100 deep": (_schema(lambda: _conditions(100)), '{"p99":1,"p98":2'),
    "anyOf of 500 objects": (_schema(lambda: _branches(500, "anyOf")), '{"k1":100,"k2":'),
    "oneOf of 200 objects": (_schema(lambda: _branches(200, "oneOf")), '{"k1":100,"k2":'),
    "allOf of 300 objects": (_schema(lambda: _branches(300, "allOf")), '{"k1":400,"k2":'),
    "patterns of names": (
        _schema(
            lambda: {
                "patternProperties": {f"{w[:2]}.*{w[2:4]}": {"minimum": 1} for w in _words(300)},
                "additionalProperties": False,
                "minProperties": 3,
            }
        ),
        '{"' + _words(1)[0] + '":',
    ),
    "names that patterns exclude": (
        _schema(
            lambda: {
                "propertyNames": {"allOf": [{"not": {"pattern": w[:2]}} for w in _words(60)]},
                "minProperties": 5,
            }
        ),
        '{"zz":1,"yy":2',
    ),
    "closed alternatives": (
        _schema(
            lambda: {
                "allOf": [
                    {"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)
                ],
                "unevaluatedProperties": False,
                "properties": {f"{c}{i}": True for c in "ab" for i in range(40)},
                "maxProperties": 40,
            }
        ),
        '{"a1":1,"b2":2,"a3":3',
    ),
    "exact cover": (
        _schema(
            lambda: {
                "type": "object",
                "allOf": [
                    {"oneOf": [{"required": [f"s{(i * j + j) % 24}"]} for j in range(1, 6)]}
                    for i in range(24)
                ],
            }
        ),
        '{"s1":1,"s5":',
    ),
    # references
    "a cycle of references": (_schema(lambda: _cycle(1_000, plain=True)), "1"),
    "a cycle through allOf": (_schema(lambda: _cycle(1_000, plain=False)), "1"),
    "10,000 references in a chain": (
        _schema(
            lambda: {
                "$defs": {
                    **{f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(10_000)},
                    "d10000": {"type": "null"},
                },
                "$ref": "#/$defs/d0",
            }
        ),
        "null",
    ),
    "doubling references": (
        _schema(
            lambda: {
                "$defs": {
                    **{
                        f"d{i}": {"anyOf": [{"items": {"$ref": f"#/$defs/d{i + 1}"}}] * 2}
                        for i in range(60)
                    },
                    "d60": {"type": "null"},
                },
                "$ref": "#/$defs/d0",
            }
        ),
        "[[[[]]]]",
    ),
    "doubling conjunctions": (
        _schema(
            lambda: {
                "$defs": {
                    **{
                        f"d{i}": {
                            "allOf": [
                                {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}},
                                {"properties": {"a": {"$ref": f"#/$defs/d{(i * 5 + 3) % 40}"}}},
                            ]
                        }
                        for i in range(40)
                    },
                    "d40": {"type": "object", "required": ["a"]},
                },
                "$ref": "#/$defs/d0",
            }
        ),
        '{"a":{"a":{"a":',
    ),
    "required without end": (
        _schema(
            lambda: {
                "$defs": {"d": {"required": ["a"], "properties": {"a": {"$ref": "#/$defs/d"}}}},
                "allOf": [{"$ref": "#/$defs/d"}, {"type": "object"}],
            }
        ),
        '{"a":1',
    ),
    "ambiguous grammar": (
        lambda: constrain.Lark('start: start start | start start start | "a"'),
        "a" * 40,
    ),
    "a rule repeated often": (
        lambda: constrain.Lark('start: (("a" | "b") ~ 1..99) ~ 1..99'),
        "ab" * 20,
    ),
    "nullable rules": (
        lambda: constrain.Gbnf("root ::= " + " ".join('("a"?)' for _ in range(400))),
        "aaa",
    ),
}


def slow_objects(count: int) -> Any:
    """Objects whose masks take about as long as masks may."""
    return _dependent(count)
