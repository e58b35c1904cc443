"""Random schemas of draft 2020-12 against `jsonschema`, as written and closed."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from constrain.schema import JsonSchema
from tests.reference.program_semantics import holds

KEYS = "abc"
LEAVES: list[Any] = [
    True,
    False,
    {"type": "string"},
    {"type": "integer"},
    {"type": ["object", "null"]},
    {"const": 1},
    {"minimum": 2},
    {"enum": [1, "a", {"a": 1}]},
]
KEYWORDS = [
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "dependentSchemas",
    "dependentRequired",
    "items",
    "prefixItems",
    "contains",
    "unevaluatedItems",
    "maxItems",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "$ref",
    "type",
]


class Generator:
    """Schemas and values over three keys, so that they meet often."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def schema(self, depth: int) -> Any:
        """A schema nested at most `depth` deep."""
        pick = self.random
        if depth <= 0 or pick.random() < 0.15:
            return pick.choice(LEAVES)
        result: dict[str, Any] = {}
        for _ in range(pick.choice((1, 1, 2, 2, 3))):
            keyword = pick.choice(KEYWORDS)
            if keyword in ("properties", "dependentSchemas"):
                keys = pick.sample(KEYS, pick.choice((1, 2)))
                result[keyword] = {key: self.schema(depth - 1) for key in keys}
            elif keyword == "patternProperties":
                result[keyword] = {pick.choice(("^a", "b|c", ".")): self.schema(depth - 1)}
            elif keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
                count = pick.choice((1, 2, 2, 3))
                result[keyword] = [self.schema(depth - 1) for _ in range(count)]
            elif keyword == "required":
                result[keyword] = pick.sample(KEYS, pick.choice((1, 2)))
            elif keyword == "dependentRequired":
                result[keyword] = {"a": ["b"]}
            elif keyword in ("minProperties", "maxItems"):
                result[keyword] = pick.choice((1, 2))
            elif keyword == "uniqueItems":
                result[keyword] = True
            elif keyword == "type":
                result[keyword] = pick.choice(("object", "array", "string"))
            elif keyword == "propertyNames":
                names = ({"enum": ["a", "b"]}, {"pattern": "[ab]"}, {"not": {"const": "c"}})
                result[keyword] = pick.choice(names)
            elif keyword == "$ref":
                result[keyword] = "#/$defs/x"
            else:
                result[keyword] = self.schema(depth - 1)
                if keyword == "if":
                    result["then"], result["else"] = self.schema(depth - 1), self.schema(depth - 1)
                elif keyword == "contains":
                    result["minContains"] = pick.choice((0, 1, 2))
                    result["maxContains"] = pick.choice((0, 1, 2))
        return result

    def document(self) -> dict[str, Any]:
        """A whole schema, with a definition that random `$ref` lead to."""
        shared = self.schema(2)
        if "$ref" in json.dumps(shared):
            shared = {"type": "object"}
        result = {"allOf": [self.schema(3)], "$defs": {"x": shared}}
        if self.random.random() < 0.5:
            result["unevaluatedProperties"] = self.schema(1)
        return result

    def value(self, depth: int) -> Any:
        """A value nested at most `depth` deep."""
        pick, kind = self.random, self.random.random()
        if depth <= 0 or kind < 0.2:
            return pick.choice((None, 1, 2, "a", True))
        count = pick.choice((0, 1, 2, 3))
        if kind < 0.7:
            return {key: self.value(depth - 1) for key in pick.sample(KEYS, count)}
        return [self.value(depth - 1) for _ in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_random_schemas(seed: int) -> None:
    generator = Generator(seed)
    valid = count = 0
    for _ in range(60):
        document = generator.document()
        program = JsonSchema(document).program()
        closed = JsonSchema(document, extra_properties="forbid").program()
        validator = jsonschema.Draft202012Validator(document)
        for _ in range(8):
            value = generator.value(3)
            verdict = holds(program, value)
            assert verdict == validator.is_valid(value), (document, value)
            assert verdict or not holds(closed, value), (document, value)
            valid += verdict
            count += 1
    assert count // 5 < valid < count * 4 // 5  # else nothing was compared
