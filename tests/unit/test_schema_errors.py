"""Malformed schemas: every keyword is checked, and every error names its place."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.errors import ConstrainError, RegexError, SchemaError
from constrain.schema import JsonSchema

MALFORMED: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "strin"}, "/type", "found 'strin'"),
    ({"type": []}, "/type", "at least one"),
    ({"type": 3}, "/type", "found int"),
    ({"type": ["string", {}]}, "/type", "found dict"),
    ({"enum": "a"}, "/enum", "an array, found a string"),
    ({"minimum": "1"}, "/minimum", "a number, found a string"),
    ({"maximum": True}, "/maximum", "a number, found a boolean"),
    ({"exclusiveMinimum": "1"}, "/exclusiveMinimum", "a number"),
    ({"exclusiveMaximum": None}, "/exclusiveMaximum", "found null"),
    ({"multipleOf": 0}, "/multipleOf", "greater than 0"),
    ({"multipleOf": -1.5}, "/multipleOf", "greater than 0"),
    ({"multipleOf": []}, "/multipleOf", "an array"),
    ({"minLength": -1}, "/minLength", "whole number from 0, found -1"),
    ({"maxLength": 1.5}, "/maxLength", "found 1.5"),
    ({"maxLength": True}, "/maxLength", "found a boolean"),
    ({"minItems": "1"}, "/minItems", "found a string"),
    ({"maxItems": {}}, "/maxItems", "found an object"),
    ({"minProperties": []}, "/minProperties", "found an array"),
    ({"maxProperties": -1}, "/maxProperties", "found -1"),
    ({"contains": {}, "minContains": -1}, "/minContains", "found -1"),
    ({"maxContains": "x"}, "/maxContains", "found a string"),
    ({"pattern": 1}, "/pattern", "a string, found a number"),
    ({"format": 1}, "/format", "a string, found a number"),
    ({"required": "a"}, "/required", "an array of strings"),
    ({"required": ["a", 1]}, "/required/1", "an array of strings"),
    ({"properties": []}, "/properties", "an object of schemas, found an array"),
    ({"properties": {"a": 1}}, "/properties/a", "expected a schema"),
    ({"properties": {"a": None}}, "/properties/a", "found null"),
    ({"patternProperties": {"a": []}}, "/patternProperties/a", "expected a schema"),
    ({"additionalProperties": None}, "/additionalProperties", "found null"),
    ({"additionalProperties": "no"}, "/additionalProperties", "found a string"),
    ({"unevaluatedProperties": 1}, "/unevaluatedProperties", "expected a schema"),
    ({"unevaluatedItems": None}, "/unevaluatedItems", "found null"),
    ({"propertyNames": "a"}, "/propertyNames", "expected a schema"),
    ({"items": None}, "/items", "found null"),
    ({"items": "a"}, "/items", "expected a schema"),
    ({"items": [1]}, "/items/0", "expected a schema"),
    ({"prefixItems": {}}, "/prefixItems", "an array of schemas"),
    ({"prefixItems": [1]}, "/prefixItems/0", "expected a schema"),
    ({"prefixItems": [{}], "items": [{}]}, "/items", "beside prefixItems"),
    ({"additionalItems": 1}, "/additionalItems", "a schema"),
    ({"contains": 1}, "/contains", "expected a schema"),
    ({"uniqueItems": 1}, "/uniqueItems", "a boolean"),
    ({"allOf": {}}, "/allOf", "an array of schemas, found an object"),
    ({"allOf": []}, "/allOf", "at least one"),
    ({"anyOf": [1]}, "/anyOf/0", "expected a schema"),
    ({"oneOf": "x"}, "/oneOf", "an array of schemas"),
    ({"not": []}, "/not", "expected a schema"),
    ({"if": 1}, "/if", "expected a schema"),
    ({"if": {}, "then": 1}, "/then", "expected a schema"),
    ({"if": {}, "else": None}, "/else", "expected a schema"),
    ({"dependentRequired": []}, "/dependentRequired", "an object"),
    ({"dependentRequired": {"a": "b"}}, "/dependentRequired/a", "array of strings"),
    ({"dependentSchemas": {"a": []}}, "/dependentSchemas/a", "expected a schema"),
    ({"$ref": 1}, "/$ref", "a URI reference"),
    ({"$dynamicRef": 1}, "/$dynamicRef", "a URI reference"),
    ({"$defs": []}, "/$defs", "an object"),
    ({"definitions": 1}, "/definitions", "an object"),
    ({"$id": 1}, "/$id", "a string"),
    ({"$schema": 1}, "", "a string"),
]


@pytest.mark.parametrize(("keywords", "pointer", "words"), MALFORMED, ids=lambda x: str(x)[:40])
def test_malformed_keywords(keywords: dict[str, Any], pointer: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        JsonSchema(keywords).program()
    assert caught.value.pointer == pointer
    assert words in str(caught.value)
    if "$schema" in keywords:
        return
    with pytest.raises(SchemaError) as caught:
        JsonSchema({"properties": {"x/y": {"items": keywords}}}).program()
    assert caught.value.pointer == "/properties/x~1y/items" + pointer


def test_patterns_carry_their_place() -> None:
    for schema, pointer in (
        ({"pattern": "("}, "/pattern"),
        ({"patternProperties": {"a(": {}}}, "/patternProperties/a("),
    ):
        with pytest.raises(RegexError) as caught:
            JsonSchema({"items": schema}).program()
        assert caught.value.pointer == "/items" + pointer
        assert "(" in caught.value.pattern


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1 column 1"),
        ('{"a":\n }', "line 2 column 2"),
        (b'{"a": NaN}', "NaN"),
        ('{"minimum": 1e999}', "too large"),
        (b"\xff", "UTF-8"),
        ("[1]", "found list"),
        ('"type"', "found str"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_texts_that_are_no_schema(text: str | bytes, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        JsonSchema(text)


@pytest.mark.parametrize(
    ("schema", "pointer", "words"),
    [
        ({"const": float("nan")}, "/const", "not a JSON number"),
        ({"enum": [1, float("inf")]}, "/enum/1", "not a JSON number"),
        ({"properties": {1: {}}}, "/properties", "keys must be strings"),
        ({"default": {1, 2}}, "/default", "found set"),
        ({"items": object()}, "/items", "found object"),
    ],
)
def test_values_that_are_no_json(schema: Any, pointer: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        JsonSchema(schema)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("schema", [None, 1, 1.5, [1], ("a",), object()])
def test_things_that_are_no_schema(schema: Any) -> None:
    with pytest.raises(SchemaError, match="a schema is"):
        JsonSchema(schema)


def test_constants_are_not_nested_without_end() -> None:
    value: Any = 1
    for _ in range(1000):
        value = [value]
    with pytest.raises(SchemaError, match="nested"):
        JsonSchema({"const": value}).program()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("draft", "2020"),
        ("draft", 7),
        ("formats", True),
        ("property_order", "sorted"),
        ("whitespace", "none"),
        ("numbers", None),
        ("extra_properties", "allow"),
        ("resources", ["a"]),
    ],
)
def test_unknown_options(option: str, value: Any) -> None:
    with pytest.raises(ConstrainError, match=option):
        JsonSchema({}, **{option: value})


def test_resources_are_checked() -> None:
    for resource, pointer in (
        ("{", "u#"),
        ([1], "u#"),
        ({"a": float("nan")}, "u#/a"),
    ):
        with pytest.raises(SchemaError) as caught:
            JsonSchema({}, resources={"u": resource})
        assert caught.value.pointer == pointer
    with pytest.raises(SchemaError) as caught:
        JsonSchema({"$ref": "u"}, resources={"u": {"items": {"type": 1}}}).program()
    assert caught.value.pointer == "u#/items/type"
