"""What each keyword becomes, and that it means what `jsonschema` says."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from constrain.program import Op, Program
from constrain.schema import JsonSchema
from tests.reference.program_semantics import holds

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -3,
    2.0,
    2.5,
    1e30,
    "",
    "a",
    "abc",
    "é😀",
    [],
    [1],
    [1, 1],
    [1, 2.0, "a"],
    [[], {}],
    [True, 1],
    {},
    {"a": 1},
    {"a": "x", "b": 2},
    {"b": []},
    {"a": 1, "b": 2, "c": 3},
    {"aa": {"a": 1}},
]

VALIDATORS = {
    "4": jsonschema.Draft4Validator,
    "6": jsonschema.Draft6Validator,
    "7": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "2020-12": jsonschema.Draft202012Validator,
}

SCHEMAS: list[Any] = [
    {},
    *({"type": t} for t in ("null", "boolean", "integer", "number", "string", "array", "object")),
    {"type": ["integer", "null"]},
    {"type": ["integer", "number", "string"]},
    {"type": ["null", "boolean", "number", "string", "array", "object"]},
    {"type": "string", "enum": ["a", 1, None]},
    {"type": ["integer"], "enum": ["a", 1, 2.5]},
    {"enum": [True, [1], {"a": 1}, 2, ""]},
    {"enum": []},
    {"minimum": 1},
    {"maximum": 2.0},
    {"multipleOf": 0.5},
    {"multipleOf": 2},
    {"minLength": 1, "maxLength": 2.0},
    {"required": ["a"]},
    {"required": ["a", "b", "a"]},
    {"minProperties": 1, "maxProperties": 2},
    {"properties": {"a": {"type": "integer"}, "b": {}}},
    {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
    {"items": {"type": "integer"}},
    {"items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    {"uniqueItems": True},
    {"uniqueItems": False},
    {"allOf": [{"type": "object"}, {"required": ["b"]}]},
    {"anyOf": [{"type": "string"}, {"minimum": 1}]},
    {"oneOf": [{}, {"type": "string"}]},
    {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
    {"oneOf": [{"type": "string"}, {"type": "object", "required": ["b"]}]},
    {"oneOf": [{"type": "number"}, {"type": "integer"}]},
    {"not": {"type": "object"}},
    {"not": {"not": {"required": ["a"]}}},
    {"properties": {"a": {"properties": {"a": {"type": "string"}}}}},
]
FROM_6: list[Any] = [
    True,
    False,
    {"oneOf": [True, True]},
    {"oneOf": [True, {"type": "string"}]},
    {"properties": {"a": False}},
    {"const": 1},
    {"const": True},
    {"const": {"a": 1.0}},
    {"type": "string", "const": 1},
    {"const": 1, "enum": ["a"]},
    {"exclusiveMinimum": 1},
    {"minimum": 0, "exclusiveMaximum": 2},
    {"contains": {"type": "integer"}},
    {"contains": False},
    {"propertyNames": {"minLength": 2}},
    {"propertyNames": {"enum": ["a", "b"]}},
]
UP_TO_7: list[Any] = [
    {"items": [{"type": "integer"}, {"type": "string"}]},
    {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
    {"items": [{"type": "integer"}], "additionalItems": False},
    {"additionalItems": False},
    {"items": {}, "additionalItems": False},
    {"dependencies": {"a": ["b"]}},
    {"dependencies": {"a": {"properties": {"b": {"type": "integer"}}}}},
]
FROM_2019: list[Any] = [
    {"contains": {"type": "integer"}, "minContains": 2},
    {"contains": {"type": "integer"}, "minContains": 0, "maxContains": 1},
    {"maxContains": 0},
    {"dependentRequired": {"a": ["b", "c"]}},
    {"dependentRequired": {"a": []}},
    {"dependentSchemas": {"a": {"maxProperties": 1}}},
    {"if": {"type": "object"}, "then": {"required": ["a"]}, "else": {"type": "array"}},
    {"then": False},
    {"properties": {"a": {}}, "unevaluatedProperties": False},
    {"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}}],
     "unevaluatedProperties": {"type": "string"}},
    {"allOf": [{"properties": {"a": {}}}, {"required": ["a"]}], "unevaluatedProperties": False},
    {"unevaluatedItems": {"type": "integer"}},
    {"oneOf": [{"items": {}, "minItems": 2}, {"maxItems": 0}], "unevaluatedItems": False},
]  # fmt: skip
FROM_2020: list[Any] = [
    {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
    {"prefixItems": [{"type": "integer"}], "items": False},
    {"prefixItems": [True], "unevaluatedItems": False},
    {"contains": {"type": "integer"}, "unevaluatedItems": False},
    {"allOf": [{"prefixItems": [True, True]}], "unevaluatedItems": False},
    {"anyOf": [{"prefixItems": [{"const": 1}]}, True], "unevaluatedItems": {"type": "string"}},
]
CASES = [
    (draft, schema)
    for draft in VALIDATORS
    for schema in (
        *SCHEMAS,
        *(FROM_6 if draft != "4" else ()),
        *(UP_TO_7 if len(draft) == 1 else ()),
        *(FROM_2019 if len(draft) > 1 else ()),
        *(FROM_2020 if draft == "2020-12" else ()),
    )
]


def translate(schema: Any, **options: Any) -> Program:
    return JsonSchema(schema, **options).program()


def ops(program: Program) -> set[str]:
    return {Op(code).name for code in program.nodes[::3]} - {"FALSE", "TRUE"}


@pytest.mark.parametrize(("draft", "schema"), CASES, ids=lambda x: str(x)[:60])
def test_agrees_with_jsonschema(draft: str, schema: Any) -> None:
    program = translate(schema, draft=draft)
    validator = VALIDATORS[draft](schema)
    for value in VALUES:
        assert holds(program, value) == validator.is_valid(value), value


def test_rows_hold_all_object_keywords() -> None:
    program = translate(
        {
            "properties": {"a": {"type": "string"}, "b": {"items": {}}},
            "additionalProperties": False,
            "required": ["b"],
            "maxProperties": 5,
        }
    )
    assert ops(program) == {"TYPE", "REF", "OBJECT"}
    at = program.nodes[3 * program.root + 1]
    row = list(program.args[at : at + 12])
    names = [program.strings[i] for i in (row[1], row[3])]
    assert names == [b"a", b"b"]
    assert row[0] == 2
    assert row[5:8] == [0, 0, 1]  # no patterns, additional FALSE, names TRUE
    assert row[8:] == [1, row[3], 0, 5]


def test_constants_are_filtered_by_type() -> None:
    assert ops(translate({"type": "string", "enum": ["a", 1]})) == {"ENUM"}
    assert len(translate({"type": "string", "enum": ["a", 1]}).values) == 3
    assert translate({"type": "null", "enum": [1]}).root == 0
    assert ops(translate({"type": "integer", "enum": [1, 2.5]})) >= {"INTEGER", "ENUM"}


def test_integers_of_draft_4_are_lexical() -> None:
    assert "INTEGER_LEXICAL" in ops(translate({"type": "integer"}, draft="4"))
    assert "INTEGER" in ops(translate({"type": "integer"}, draft="6"))


def test_numbers_are_exact_texts() -> None:
    program = translate({"minimum": 0.1, "maximum": 10**400, "multipleOf": 1e-7})
    assert set(program.strings) == {b"0.1", b"1" + b"0" * 400, b"1e-07"}
    huge = translate({"minimum": 10**6000})
    assert huge.strings == (b"1" + b"0" * 6000,)
    assert translate('{"minimum": ' + "1" * 6000 + "}").strings == (b"1" * 6000,)


def test_certain_unevaluated_keywords_become_rows() -> None:
    program = translate(
        {
            "allOf": [{"properties": {"a": {"type": "string"}}}],
            "properties": {"b": {}},
            "unevaluatedProperties": False,
        }
    )
    assert "UNEVALUATED_PROPERTIES" not in ops(program)
    program = translate({"allOf": [{"prefixItems": [{"type": "null"}]}], "unevaluatedItems": False})
    assert "UNEVALUATED_ITEMS" not in ops(program)
    program = translate({"anyOf": [{"properties": {"a": {}}}, {}], "unevaluatedProperties": False})
    assert "UNEVALUATED_PROPERTIES" in ops(program)


@pytest.mark.parametrize(
    ("branches", "excluding"),
    [
        ([{"type": "string"}, {"type": ["null", "integer"]}], True),
        ([{"type": "number"}, {"type": "integer"}], False),
        ([{"const": 1}, {"const": "1"}], True),
        ([{"const": 1}, {"const": 1.0}], False),
        ([{"const": 1}, {"const": True}], True),
        ([{"enum": ["a", "b"]}, {"enum": ["b"]}], False),
        ([{"minimum": 1}, {"type": "string"}], False),
        (
            [
                {"type": "object", "properties": {"k": {"const": x}}, "required": ["k"]}
                for x in ("a", "b", "c")
            ],
            True,
        ),
        (
            [{"properties": {"k": {"const": x}}, "required": ["k"]} for x in ("a", "b")],
            False,  # both hold of what is no object
        ),
        ([{"type": "object", "properties": {"k": {"const": x}}} for x in ("a", "b")], False),
    ],
)
def test_one_of_alternatives_that_exclude_each_other_is_any_of(
    branches: list[Any], excluding: bool
) -> None:
    program = translate({"oneOf": branches})
    assert ("ONE" in ops(program)) is not excluding
    validator = jsonschema.Draft202012Validator({"oneOf": branches})
    for value in [*VALUES, "1", {"k": "a"}, {"k": "c"}, {"k": "z"}]:
        assert holds(program, value) == validator.is_valid(value), value


def test_equal_formulas_are_one_node() -> None:
    schema = {"type": "string", "minLength": 3}
    one = translate({"properties": {"a": schema}})
    many = translate({"properties": {k: dict(schema) for k in "abcdef"}})
    assert len(one.nodes) == len(many.nodes)


def test_a_web_of_references_stays_small() -> None:
    def web(keyword: str, **extra: Any) -> dict[str, Any]:
        size = 30
        defs: dict[str, Any] = {
            f"d{i}": {
                keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}],
                "properties": {f"p{i}": {"type": "string"}},
            }
            for i in range(size)
        }
        defs[f"d{size}"] = {"properties": {"z": {}}}
        return {"$ref": "#/$defs/d0", "$defs": defs, **extra}

    for keyword in ("allOf", "anyOf", "oneOf"):
        for options in ({}, {"extra_properties": "forbid"}):
            program = translate(web(keyword, unevaluatedProperties=False), **options)
            assert len(program.nodes) < 3 * 1000
            program = translate(web(keyword), **options)
            assert len(program.nodes) < 3 * 1000


def test_lone_surrogates_never_match() -> None:
    assert translate({"const": "\ud800"}).root == 0
    assert not holds(translate({"required": ["\ud800"]}), {"a": 1})
    assert holds(translate({"required": ["\ud800"]}), 1)
    program = translate({"enum": ["a", ["\ud800"]]})
    assert holds(program, "a")
    assert len(program.values) == 3


def test_unwritable_counts_are_bounded() -> None:
    program = translate({"minLength": 2**40, "maxLength": 2**40, "maxItems": 10**30})
    assert max(program.nodes) == 2**31 - 1
    assert ops(program) == {"MIN_LENGTH"}
